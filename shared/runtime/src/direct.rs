//! Rendering what tasks shall do: from their config, the run's facts and the outputs upstream of them.

use engine::{Directive, Graph, Scene};
use language::config::{self, Sleep};
use language::kinds::{Kind, kind};
use language::template::{RunFacts, Scope, TaskFacts};
use model::{Failure, Instant, Run, TaskIndex};
use serde_json::Value;
use store::{Context, Unit};

use crate::{Result, Runtime};

impl Runtime {
    /// The directive for a task that is settled without a worker, read within the unit.
    pub(crate) async fn direct(
        &self,
        unit: &mut dyn Unit,
        scene: &Scene<'_>,
        task: TaskIndex,
    ) -> Result<Directive> {
        let upstream = scene.graph().ancestors(task);
        let Some(mut context) = unit.context(scene.run().id, &upstream).await? else {
            return Ok(Directive::Broken(Failure::permanent("the run's inputs are gone")));
        };
        let fresh = scene.fresh_outputs().iter().filter(|(task, _)| upstream.contains(task));
        context.outputs.extend(fresh.cloned());
        Ok(directive(scene, task, &context, self.clock.now()))
    }
}

/// What a task that is settled without a worker shall do.
pub(crate) fn directive(scene: &Scene<'_>, task: TaskIndex, context: &Context, now: Instant) -> Directive {
    let scope = scope(scene.graph(), scene.run(), task, 1, context);
    let slept = render(scene.graph(), task, &scope).and_then(|config| {
        let sleep: Sleep = config::read(kind_of(scene.graph(), task)?, config).map_err(permanent)?;
        Ok(sleep.ends(now))
    });
    slept.map_or_else(Directive::Broken, Directive::SleepUntil)
}

/// A task's config with every template in it rendered.
pub(crate) fn render(graph: &Graph, task: TaskIndex, scope: &Scope) -> std::result::Result<Value, Failure> {
    kind_of(graph, task)?.render(&graph.spec(task).config, scope).map_err(permanent)
}

/// What a task's templates can name.
pub(crate) fn scope(graph: &Graph, run: &Run, task: TaskIndex, attempt: u32, context: &Context) -> Scope {
    let outputs =
        context.outputs.iter().map(|(task, output)| (graph.spec(*task).name.clone(), output.clone()));
    Scope {
        inputs: context.facts.inputs.clone(),
        outputs: outputs.collect(),
        run: Some(RunFacts {
            id: run.id.to_string(),
            logical_date: context.facts.logical_date.unwrap_or(run.created_at),
            trigger: context.facts.trigger_kind.clone(),
        }),
        task: Some(TaskFacts { name: graph.spec(task).name.clone(), attempt }),
    }
}

fn kind_of(graph: &Graph, task: TaskIndex) -> std::result::Result<&'static Kind, Failure> {
    let name = &graph.spec(task).kind;
    kind(name).ok_or_else(|| Failure::permanent(format!("there is no task type `{name}`")))
}

fn permanent(error: impl std::fmt::Display) -> Failure {
    Failure::permanent(error.to_string())
}

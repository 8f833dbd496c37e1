//! What tasks shall do that begin: their conditions and settings, rendered from the run's facts and the outputs
//! upstream of them.

use engine::{Directive, Graph, Scene};
use language::config::{self, Approval, Sleep, Transform, WaitForSignal};
use language::expression::{self, Evaluated};
use language::kinds::{Kind, kind};
use language::template::{RunFacts, Scope, TaskFacts};
use model::{Case, Failure, Instant, Run, TaskIndex, TaskSpec};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use store::{Context, Unit};

use crate::{Result, Runtime};

impl Runtime {
    /// The directive for a task that is about to begin, read within the unit.
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
        let directive = directive(scene, task, &context, self.clock.now());
        if let Directive::Await { signal: Some(signal), .. } = &directive
            && let Some(payload) = unit.signal(scene.run().id, signal).await?
        {
            return Ok(Directive::Received { signal: signal.clone(), payload });
        }
        Ok(directive)
    }
}

/// What a task that is about to begin shall do.
pub(crate) fn directive(scene: &Scene<'_>, task: TaskIndex, context: &Context, now: Instant) -> Directive {
    let scope = scope(scene.graph(), scene.run(), task, 1, context);
    decide(scene.graph(), task, &scope, now).unwrap_or_else(Directive::Broken)
}

fn decide(
    graph: &Graph,
    task: TaskIndex,
    scope: &Scope,
    now: Instant,
) -> std::result::Result<Directive, Failure> {
    let spec = graph.spec(task);
    if let Some(condition) = &spec.when {
        let Evaluated { truth, seen, .. } = expression::evaluate(condition, scope).map_err(permanent)?;
        if !truth {
            return Ok(Directive::Skip { condition: condition.clone(), seen: Value::Object(seen) });
        }
    }
    Ok(match spec.kind.as_str() {
        "switch" => choose(graph, spec, scope)?,
        "transform" => {
            let transform: Transform = settings(graph, task, scope)?;
            Directive::Output(expression::evaluate(&transform.expression, scope).map_err(permanent)?.value)
        }
        "sleep" => Directive::SleepUntil(settings::<Sleep>(graph, task, scope)?.ends(now)),
        "wait_for_signal" => {
            let wait: WaitForSignal = settings(graph, task, scope)?;
            Directive::Await {
                until: wait.timeout.map(|limit| now + limit.to_std()),
                signal: Some(wait.signal),
            }
        }
        "approval" => {
            let ask: Approval = settings(graph, task, scope)?;
            Directive::Await { signal: None, until: ask.deadline(now) }
        }
        _ => Directive::Go,
    })
}

/// The first branch of a switch whose condition holds, or its default; none of them is an answer, too.
fn choose(graph: &Graph, spec: &TaskSpec, scope: &Scope) -> std::result::Result<Directive, Failure> {
    let choice = |case: &Case, why| {
        let next = case.next.iter().filter_map(|name| graph.index_of(name)).collect();
        Directive::Choose { next, why }
    };
    let mut tried = Vec::new();
    for case in &spec.cases {
        let Some(condition) = &case.when else { continue };
        let Evaluated { truth, seen, .. } = expression::evaluate(condition, scope).map_err(permanent)?;
        if truth {
            return Ok(choice(case, json!({"condition": condition, "seen": seen})));
        }
        tried.push(json!({"condition": condition, "seen": seen}));
    }
    let default = spec.cases.iter().find(|case| case.when.is_none());
    let none = Case { when: None, next: Vec::new() };
    Ok(choice(default.unwrap_or(&none), json!({"default": default.is_some(), "tried": tried})))
}

/// A task's rendered settings, as its type wants them.
fn settings<T: DeserializeOwned>(
    graph: &Graph,
    task: TaskIndex,
    scope: &Scope,
) -> std::result::Result<T, Failure> {
    config::read(kind_of(graph, task)?, render(graph, task, scope)?).map_err(permanent)
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

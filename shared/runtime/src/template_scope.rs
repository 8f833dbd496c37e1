//! Template scopes: what templates of tasks can name. That is what their run was created with, the outputs upstream and the item.

use std::collections::{BTreeMap, BTreeSet};

use engine::{Graph, RunSlice};
use language::template::{Item, RunFacts, Scope, TaskFacts};
use model::{Child, Run, TaskIndex};
use serde_json::{Map, Value};
use store::{Context, Facts, Transaction};

use crate::Result;

/// The template scopes of a batch of tasks.
pub(crate) struct TemplateScopes {
    contexts: BTreeMap<TaskIndex, Context>,
    items: BTreeMap<TaskIndex, Value>,
}

impl TemplateScopes {
    /// Loads the scopes of these tasks, each value once: the children of a fan-out share its scope. A run that is being
    /// created has no facts in the store yet: they are passed in.
    pub(crate) async fn load(
        unit: &mut dyn Transaction,
        slice: &RunSlice<'_>,
        tasks: &[TaskIndex],
        new_run: Option<&Facts>,
    ) -> Result<Self> {
        let mut contexts = BTreeMap::new();
        for anchor in tasks.iter().map(|task| anchor(slice, *task)).collect::<BTreeSet<_>>() {
            let upstream = slice.graph().ancestors(anchor);
            let context = match new_run {
                Some(facts) => Some(Context { facts: facts.clone(), outputs: BTreeMap::new() }),
                None => unit.context(slice.run().id, &upstream).await?,
            };
            if let Some(mut context) = context {
                context.outputs.retain(|task, _| !slice.has_withdrawn(*task));
                let fresh = slice.fresh_outputs().iter().filter(|(task, _)| upstream.contains(task));
                context.outputs.extend(fresh.cloned());
                contexts.insert(anchor, context);
            }
        }
        Ok(Self { contexts, items: items(unit, slice, tasks).await? })
    }

    /// The names that a task's templates can use; none if the run's inputs were deleted.
    pub(crate) fn scope(&self, slice: &RunSlice<'_>, task: TaskIndex) -> Option<Scope> {
        let context = self.contexts.get(&anchor(slice, task))?;
        let row = slice.task(task)?;
        let at = At { task, child: row.child, attempt: row.attempt.max(1) };
        Some(scope(slice.graph(), slice.run(), at, context, self.items.get(&task).cloned()))
    }
}

/// The task of the definition that a task belongs to: itself, or the fan-out it is a child of.
fn anchor(slice: &RunSlice<'_>, task: TaskIndex) -> TaskIndex {
    slice.task(task).and_then(|row| row.child).map_or(task, |child| child.of)
}

async fn items(
    unit: &mut dyn Transaction,
    slice: &RunSlice<'_>,
    tasks: &[TaskIndex],
) -> Result<BTreeMap<TaskIndex, Value>> {
    let mut items: BTreeMap<TaskIndex, Value> = slice.fresh_items().iter().cloned().collect();
    let is_child = |task: &TaskIndex| slice.task(*task).is_some_and(|row| row.child.is_some());
    let stored: Vec<TaskIndex> =
        tasks.iter().copied().filter(|task| is_child(task) && !items.contains_key(task)).collect();
    if !stored.is_empty() {
        items.extend(unit.items(slice.run().id, &stored).await?);
    }
    Ok(items)
}

/// Which task of a run, at which attempt.
#[derive(Clone, Copy)]
pub(crate) struct At {
    pub(crate) task: TaskIndex,
    pub(crate) child: Option<Child>,
    pub(crate) attempt: u32,
}

/// The names available to a task's templates.
pub(crate) fn scope(graph: &Graph, run: &Run, at: At, context: &Context, item: Option<Value>) -> Scope {
    let outputs =
        context.outputs.iter().map(|(task, output)| (graph.spec(*task).name.clone(), output.clone()));
    let index = at.child.map_or(0, |child| child.item);
    Scope {
        inputs: context.facts.inputs.clone(),
        outputs: outputs.collect(),
        run: Some(run_facts(run, &context.facts)),
        task: Some(TaskFacts { name: graph.name_at(at.task, at.child), attempt: at.attempt }),
        item: item.map(|value| Item { value, index }),
        ..Scope::default()
    }
}

/// The facts about a run that templates can use.
pub(crate) fn run_facts(run: &Run, facts: &Facts) -> RunFacts {
    RunFacts {
        id: run.id.to_string(),
        logical_date: facts.logical_date.unwrap_or(run.created_at),
        trigger: facts.trigger_kind.clone(),
        interval: facts.planned.as_ref().map(|planned| planned.interval),
    }
}

/// Stands in for the secrets that a config names, where it matters which they are and not what.
pub(crate) fn placeholders(config: &Value) -> Map<String, Value> {
    let names = language::template::secrets_of(config);
    names.into_iter().map(|name| (name.clone(), Value::String(format!("secrets.{name}")))).collect()
}

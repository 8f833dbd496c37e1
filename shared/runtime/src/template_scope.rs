//! Template scopes: what templates of tasks can name. That is what their run was created with, the outputs upstream and the item.

use std::collections::{BTreeMap, BTreeSet};

use engine::{Graph, RunSlice};
use language::template::{self, Item, RunFacts, Scope, TaskFacts};
use language::types::TaskType;
use model::{Child, Failure, Run, TaskIndex, TaskSpec};
use serde_json::{Map, Value};
use store::{Context, Facts, MAX_OUTPUTS, Transaction};

use crate::Result;
use crate::preview::visible_outputs;

/// The template scopes of a batch of tasks, which are read one after the other: their outputs may be large.
pub(crate) struct TemplateScopes<'f> {
    /// The facts of a run that is being created: the store has none yet.
    new_run: Option<&'f Facts>,
    /// The context of the child of a fan-out that was read last: all children of the fan-out share it.
    last: Option<(TaskIndex, ReadContext)>,
    items: BTreeMap<TaskIndex, Value>,
}

/// What the templates of a task are rendered from: none if the run's inputs were deleted, a failure if its outputs are too
/// large together.
type ReadContext = Option<std::result::Result<Context, Failure>>;

impl<'f> TemplateScopes<'f> {
    /// The scopes of these tasks, of which only the items are read.
    pub(crate) async fn of(
        unit: &mut dyn Transaction,
        slice: &RunSlice<'_>,
        tasks: &[TaskIndex],
        new_run: Option<&'f Facts>,
    ) -> Result<Self> {
        Ok(Self { new_run, last: None, items: items(unit, slice, tasks).await? })
    }

    /// The names that a task's templates can use, with the outputs that they use; none if the run's inputs were deleted.
    pub(crate) async fn read(
        &mut self,
        unit: &mut dyn Transaction,
        slice: &RunSlice<'_>,
        task: TaskIndex,
    ) -> Result<Option<std::result::Result<Scope, Failure>>> {
        let Some(row) = slice.task(task) else { return Ok(None) };
        let anchor = row.child.map_or(task, |child| child.of);
        let context = match self.last.take().filter(|(of, _)| row.child.is_some_and(|child| child.of == *of))
        {
            Some((_, context)) => context,
            None => self.context(unit, slice, task, anchor).await?,
        };
        let at = At { task, child: row.child, attempt: row.attempt.max(1) };
        let item = self.items.get(&task).cloned();
        let scope = context.as_ref().map(|context| match context {
            Ok(context) => Ok(scope(slice.graph(), slice.run(), at, context, item)),
            Err(failure) => Err(failure.clone()),
        });
        self.last = row.child.map(|child| (child.of, context));
        Ok(scope)
    }

    async fn context(
        &self,
        unit: &mut dyn Transaction,
        slice: &RunSlice<'_>,
        task: TaskIndex,
        anchor: TaskIndex,
    ) -> Result<ReadContext> {
        let used = named_outputs(slice.graph(), Some(anchor), &used_to_begin(slice.spec(task)));
        let context = match self.new_run {
            Some(facts) => Some(Context { facts: facts.clone(), outputs: BTreeMap::new() }),
            None => match unit.context(slice.run().id, &used).await {
                Err(store::Error::TooLarge) => {
                    return Ok(Some(Err(too_large("the outputs that it uses are"))));
                }
                found => found?,
            },
        };
        let Some(mut context) = context else { return Ok(None) };
        context.outputs.retain(|task, _| !slice.has_withdrawn(*task));
        let fresh = slice.fresh_outputs().iter().filter(|(task, _)| used.contains(task));
        context.outputs.extend(fresh.cloned());
        Ok(Some(Ok(context)))
    }
}

/// The failure of a task for which outputs cannot be read.
pub(crate) fn too_large(what: &str) -> Failure {
    let limit = MAX_OUTPUTS >> 20;
    Failure::permanent(format!(
        "{what} more than {limit} MiB of JSON together: have the tasks write what is large to storage, and deliver references"
    ))
}

/// Of the outputs that a task can name, those with these names; all of them where it is known only later which are used.
pub(crate) fn named_outputs(
    graph: &Graph,
    task: Option<TaskIndex>,
    names: &BTreeSet<Option<String>>,
) -> Vec<TaskIndex> {
    if names.is_empty() {
        return Vec::new();
    }
    let mut visible = visible_outputs(graph, task);
    visible.retain(|index| names.contains(&None) || names.contains(&Some(graph.spec(*index).name.clone())));
    visible
}

/// The names of the outputs that decide whether and how a task begins.
fn used_to_begin(spec: &TaskSpec) -> BTreeSet<Option<String>> {
    let conditions = spec.when.iter().chain(spec.cases.iter().filter_map(|case| case.when.as_ref()));
    let expressions = conditions.chain(spec.fan_out.iter().map(|plan| &plan.for_each));
    let mut names: BTreeSet<_> =
        expressions.flat_map(|text| template::outputs_of(&Value::String(text.clone()))).collect();
    // What a worker executes is rendered once it is dispatched; a shared task also to find what it shares.
    if spec.kind.is_engine_task() || spec.global.is_some() {
        names.extend(used_by_config(spec));
    }
    names
}

/// The names of the outputs that the templates in a task's settings use.
pub(crate) fn used_by_config(spec: &TaskSpec) -> BTreeSet<Option<String>> {
    let kind = TaskType::of(&spec.kind);
    match &spec.config {
        // Code and files are not templates, whatever they contain.
        Value::Object(settings) => {
            let templates = settings.iter().filter(|(name, _)| !kind.is_code(name));
            templates.flat_map(|(_, value)| template::outputs_of(value)).collect()
        }
        config => template::outputs_of(config),
    }
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

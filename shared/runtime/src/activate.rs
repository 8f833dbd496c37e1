//! The directives of tasks that become ready: their conditions and settings, rendered in their template scope.

use chrono::TimeDelta;
use engine::{Directive, Graph, RunSlice};
use language::config::{self, Approval, ChildWorkflow, Sleep, Transform, WaitForSignal};
use language::expression::{self, Evaluated};
use language::template::Scope;
use language::types::TaskType;
use model::{Case, Failure, FanOut, Global, TaskIndex, TaskKind, TaskSpec, TaskState};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use store::{Facts, Share, ShareAsk, Transaction};
use uuid::Uuid;

use crate::template_scope::{TemplateScopes, placeholders};
use crate::{Result, Runtime, fan_in};

/// The maximum number of children of a fan-out.
const MAX_ITEMS: usize = 10_000;

/// How many levels deep runs start runs.
pub(crate) const MAX_DEPTH: u32 = 10;

/// The result of evaluating a task's settings: a failure is the task's own.
type Judged<T> = std::result::Result<T, Failure>;

/// Renders the directives of tasks that are about to begin, reading what they need within the transaction.
pub(crate) async fn activate(
    runtime: &Runtime,
    unit: &mut dyn Transaction,
    slice: &mut RunSlice<'_>,
    tasks: Vec<TaskIndex>,
    new_run: Option<&Facts>,
) -> Result<()> {
    let mut scopes = TemplateScopes::of(unit, slice, &tasks, new_run).await?;
    for task in tasks {
        let directive = match scopes.read(unit, slice, task).await? {
            Some(Ok(scope)) => directive(runtime, unit, slice, task, &scope).await?,
            Some(Err(failure)) => Directive::Broken(failure),
            None => Directive::Broken(Failure::permanent("the run's inputs do not exist any more")),
        };
        slice.activate(task, directive);
    }
    Ok(())
}

async fn directive(
    runtime: &Runtime,
    unit: &mut dyn Transaction,
    slice: &RunSlice<'_>,
    task: TaskIndex,
    scope: &Scope,
) -> Result<Directive> {
    let spec = slice.spec(task);
    if let Some(directive) = unmet(slice, task, scope) {
        return Ok(directive);
    }
    match decide(runtime, slice, spec, scope) {
        Err(failure) => Ok(Directive::Broken(failure)),
        Ok(Directive::Await { signal: Some(signal), until }) => {
            Ok(match unit.signal(slice.run().id, &signal).await? {
                Some(payload) => Directive::Received { signal, payload, until },
                None => Directive::Await { signal: Some(signal), until },
            })
        }
        Ok(Directive::Go) if spec.kind == TaskKind::FanIn => fan_in::gather(unit, slice, task).await,
        Ok(Directive::Go) => match &spec.global {
            Some(global) => join(runtime, unit, slice, task, scope, global).await,
            None => Ok(Directive::Go),
        },
        Ok(directive) => Ok(directive),
    }
}

fn decide(runtime: &Runtime, slice: &RunSlice<'_>, spec: &TaskSpec, scope: &Scope) -> Judged<Directive> {
    let now = runtime.clock.now();
    Ok(match spec.kind {
        TaskKind::Switch => choose(slice.graph(), spec, scope)?,
        TaskKind::Transform => {
            let transform: Transform = settings(spec, scope)?;
            Directive::Output(expression::evaluate(&transform.expression, scope).map_err(permanent)?.value)
        }
        TaskKind::FanOut => match &spec.fan_out {
            Some(plan) => Directive::FanOut(items(plan, scope)?),
            None => return Err(Failure::permanent("a fan_out without a task cannot begin")),
        },
        TaskKind::Workflow => {
            if slice.run().depth >= MAX_DEPTH {
                let message = format!("runs start runs at most {MAX_DEPTH} deep: does one start itself?");
                return Err(Failure::permanent(message));
            }
            let ChildWorkflow { workflow, inputs, wait } = settings(spec, scope)?;
            Directive::StartChild { workflow, inputs, wait }
        }
        TaskKind::Sensor => Directive::Poll,
        TaskKind::Sleep => Directive::SleepUntil(settings::<Sleep>(spec, scope)?.ends(now)),
        TaskKind::WaitForSignal => {
            let wait: WaitForSignal = settings(spec, scope)?;
            let until = wait.timeout.map(|limit| now + limit.to_std());
            Directive::Await { until, signal: Some(wait.signal) }
        }
        TaskKind::Approval => {
            let ask: Approval = settings(spec, scope)?;
            Directive::Await { signal: None, until: ask.deadline(now) }
        }
        TaskKind::FanIn
        | TaskKind::Noop
        | TaskKind::Echo
        | TaskKind::Fail
        | TaskKind::Flaky
        | TaskKind::Http
        | TaskKind::Bash
        | TaskKind::Python
        | TaskKind::Custom(_) => Directive::Go,
    })
}

/// Joins the runs that need the same work of a shared task: the first of them executes it for all.
async fn join(
    runtime: &Runtime,
    unit: &mut dyn Transaction,
    slice: &RunSlice<'_>,
    task: TaskIndex,
    scope: &Scope,
    global: &Global,
) -> Result<Directive> {
    let spec = slice.spec(task);
    let key = match work_key(spec, scope) {
        Ok(key) => key,
        Err(failure) => return Ok(Directive::Broken(failure)),
    };
    let now = runtime.clock.now();
    let row = slice.task(task);
    // A success while a task waited for it is reused, even if its message did not arrive.
    let waits_since = row.filter(|row| row.state == TaskState::Sleeping).map_or(now, |row| row.since);
    // A success before a task was cleared is not reused.
    let cleared = row.filter(|row| row.state == TaskState::Pending && row.voided > 0);
    let fresh_since = waits_since.min(now - TimeDelta::seconds(global.reuse_for_seconds.into()));
    let ask = ShareAsk {
        tenant: slice.run().tenant,
        name: global.name.clone(),
        key,
        by: slice.key(task),
        attempt: row.map_or(1, |row| row.attempt.max(1)),
        fresh_since: cleared.map_or(fresh_since, |row| fresh_since.max(row.since)),
    };
    Ok(match unit.share(&ask).await? {
        Share::Own => Directive::Go,
        Share::Wait(owner) => Directive::AwaitShared(owner),
        Share::Reuse(_, output) => Directive::Output(output),
    })
}

/// The directive of a task whose condition does not hold. The condition of a task that began before is not evaluated again.
fn unmet(slice: &RunSlice<'_>, task: TaskIndex, scope: &Scope) -> Option<Directive> {
    let begins = slice.task(task).is_some_and(|row| row.state == TaskState::Pending);
    let condition = slice.spec(task).when.as_ref().filter(|_| begins)?;
    match expression::evaluate(condition, scope) {
        Ok(Evaluated { truth: true, .. }) => None,
        Ok(Evaluated { seen, .. }) => {
            Some(Directive::Skip { condition: condition.clone(), seen: Value::Object(seen) })
        }
        Err(error) => Some(Directive::Broken(permanent(error))),
    }
}

/// The key of an execution of a shared task: the same rendered settings are the same work, if workers of the same
/// queue do it.
fn work_key(spec: &TaskSpec, scope: &Scope) -> Judged<String> {
    // Which attempt of which run asks makes no difference, nor what a secret is at the moment.
    let scope = Scope { secrets: placeholders(&spec.config), ..scope.clone() };
    let rendered = render(spec, &scope)?;
    let work = json!([spec.kind, spec.queue, rendered]).to_string();
    Ok(Uuid::new_v5(&Uuid::NAMESPACE_OID, work.as_bytes()).to_string())
}

/// The items that a fan-out is over.
fn items(plan: &FanOut, scope: &Scope) -> Judged<Vec<Value>> {
    let items = match expression::evaluate(&plan.for_each, scope).map_err(permanent)?.value {
        Value::Array(items) => items,
        other => {
            let message =
                format!("`for_each` must be a list, and `{}` is {}", plan.for_each, describe(&other));
            return Err(Failure::permanent(message));
        }
    };
    if items.len() > MAX_ITEMS {
        let message = format!("`for_each` has {} items, more than the {MAX_ITEMS} allowed", items.len());
        return Err(Failure::permanent(message));
    }
    Ok(items)
}

fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

/// The first branch of a switch whose condition holds, else its default, else no branch at all.
fn choose(graph: &Graph, spec: &TaskSpec, scope: &Scope) -> Judged<Directive> {
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
fn settings<T: DeserializeOwned>(spec: &TaskSpec, scope: &Scope) -> Judged<T> {
    config::read(&spec.kind, render(spec, scope)?).map_err(permanent)
}

/// A task's config with every template in it rendered.
pub(crate) fn render(spec: &TaskSpec, scope: &Scope) -> Judged<Value> {
    TaskType::of(&spec.kind).render(&spec.config, scope).map_err(permanent)
}

fn permanent(error: impl std::fmt::Display) -> Failure {
    Failure::permanent(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(queue: &str, kind: TaskKind, config: Value) -> String {
        let spec = TaskSpec { queue: queue.to_owned(), kind, config, ..TaskSpec::default() };
        work_key(&spec, &Scope::default()).unwrap()
    }

    #[test]
    fn only_the_same_settings_in_the_same_queue_are_the_same_work() {
        let work = key("default", TaskKind::Noop, json!({"a": 1}));
        assert_eq!(key("default", TaskKind::Noop, json!({"a": 1})), work);
        assert_ne!(key("trusted", TaskKind::Noop, json!({"a": 1})), work);
        assert_ne!(key("default", TaskKind::Echo, json!({"a": 1})), work);
        assert_ne!(key("default", TaskKind::Noop, json!({"a": 2})), work);
    }
}

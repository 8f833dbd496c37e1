//! Stubs: the results of attempts, since no task is executed.

use chrono::TimeDelta;
use language::document::{Data, Fields, Node, Place, Report, choice, entries, text};
use model::message::TaskResult;
use model::{ErrorClass, Failure, RunId, RunState, TaskSpec, WaitsFor};
use serde_json::{Map, Value, json};

use crate::fixtures::{Fixtures, matches_task, work_of};
use crate::read;

const ENDS: [&str; 3] = ["succeeded", "failed", "cancelled"];

/// The result of one attempt.
#[derive(Clone, Debug)]
pub(crate) struct Stub {
    pub(crate) at: Place,
    pub(crate) takes: TimeDelta,
    pub(crate) end: End,
}

/// How an attempt ends.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// With this result.
    Result(TaskResult),
    /// As the run that it started, which ended in this state with these outputs or this error.
    Run { state: RunState, outputs: Map<String, Value>, error: Option<String> },
}

/// The stubs of one task, by attempt; the last applies to all further attempts.
#[derive(Clone, Debug)]
pub(crate) struct Stubs {
    pub(crate) task: String,
    pub(crate) at: Place,
    pub(crate) attempts: Vec<Stub>,
}

impl Stubs {
    /// Reads the stubs of all tasks.
    pub(crate) fn read(node: &Node, fixtures: &Fixtures, report: &mut Report<'_>) -> Vec<Self> {
        let tasks = entries(node, "`tasks`", report);
        let mut stubs = Vec::new();
        for (key, node) in tasks {
            let work = fixtures.find(&key.name, &key.at, report).map(work_of);
            work.iter().for_each(|work| refuse_engine_task(&key.name, work, &key.at, report));
            let attempts = read::one_or_more(node);
            if attempts.is_empty() {
                report.add(&node.at, "a list of attempts needs at least one", None);
            }
            let starts_run = work.is_some_and(|work| work.kind.starts_run());
            let attempts = attempts.iter().filter_map(|node| Stub::read(node, starts_run, report)).collect();
            stubs.push(Self { task: key.name.clone(), at: key.at.clone(), attempts });
        }
        stubs
    }

    /// The stub of one attempt: the task's own or, for a child of a fan-out, that of all its children.
    pub(crate) fn find<'s>(all: &'s [Self], task: &str, attempt: u32) -> Option<&'s Stub> {
        let own = all.iter().find(|stubs| stubs.task == task);
        let stubs = own.or_else(|| all.iter().find(|stubs| matches_task(&stubs.task, task)))?;
        stubs.attempts.get(attempt.saturating_sub(1) as usize).or(stubs.attempts.last())
    }
}

impl Stub {
    fn read(node: &Node, starts_run: bool, report: &mut Report<'_>) -> Option<Self> {
        let mut fields = Fields::of(node, "a stub", report)?;
        let takes = fields.get("takes").and_then(|node| read::span(node, report)).unwrap_or_default();
        let end = if starts_run { read_run(&mut fields, report) } else { read_result(&mut fields, report) };
        fields.finish(report);
        Some(Self { at: node.at.clone(), takes, end: end? })
    }
}

impl End {
    /// The result for the task, which may have started `run`.
    pub(crate) fn result(&self, run: RunId) -> TaskResult {
        match self {
            Self::Result(result) => result.clone(),
            Self::Run { state: RunState::Succeeded, outputs, .. } => {
                TaskResult::Succeeded(json!({"run_id": run, "outputs": outputs}))
            }
            Self::Run { state: RunState::Failed, error, .. } => {
                let said = error.as_deref().unwrap_or("no reason given");
                TaskResult::Failed(Failure::transient(format!("run {run} failed: {said}")))
            }
            Self::Run { state, .. } => {
                TaskResult::Failed(Failure::permanent(format!("run {run} was {}", state.name())))
            }
        }
    }
}

fn read_result(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Option<End> {
    let (output, fail) = (fields.get("output"), fields.get("fail"));
    if let (Some(_), Some(fail)) = (output, fail) {
        let hint = "use a list for several attempts".to_owned();
        report.add(&fail.at, "an attempt has either an `output` or a `fail`, not both", Some(hint));
    }
    Some(End::Result(match fail {
        Some(fail) => TaskResult::Failed(failure(fail, report)?),
        None => TaskResult::Succeeded(output.map_or(Value::Null, Node::to_json)),
    }))
}

/// How the run ended that the attempt started; it is not executed.
fn read_run(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Option<End> {
    let state = fields.get("run").map(|node| choice(node, &ENDS, report));
    let state = state.unwrap_or(Some(RunState::Succeeded))?;
    let (outputs, error) = (fields.get("outputs"), fields.get("error"));
    for (field, of) in [(outputs, RunState::Succeeded), (error, RunState::Failed)] {
        if let Some(field) = field.filter(|_| state != of) {
            report.add(&field.at, format!("only a run that {} has this field", of.name()), None);
        }
    }
    let outputs = outputs.map(|node| read::mapping(node, report)).unwrap_or_default();
    let error = error.and_then(|node| text(node, report)).map(|word| word.text.to_owned());
    Some(End::Run { state, outputs, error })
}

/// `"connection reset"`, a transient failure, or `{message: …, class: permanent}`.
fn failure(node: &Node, report: &mut Report<'_>) -> Option<Failure> {
    if !matches!(node.data, Data::Map(_)) {
        return text(node, report).map(|word| Failure::transient(word.text));
    }
    let mut fields = Fields::of(node, "a failure", report)?;
    let message = fields.require("message").and_then(|node| text(node, report));
    let classes = ErrorClass::ALL.map(ErrorClass::name);
    let class = fields.get("class").map(|node| choice::<ErrorClass>(node, &classes, report));
    fields.finish(report);
    Some(Failure::new(class.unwrap_or(Some(ErrorClass::Transient))?, message?.text))
}

/// Reports a stub for an engine task. Sensors and child runs may be stubbed.
fn refuse_engine_task(name: &str, work: &TaskSpec, at: &Place, report: &mut Report<'_>) {
    if !work.kind.is_engine_task() {
        return;
    }
    let hint = match work.kind.waits_for() {
        Some(WaitsFor::Run | WaitsFor::Sensor) => return,
        Some(WaitsFor::Signal | WaitsFor::Approval) => "provide the answer under `meanwhile`",
        Some(WaitsFor::Timer | WaitsFor::Children) | None => "stub the tasks it depends on instead",
    };
    let message = format!("`{name}` takes no stub: the engine executes `{}` itself", work.kind);
    report.add(at, message, Some(hint.to_owned()));
}

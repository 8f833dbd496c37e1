//! Stubs: the results of attempts, since no task is executed.

use chrono::TimeDelta;
use language::TypeChecks;
use language::document::{Data, Key, Node, Position, Record, Report, StubFields};
use model::message::TaskResult;
use model::{Failure, RunId, RunState, TaskSpec, WaitsFor};
use serde_json::{Map, Value, json};

use crate::fixtures::{Fixtures, matches_task, work_of};
use crate::suite::mapping;

/// The result of one attempt.
#[derive(Clone, Debug)]
pub(crate) struct Stub {
    pub(crate) at: Position,
    pub(crate) takes: TimeDelta,
    pub(crate) end: End,
}

/// How an attempt ends.
#[derive(Clone, Debug)]
pub(crate) enum End {
    Result(TaskResult),
    /// As the run that it started, which ended in this state with these outputs or this error.
    Run {
        state: RunState,
        outputs: Map<String, Value>,
        error: Option<String>,
    },
}

/// The stubs of one task, by attempt; the last applies to all further attempts.
#[derive(Clone, Debug)]
pub(crate) struct Stubs {
    pub(crate) task: String,
    pub(crate) at: Position,
    pub(crate) attempts: Vec<Stub>,
}

impl Stubs {
    /// Reads the stubs of all tasks.
    pub(crate) fn read(tasks: &[(Key, Node)], fixtures: &Fixtures, report: &mut Report<'_>) -> Vec<Self> {
        let mut stubs = Vec::new();
        for (key, node) in tasks {
            let work = fixtures.find(&key.name, &key.at, report).map(work_of);
            work.iter().for_each(|work| refuse_engine_task(&key.name, work, &key.at, report));
            let attempts = match &node.data {
                Data::List(attempts) => attempts.as_slice(),
                _ => std::slice::from_ref(node),
            };
            if attempts.is_empty() {
                report.add(&node.at, "a list of attempts needs at least one", None);
            }
            let starts_run = work.is_some_and(|work| work.kind.starts_run());
            let checks = work.and_then(|work| fixtures.custom_type(&work.kind));
            let attempts = attempts
                .iter()
                .filter_map(|node| Stub::read(node, starts_run, checks.as_ref(), report))
                .collect();
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
    fn read(
        node: &Node,
        starts_run: bool,
        checks: Option<&TypeChecks>,
        report: &mut Report<'_>,
    ) -> Option<Self> {
        let fields = StubFields::read(node, report)?;
        check_output(&fields, node, checks, report);
        let takes = fields.takes.and_then(|length| TimeDelta::from_std(length.to_std()).ok());
        let end = if starts_run { read_run(&fields, report) } else { read_result(fields, report) };
        Some(Self { at: node.at.clone(), takes: takes.unwrap_or_default(), end: end? })
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
                let message = error.as_deref().unwrap_or("no reason given");
                TaskResult::Failed(Failure::transient(format!("run {run} failed: {message}")))
            }
            Self::Run { state, .. } => {
                TaskResult::Failed(Failure::permanent(format!("run {run} was {}", state.name())))
            }
        }
    }
}

/// Reports the output of a stub that the task's custom type does not allow.
fn check_output(fields: &StubFields<'_>, stub: &Node, checks: Option<&TypeChecks>, report: &mut Report<'_>) {
    let Some(checks) = checks.filter(|_| fields.fail.is_none()) else { return };
    let (at, output) = match fields.output.and_then(|output| Some((output.at, output.value?))) {
        Some((at, output)) => (at, output.to_json()),
        None => (&stub.at, Value::Null),
    };
    if let Err(error) = checks.check_output(&output) {
        let hint = "a worker's output like this one would fail the attempt".to_owned();
        report.add(at, error.to_string(), Some(hint));
    }
}

fn read_result(fields: StubFields<'_>, report: &mut Report<'_>) -> Option<End> {
    let of_run = [fields.run.map(|run| run.at), fields.outputs.map(|outputs| outputs.at)];
    for at in of_run.into_iter().chain([fields.error.map(|error| error.at)]).flatten() {
        let hint = Some("use `output` or `fail`".to_owned());
        report.add(at, "this task starts no run, so its stub has no such field", hint);
    }
    if let (Some(_), Some(fail)) = (&fields.output, &fields.fail) {
        let hint = "use a list for several attempts".to_owned();
        report.add(fail.at, "an attempt has either an `output` or a `fail`, not both", Some(hint));
    }
    Some(End::Result(match fields.fail {
        Some(fail) => TaskResult::Failed(fail.value?),
        None => TaskResult::Succeeded(
            fields.output.and_then(|output| output.value).map_or(Value::Null, Node::to_json),
        ),
    }))
}

/// How the run ended that the attempt started; it is not executed.
fn read_run(fields: &StubFields<'_>, report: &mut Report<'_>) -> Option<End> {
    let of_attempt = [fields.output.map(|output| output.at), fields.fail.as_ref().map(|fail| fail.at)];
    for at in of_attempt.into_iter().flatten() {
        let hint = Some("use `run`, `outputs` and `error`".to_owned());
        report.add(at, "this task starts a run, so its stub has no such field", hint);
    }
    let state = fields.run.map_or(Some(RunState::Succeeded), |run| run.value)?;
    let owners = [
        (fields.outputs.map(|outputs| outputs.at), RunState::Succeeded),
        (fields.error.map(|error| error.at), RunState::Failed),
    ];
    for (at, owner) in owners {
        if let Some(at) = at.filter(|_| state != owner) {
            report.add(at, format!("only a run that {} has this field", owner.name()), None);
        }
    }
    let outputs = fields.outputs.and_then(|outputs| outputs.value).map(mapping).unwrap_or_default();
    let error = fields.error.and_then(|error| error.value).map(|word| word.text.to_owned());
    Some(End::Run { state, outputs, error })
}

/// Reports a stub for an engine task. Sensors and child runs may be stubbed.
fn refuse_engine_task(name: &str, work: &TaskSpec, at: &Position, report: &mut Report<'_>) {
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

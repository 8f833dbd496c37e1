//! What an attempt comes to, and after how long.

use chrono::TimeDelta;
use language::config::{self, Fail};
use language::kinds::{Kind, kind};
use model::message::TaskResult;
use model::{ErrorClass, Failure, Instant, TaskKey, TaskSpec, WorkerId};
use serde_json::Value;

/// An attempt under way, with the end that it will come to.
pub(crate) struct Attempt {
    pub(crate) key: TaskKey,
    pub(crate) number: u32,
    /// Who holds it; nobody, where a run of its own does the work.
    pub(crate) worker: Option<WorkerId>,
    pub(crate) started_at: Instant,
    pub(crate) result: TaskResult,
}

/// How long an attempt with this rendered config takes, at most as long as it may, and what it comes to: what is stubbed.
pub(crate) fn perform(
    spec: &TaskSpec,
    stubbed: Option<(TimeDelta, TaskResult)>,
    config: &Value,
    limit: TimeDelta,
) -> (TimeDelta, TaskResult) {
    let Some(kind) = kind(&spec.kind) else { return failed(format!("no task type `{}`", spec.kind)) };
    // A config that a worker would refuse is refused here, whatever the stub says.
    if let Err(error) = config::read::<Value>(kind, config.clone()) {
        return failed(error.to_string());
    }
    match stubbed {
        Some((takes, result)) => in_time(takes, result, limit),
        None => (TimeDelta::zero(), carry_out(kind, config)),
    }
}

/// The types without effects do what they do; work that nobody stubbed succeeds with no output.
fn carry_out(kind: &Kind, config: &Value) -> TaskResult {
    match kind.name {
        "echo" => TaskResult::Succeeded(config.clone()),
        "fail" => match config::read::<Fail>(kind, config.clone()) {
            Ok(Fail { message, class }) => TaskResult::Failed(Failure::new(class, message.0)),
            Err(error) => TaskResult::Failed(Failure::permanent(error.to_string())),
        },
        _ => TaskResult::Succeeded(Value::Null),
    }
}

/// An attempt that would take longer than it may ends when its time is up.
fn in_time(takes: TimeDelta, result: TaskResult, limit: TimeDelta) -> (TimeDelta, TaskResult) {
    if takes <= limit {
        return (takes, result);
    }
    let seconds = limit.num_milliseconds() as f64 / 1_000.0;
    let message = format!("the attempt took longer than its timeout_seconds of {seconds}");
    (limit, TaskResult::Failed(Failure::new(ErrorClass::Timeout, message)))
}

fn failed(message: String) -> (TimeDelta, TaskResult) {
    (TimeDelta::zero(), TaskResult::Failed(Failure::permanent(message)))
}

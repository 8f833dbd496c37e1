//! What an attempt comes to, and after how long.

use chrono::TimeDelta;
use language::config::{self, Fail};
use language::kinds::{Kind, kind};
use model::message::TaskResult;
use model::{ErrorClass, Failure, Instant, TaskIndex, TaskSpec};
use serde_json::Value;

use crate::stub::Stub;

/// An attempt under way, with the end that it will come to.
pub(crate) struct Attempt {
    pub(crate) task: TaskIndex,
    pub(crate) number: u32,
    pub(crate) started_at: Instant,
    pub(crate) result: TaskResult,
}

/// How long an attempt with this rendered config takes, and what it comes to.
pub(crate) fn perform(spec: &TaskSpec, stub: Option<&Stub>, config: &Value) -> (TimeDelta, TaskResult) {
    let Some(kind) = kind(&spec.kind) else { return failed(format!("no task type `{}`", spec.kind)) };
    // A config that a worker would refuse is refused here, whatever the stub says.
    if let Err(error) = config::read::<Value>(kind, config.clone()) {
        return failed(error.to_string());
    }
    match stub {
        Some(stub) => in_time(spec, stub.takes, stub.result.clone()),
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
fn in_time(spec: &TaskSpec, takes: TimeDelta, result: TaskResult) -> (TimeDelta, TaskResult) {
    let limit = TimeDelta::seconds(spec.timeout_seconds.into());
    if takes <= limit {
        return (takes, result);
    }
    let message = format!("the attempt took longer than its timeout_seconds of {}", spec.timeout_seconds);
    (limit, TaskResult::Failed(Failure::new(ErrorClass::Timeout, message)))
}

fn failed(message: String) -> (TimeDelta, TaskResult) {
    (TimeDelta::zero(), TaskResult::Failed(Failure::permanent(message)))
}

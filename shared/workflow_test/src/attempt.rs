//! The result of an attempt, and how long it takes.

use chrono::TimeDelta;
use language::config::{self, Fail};
use model::message::TaskResult;
use model::{ErrorClass, Failure, Instant, TaskKey, TaskKind, TaskSpec, WorkerId};
use serde_json::Value;

/// An active attempt, with the result it will have.
pub(crate) struct Attempt {
    pub(crate) key: TaskKey,
    pub(crate) number: u32,
    /// Its worker; none if a child run does the work.
    pub(crate) worker: Option<WorkerId>,
    pub(crate) started_at: Instant,
    pub(crate) result: TaskResult,
}

/// The duration, at most `limit`, and the result of an attempt with this rendered config and stub.
pub(crate) fn perform(
    spec: &TaskSpec,
    stubbed: Option<(TimeDelta, TaskResult)>,
    config: &Value,
    limit: TimeDelta,
) -> (TimeDelta, TaskResult) {
    // A config that a worker would reject fails here, too, whatever the stub says.
    if let Err(error) = config::read::<Value>(&spec.kind, config.clone()) {
        return failed(error.to_string());
    }
    match stubbed {
        Some((takes, result)) => limited(takes, result, limit),
        None => (TimeDelta::zero(), execute(&spec.kind, config)),
    }
}

/// Inline tasks do what they always do, except that `flaky` never fails; other work without a stub succeeds with no output.
fn execute(kind: &TaskKind, config: &Value) -> TaskResult {
    match kind {
        TaskKind::Echo => TaskResult::Succeeded(config.clone()),
        TaskKind::Fail => match config::read::<Fail>(kind, config.clone()) {
            Ok(Fail { message, class }) => TaskResult::Failed(Failure::new(class, message.0)),
            Err(error) => TaskResult::Failed(Failure::permanent(error.to_string())),
        },
        _ => TaskResult::Succeeded(Value::Null),
    }
}

/// Ends an attempt that would exceed its limit at the limit.
fn limited(takes: TimeDelta, result: TaskResult, limit: TimeDelta) -> (TimeDelta, TaskResult) {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn inline_tasks_do_what_they_do_on_a_worker() {
        let config = json!({"message": "boom", "class": "permanent"});
        for kind in TaskKind::ALL.iter().filter(|kind| kind.is_inline()) {
            let expected = match kind {
                TaskKind::Noop | TaskKind::Flaky => TaskResult::Succeeded(Value::Null),
                TaskKind::Echo => TaskResult::Succeeded(config.clone()),
                TaskKind::Fail => TaskResult::Failed(Failure::permanent("boom")),
                other => panic!("`{other}` is an inline task: `execute` must do what its runner does"),
            };
            assert_eq!(execute(kind, &config), expected, "{kind}");
        }
    }
}

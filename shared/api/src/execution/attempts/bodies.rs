//! The bodies of reports about attempts.

use model::ErrorClass;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::logs::LineView;

/// The output of an attempt.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteBody {
    /// The name of the worker that holds the attempt.
    #[schemars(length(min = 1, max = 100))]
    pub worker: String,
    /// The output of the task.
    #[serde(default)]
    pub output: Value,
}

/// Why an attempt failed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailBody {
    /// The name of the worker that holds the attempt.
    #[schemars(length(min = 1, max = 100))]
    pub worker: String,
    /// The error message for people.
    #[schemars(length(max = 10_000))]
    pub message: String,
    /// The kind of failure, which decides about a retry; default `program_failed`.
    #[serde(default)]
    pub class: FailClass,
    /// The exit code of the program, if it ended by itself.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// The signal that ended the program, if one did.
    #[serde(default)]
    pub signal: Option<i32>,
    /// More about the failure, for people, of at most 64 KiB as JSON.
    #[serde(default)]
    pub detail: Option<Value>,
    /// Minimum delay before the next attempt, in seconds, as another system asked for it. Such a failure does not count towards a
    /// circuit breaker.
    #[serde(default)]
    #[schemars(range(max = 86_400))]
    pub retry_after_seconds: Option<u32>,
}

/// The kinds of failures that a worker can report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailClass {
    /// The work failed, and nothing says why: retried while the policy allows.
    #[default]
    ProgramFailed,
    /// It may pass by itself: retried while the policy allows.
    Transient,
    /// It will not pass: never retried.
    Permanent,
    /// The program was killed by something else than its worker.
    Killed,
    /// The attempt took longer than its timeout.
    Timeout,
}

impl From<ErrorClass> for FailClass {
    fn from(class: ErrorClass) -> Self {
        match class {
            ErrorClass::ProgramFailed => Self::ProgramFailed,
            ErrorClass::Transient | ErrorClass::WorkerLost => Self::Transient,
            ErrorClass::Permanent | ErrorClass::OutcomeUnknown | ErrorClass::NotTaken => Self::Permanent,
            ErrorClass::Killed => Self::Killed,
            ErrorClass::Timeout => Self::Timeout,
        }
    }
}

impl FailClass {
    pub(super) fn class(self) -> ErrorClass {
        match self {
            Self::ProgramFailed => ErrorClass::ProgramFailed,
            Self::Transient => ErrorClass::Transient,
            Self::Permanent => ErrorClass::Permanent,
            Self::Killed => ErrorClass::Killed,
            Self::Timeout => ErrorClass::Timeout,
        }
    }
}

/// Why a worker hands an attempt back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseBody {
    /// The name of the worker that holds the attempt.
    #[schemars(length(min = 1, max = 100))]
    pub worker: String,
    /// The reason, for people.
    #[serde(default, deserialize_with = "crate::request::brief")]
    #[schemars(length(max = 1000))]
    pub reason: Option<String>,
    /// Whether the worker had begun it; false if it never received the attempt.
    #[serde(default = "begun")]
    pub begun: bool,
}

fn begun() -> bool {
    true
}

/// The checkpoint of an attempt.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointBody {
    /// The name of the worker that holds the attempt.
    #[schemars(length(min = 1, max = 100))]
    pub worker: String,
    /// The state from which the next attempt continues, if this one ends early.
    pub checkpoint: Value,
}

/// Lines of an attempt's log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogBody {
    /// The name of the worker that holds the attempt.
    #[schemars(length(min = 1, max = 100))]
    pub worker: String,
    /// The number of the first line, from 0. Lines already received are ignored.
    pub first: u32,
    /// The lines; `stream` is `stdout`, `stderr`, or `system` for what the worker says itself.
    #[schemars(length(max = 1000))]
    pub lines: Vec<LineView>,
}

/// Whether a report was recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepView {
    /// Always true, also if the same report was recorded before; other reports are refused.
    pub applied: bool,
}

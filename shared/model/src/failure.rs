//! Why an attempt did not succeed, classed by what should follow from it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The kind of failure; the retry decision starts here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// Its program, or a worker on its behalf, reported that the work failed, and not why: retried while the policy allows.
    ProgramFailed,
    /// Something that the work needs did not respond or refused for now: retried while the policy allows.
    Transient,
    /// Will not pass: bad config, permission, not found. Not retried.
    Permanent,
    /// Something else killed the process: a loss.
    Killed,
    /// The worker went silent: a loss.
    WorkerLost,
    /// The attempt ran longer than it may: retried while the policy allows.
    Timeout,
    /// The attempt began, its end is unknown, and a second one could do harm: a person decides.
    OutcomeUnknown,
    /// No worker claimed the attempt within `dispatch_timeout_seconds`. Not retried.
    NotTaken,
}

impl ErrorClass {
    /// Every class, in the order of their declaration.
    pub const ALL: [ErrorClass; 8] = [
        Self::ProgramFailed,
        Self::Transient,
        Self::Permanent,
        Self::Killed,
        Self::WorkerLost,
        Self::Timeout,
        Self::OutcomeUnknown,
        Self::NotTaken,
    ];

    /// The classes that a program may give its own failure, in the file `EBB_FAILURE` or over the API.
    pub const OF_PROGRAMS: [ErrorClass; 3] = [Self::ProgramFailed, Self::Transient, Self::Permanent];

    /// The name used in rows, messages and API responses.
    pub fn name(self) -> &'static str {
        match self {
            Self::ProgramFailed => "program_failed",
            Self::Transient => "transient",
            Self::Permanent => "permanent",
            Self::Killed => "killed",
            Self::WorkerLost => "worker_lost",
            Self::Timeout => "timeout",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::NotTaken => "not_taken",
        }
    }

    /// The class of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// Whether the attempt ended without a word from its program, so that nobody knows what it did.
    pub fn is_loss(self) -> bool {
        matches!(self, Self::Killed | Self::WorkerLost)
    }

    /// Whether another attempt could succeed, as far as the class tells.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::ProgramFailed | Self::Transient | Self::Killed | Self::WorkerLost | Self::Timeout => true,
            Self::Permanent | Self::OutcomeUnknown | Self::NotTaken => false,
        }
    }
}

/// One failure as an attempt reports it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// The kind of failure, which decides about a retry.
    pub class: ErrorClass,
    /// In words, for a person.
    pub message: String,
    /// The exit code, where a process ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended the process, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Details that the program added for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Value>,
    /// How long the other side asked to be left alone: it is busy and not broken, so the failure counts for no breaker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u32>,
}

impl Failure {
    /// A failure without an exit code.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        let (exit_code, signal, detail, retry_after_seconds) = Default::default();
        Self { class, message: message.into(), exit_code, signal, detail, retry_after_seconds }
    }

    /// A failure that another attempt cannot fix.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Permanent, message)
    }

    /// A failure that may pass by itself.
    pub fn transient(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Transient, message)
    }

    /// The failure of a program that did not say why it failed.
    pub fn of_program(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::ProgramFailed, message)
    }
}

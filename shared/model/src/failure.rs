//! Why an attempt did not succeed, classed by what should follow from it.

use serde::{Deserialize, Serialize};

/// The kind of failure; the retry decision starts here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// May pass by itself: retried while the policy allows.
    Transient,
    /// Will not pass: bad config, permission, not found. Never retried.
    Permanent,
    /// The process was killed by someone else: retried once.
    Killed,
    /// The worker went silent: retried while the policy allows.
    WorkerLost,
    /// The attempt ran longer than it may: retried like a transient one.
    Timeout,
}

impl ErrorClass {
    /// Every class, in the order of their declaration.
    pub const ALL: [ErrorClass; 5] =
        [Self::Transient, Self::Permanent, Self::Killed, Self::WorkerLost, Self::Timeout];

    /// The name used in rows, messages and API responses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Permanent => "permanent",
            Self::Killed => "killed",
            Self::WorkerLost => "worker_lost",
            Self::Timeout => "timeout",
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
}

impl Failure {
    /// A failure without an exit code.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), exit_code: None }
    }

    /// A failure that another attempt cannot fix.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Permanent, message)
    }

    /// A failure that may pass by itself.
    pub fn transient(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Transient, message)
    }
}

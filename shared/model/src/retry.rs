//! How often and after how long a failed task is tried again, as data. The choice is `engine::retry`.

use serde::{Deserialize, Serialize};

use crate::{ErrorClass, Failure};

/// How the delay grows from one retry to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// The delay grows by the same factor each time.
    #[default]
    Exponential,
    /// The delay grows by the first one each time.
    Linear,
    /// The delay stays the same.
    Constant,
}

/// The retry settings of a task, complete: defaults are already filled in.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// The number of attempts after the first one.
    pub max_retries: u32,
    /// How the delay grows from one retry to the next.
    pub backoff: Backoff,
    /// The factor by which an exponential delay grows.
    #[serde(default = "default_multiplier", skip_serializing_if = "is_default_multiplier")]
    pub multiplier: f64,
    /// The delay before the first retry.
    pub initial_delay_seconds: f64,
    /// The maximum delay before a retry.
    pub max_delay_seconds: f64,
    /// The part of itself by which each delay is randomly shortened or lengthened, at most.
    pub jitter: f64,
    /// The exit codes that are retried; with these or `retry_on`, nothing else is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retry_exit_codes: Vec<i32>,
    /// The exit codes that are never retried.
    #[serde(default = "default_no_retry_exit_codes", skip_serializing_if = "is_default_no_retry_exit_codes")]
    pub no_retry_exit_codes: Vec<i32>,
    /// The failures that are retried; with these or `retry_exit_codes`, nothing else is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retry_on: Vec<FailurePattern>,
    /// The failures that are never retried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub no_retry_on: Vec<FailurePattern>,
}

/// By convention, the exit codes of a program that could not be started.
pub const NOT_STARTED_EXIT_CODES: [i32; 3] = [125, 126, 127];

fn default_multiplier() -> f64 {
    2.0
}

fn is_default_multiplier(multiplier: &f64) -> bool {
    *multiplier == default_multiplier()
}

fn default_no_retry_exit_codes() -> Vec<i32> {
    NOT_STARTED_EXIT_CODES.to_vec()
}

fn is_default_no_retry_exit_codes(codes: &[i32]) -> bool {
    codes == NOT_STARTED_EXIT_CODES
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 0,
            backoff: Backoff::Exponential,
            multiplier: default_multiplier(),
            initial_delay_seconds: 30.0,
            max_delay_seconds: 3600.0,
            jitter: 0.1,
            retry_exit_codes: Vec::new(),
            no_retry_exit_codes: default_no_retry_exit_codes(),
            retry_on: Vec::new(),
            no_retry_on: Vec::new(),
        }
    }
}

/// Which failures a policy means: those of a class, or those whose message contains a text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum FailurePattern {
    /// Every failure of the class.
    Class(ErrorClass),
    /// Failures whose message contains the text, whatever its case; `*` stands for any text.
    Message(String),
}

/// A word that looks like the name of a class, and is none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown error class `{0}`")]
pub struct UnknownClass(pub String);

impl TryFrom<String> for FailurePattern {
    type Error = UnknownClass;

    /// A word of small letters and underscores is a class; anything else is part of a message.
    fn try_from(text: String) -> Result<Self, UnknownClass> {
        if let Some(class) = ErrorClass::named(&text) {
            return Ok(Self::Class(class));
        }
        let is_word = text.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_');
        if is_word { Err(UnknownClass(text)) } else { Ok(Self::Message(text)) }
    }
}

impl From<FailurePattern> for String {
    fn from(pattern: FailurePattern) -> Self {
        pattern.to_string()
    }
}

impl std::fmt::Display for FailurePattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Class(class) => f.write_str(class.name()),
            Self::Message(text) => f.write_str(text),
        }
    }
}

impl FailurePattern {
    /// Whether the pattern means this failure.
    pub fn matches(&self, failure: &Failure) -> bool {
        match self {
            Self::Class(class) => failure.class == *class,
            Self::Message(text) => contains(&failure.message.to_lowercase(), &text.to_lowercase()),
        }
    }
}

/// Whether the parts between the stars occur in the text, one after the other. The first place of each part is as good as any
/// later one, so one pass is enough.
fn contains(text: &str, pattern: &str) -> bool {
    let mut rest = Some(text);
    for part in pattern.split('*') {
        rest = rest.and_then(|rest| rest.split_once(part)).map(|(_, after)| after);
    }
    rest.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> FailurePattern {
        FailurePattern::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn a_pattern_is_a_class_or_part_of_a_message() {
        let failure =
            Failure::of_program("exited with code 1: psycopg.OperationalError: Connection reset by peer");
        for (text, matches) in [
            ("program_failed", true),
            ("transient", false),
            ("*connection reset*", true),
            ("OperationalError: connection", true),
            ("psycopg.*reset", true),
            ("reset*psycopg", false),
            ("code 2", false),
            ("*", true),
        ] {
            assert_eq!(pattern(text).matches(&failure), matches, "{text}");
        }
    }

    #[test]
    fn a_word_that_is_no_class_is_rejected() {
        let error = FailurePattern::try_from("transiant".to_owned()).unwrap_err();
        assert_eq!(error.to_string(), "unknown error class `transiant`");
    }

    #[test]
    fn a_policy_without_the_newer_fields_reads_as_the_default() {
        let plain = r#"{"max_retries": 0, "backoff": "exponential", "initial_delay_seconds": 30.0,
            "max_delay_seconds": 3600.0, "jitter": 0.1}"#;
        let policy: RetryPolicy = serde_json::from_str(plain).unwrap();
        assert_eq!(policy, RetryPolicy::default());
        let written = serde_json::to_value(&policy).unwrap();
        assert_eq!(written, serde_json::from_str::<serde_json::Value>(plain).unwrap());
        let refined = RetryPolicy { no_retry_on: vec![pattern("*quota*"), pattern("timeout")], ..policy };
        let again: RetryPolicy = serde_json::from_value(serde_json::to_value(&refined).unwrap()).unwrap();
        assert_eq!(again, refined);
    }
}

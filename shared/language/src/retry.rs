//! `retry_policy`, as written in parts and as completed.

use model::{Backoff, ErrorClass, FailurePattern, NOT_STARTED_EXIT_CODES, RetryPolicy};
use serde_json::json;

use crate::diagnostic::Report;
use crate::node::Node;
use crate::read;
use crate::shape::{Shape, choice, custom, number, record, several, signed, whole, with_default};

const BACKOFFS: [&str; 3] = ["exponential", "linear", "constant"];
const MAX_RETRIES: u32 = 100;
/// A day: no delay is longer.
const MAX_DELAY_SECONDS: f64 = 86_400.0;
const MAX_MULTIPLIER: f64 = 10.0;
const MAX_EXIT_CODE: i32 = 255;
/// The maximum length of a pattern, in characters.
const MAX_PATTERN: usize = 200;

record! {
    /// The settings of a retry policy that one file gives; the rest comes from a reusable task or from the defaults.
    #[derive(Clone, Debug, Default)]
    pub(crate) struct RetryParts as "a retry policy" {
        /// Attempts after the first; default 0.
        max_retries: u32 = whole(0..=MAX_RETRIES),
        /// How delays grow from one retry to the next.
        backoff: Backoff = choice(&BACKOFFS),
        /// The factor by which exponential delays grow.
        multiplier: f64 = with_default(number(1.0..=MAX_MULTIPLIER), RetryPolicy::default().multiplier),
        /// The delay before the first retry.
        initial_delay_seconds: f64 =
            with_default(number(0.0..=MAX_DELAY_SECONDS), RetryPolicy::default().initial_delay_seconds),
        /// The maximum delay before a retry.
        max_delay_seconds: f64 =
            with_default(number(0.0..=MAX_DELAY_SECONDS), RetryPolicy::default().max_delay_seconds),
        /// The random variation of delays: 0.1 is ten percent.
        jitter: f64 = number(0.0..=1.0),
        /// Exit codes that are retried. With `retry_exit_codes` or `retry_on`, nothing else is.
        retry_exit_codes: Vec<i32> = several(signed(1..=MAX_EXIT_CODE)),
        /// Exit codes that are never retried; default 125, 126 and 127, unless `retry_exit_codes` lists them.
        no_retry_exit_codes: Vec<i32> = several(signed(1..=MAX_EXIT_CODE)),
        /// Failures that are retried: error classes, or parts of the message such as `*connection reset*`. With `retry_on` or
        /// `retry_exit_codes`, nothing else is.
        retry_on: Vec<FailurePattern> = several(pattern()),
        /// Failures that are never retried: error classes, or parts of the message.
        no_retry_on: Vec<FailurePattern> = several(pattern()),
    }
}

impl RetryParts {
    /// The whole policy: no retries unless some are asked for.
    pub(crate) fn complete(self) -> RetryPolicy {
        let default = RetryPolicy::default();
        let retry_exit_codes = self.retry_exit_codes.unwrap_or_default();
        let unlisted = |code: &i32| !retry_exit_codes.contains(code);
        let usual = || NOT_STARTED_EXIT_CODES.into_iter().filter(unlisted).collect();
        RetryPolicy {
            max_retries: self.max_retries.unwrap_or(0),
            backoff: self.backoff.unwrap_or(default.backoff),
            multiplier: self.multiplier.unwrap_or(default.multiplier),
            initial_delay_seconds: self.initial_delay_seconds.unwrap_or(default.initial_delay_seconds),
            max_delay_seconds: self.max_delay_seconds.unwrap_or(default.max_delay_seconds),
            jitter: self.jitter.unwrap_or(default.jitter),
            no_retry_exit_codes: self.no_retry_exit_codes.unwrap_or_else(usual),
            retry_exit_codes,
            retry_on: self.retry_on.unwrap_or_default(),
            no_retry_on: self.no_retry_on.unwrap_or_default(),
        }
    }
}

/// An error class, or part of a message.
fn pattern<'n>() -> impl Shape<'n, Value = FailurePattern> {
    let schema = || {
        let classes = ErrorClass::ALL.map(ErrorClass::name);
        json!({"anyOf": [
            {"type": "string", "enum": classes},
            {"type": "string", "pattern": "[^a-z_]", "maxLength": MAX_PATTERN, "examples": ["*connection reset*"]},
        ]})
    };
    custom(read_pattern, schema)
}

fn read_pattern(node: &Node, report: &mut Report<'_>) -> Option<FailurePattern> {
    let word = read::text(node, report)?;
    if word.text.chars().count() > MAX_PATTERN {
        report.add(word.at, format!("a pattern has at most {MAX_PATTERN} characters"), None);
        return None;
    }
    let pattern = FailurePattern::try_from(word.text.to_owned());
    let unknown = |report: &mut Report<'_>| {
        let hint = match report.budget.nearest(word.text, ErrorClass::ALL.map(ErrorClass::name)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("to match the message, write \"*{}*\"", word.text),
        };
        report.add(word.at, format!("unknown error class `{}`", word.text), Some(hint));
    };
    pattern.map_err(|_| unknown(report)).ok()
}

//! `retry_policy`, as written in parts and as completed.

use model::{Backoff, RetryPolicy};

use crate::diagnostic::Report;
use crate::node::Node;
use crate::read::{self, Fields};

/// How delays grow from one retry to the next.
pub(crate) const BACKOFFS: [&str; 3] = ["exponential", "linear", "constant"];
/// Nothing is tried again more often.
pub(crate) const MAX_RETRIES: u32 = 100;
/// A day: no delay may be longer.
pub(crate) const MAX_DELAY_SECONDS: f64 = 86_400.0;

/// What was written of a retry policy; the rest comes from elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RetryParts {
    max_retries: Option<u32>,
    backoff: Option<Backoff>,
    initial_delay_seconds: Option<f64>,
    max_delay_seconds: Option<f64>,
    jitter: Option<f64>,
}

impl RetryParts {
    pub(crate) fn read(node: &Node, report: &mut Report<'_>) -> Self {
        let Some(mut fields) = Fields::of(node, "a retry policy", report) else { return Self::default() };
        let delays = 0.0..=MAX_DELAY_SECONDS;
        let parts = Self {
            max_retries: fields
                .get("max_retries")
                .and_then(|node| read::whole(node, 0..=MAX_RETRIES, report)),
            backoff: fields.get("backoff").and_then(|node| read::choice(node, &BACKOFFS, report)),
            initial_delay_seconds: fields
                .get("initial_delay_seconds")
                .and_then(|node| read::number(node, delays.clone(), report)),
            max_delay_seconds: fields
                .get("max_delay_seconds")
                .and_then(|node| read::number(node, delays, report)),
            jitter: fields.get("jitter").and_then(|node| read::number(node, 0.0..=1.0, report)),
        };
        fields.finish(report);
        parts
    }

    /// These parts, and where one is missing, the other's.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            max_retries: self.max_retries.or(other.max_retries),
            backoff: self.backoff.or(other.backoff),
            initial_delay_seconds: self.initial_delay_seconds.or(other.initial_delay_seconds),
            max_delay_seconds: self.max_delay_seconds.or(other.max_delay_seconds),
            jitter: self.jitter.or(other.jitter),
        }
    }

    /// The whole policy: no retries unless some are asked for.
    pub(crate) fn complete(self) -> RetryPolicy {
        let usual = RetryPolicy::default();
        RetryPolicy {
            max_retries: self.max_retries.unwrap_or(0),
            backoff: self.backoff.unwrap_or(usual.backoff),
            initial_delay_seconds: self.initial_delay_seconds.unwrap_or(usual.initial_delay_seconds),
            max_delay_seconds: self.max_delay_seconds.unwrap_or(usual.max_delay_seconds),
            jitter: self.jitter.unwrap_or(usual.jitter),
        }
    }
}

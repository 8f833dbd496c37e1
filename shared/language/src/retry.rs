//! `retry_policy`, as written in parts and as completed.

use model::{Backoff, RetryPolicy};

use crate::shape::{choice, number, record, whole, with_default};

const BACKOFFS: [&str; 3] = ["exponential", "linear", "constant"];
const MAX_RETRIES: u32 = 100;
/// A day: no delay is longer.
const MAX_DELAY_SECONDS: f64 = 86_400.0;

record! {
    /// The settings of a retry policy that one file gives; the rest comes from a reusable task or from the defaults.
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct RetryParts as "a retry policy" {
        /// Attempts after the first; default 0.
        max_retries: u32 = whole(0..=MAX_RETRIES),
        /// How delays grow from one retry to the next.
        backoff: Backoff = choice(&BACKOFFS),
        /// The delay before the first retry.
        initial_delay_seconds: f64 =
            with_default(number(0.0..=MAX_DELAY_SECONDS), RetryPolicy::default().initial_delay_seconds),
        /// The maximum delay before a retry.
        max_delay_seconds: f64 =
            with_default(number(0.0..=MAX_DELAY_SECONDS), RetryPolicy::default().max_delay_seconds),
        /// The random variation of delays: 0.1 is ten percent.
        jitter: f64 = number(0.0..=1.0),
    }
}

impl RetryParts {
    /// The whole policy: no retries unless some are asked for.
    pub(crate) fn complete(self) -> RetryPolicy {
        let default = RetryPolicy::default();
        RetryPolicy {
            max_retries: self.max_retries.unwrap_or(0),
            backoff: self.backoff.unwrap_or(default.backoff),
            initial_delay_seconds: self.initial_delay_seconds.unwrap_or(default.initial_delay_seconds),
            max_delay_seconds: self.max_delay_seconds.unwrap_or(default.max_delay_seconds),
            jitter: self.jitter.unwrap_or(default.jitter),
        }
    }
}

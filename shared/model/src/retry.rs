//! How often and after how long a failed task is tried again, as data. The choice is `engine::retry`.

use serde::{Deserialize, Serialize};

/// How the delay grows from one retry to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// The delay doubles each time.
    #[default]
    Exponential,
    /// The delay grows by the first one each time.
    Linear,
    /// The delay stays the same.
    Constant,
}

/// The retry settings of a task, complete: defaults are already filled in.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// The number of attempts after the first one.
    pub max_retries: u32,
    /// How the delay grows from one retry to the next.
    pub backoff: Backoff,
    /// The delay before the first retry.
    pub initial_delay_seconds: f64,
    /// The maximum delay before a retry.
    pub max_delay_seconds: f64,
    /// The part of itself by which each delay is randomly shortened or lengthened, at most.
    pub jitter: f64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 0,
            backoff: Backoff::Exponential,
            initial_delay_seconds: 30.0,
            max_delay_seconds: 3600.0,
            jitter: 0.1,
        }
    }
}

//! What a thread traces, for tests that count statements or read log lines.

use std::sync::LazyLock;

use ::tracing::subscriber::{self, DefaultGuard};
use ::tracing::{Dispatch, Subscriber};
use tracing_subscriber::registry;

/// While fewer than two subscribers exist, the thread that reaches a callsite first decides for all threads whether it is
/// enabled, and a test on another thread has no subscriber. These two stay.
static OTHERS: LazyLock<[Dispatch; 2]> =
    LazyLock::new(|| [Dispatch::new(registry()), Dispatch::new(registry())]);

/// Gives `to` the spans and events of this thread until the guard is dropped.
#[must_use]
pub fn subscribe(to: impl Subscriber + Send + Sync + 'static) -> DefaultGuard {
    LazyLock::force(&OTHERS);
    subscriber::set_default(to)
}

//! Publishes messages, defines the requests in which they are pushed to the functions, and has the sweep called when something
//! is due.
//!
//! Delivery is at least once, in any order and possibly late: receivers must be idempotent.

pub mod broker_http;
pub mod envelope;
pub mod local;
pub mod pubsub;
pub mod remote;
mod subscription;
mod system_clock;
pub mod wake_up;

use async_trait::async_trait;
use model::Message;

pub use subscription::{Endpoint, Subscription};
pub use system_clock::SystemClock;
pub use wake_up::WakeUps;

/// A way to publish.
#[async_trait]
pub trait Bus: Send + Sync {
    /// Publishes all of them, or fails if some may be missing. Returns once the bus has accepted them.
    async fn publish(&self, messages: &[Message]) -> Result<(), Error>;

    /// Succeeds if the bus is reachable.
    async fn ping(&self) -> Result<(), Error>;
}

/// What can go wrong on the bus.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bus is unavailable; the same call may succeed later.
    #[error("the bus is not available: {0}")]
    Unavailable(String),
}

impl Error {
    /// The error with all its sources, which client libraries omit from their message.
    pub(crate) fn unavailable(error: impl std::error::Error) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        Self::Unavailable(text)
    }
}

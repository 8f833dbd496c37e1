//! The one source of time. Code that decides by time is given a [`Clock`]; nothing here reads one.

use async_trait::async_trait;

use crate::Instant;

/// The present time, and waiting for a later one.
#[async_trait]
pub trait Clock: Send + Sync {
    /// The present instant, to the microsecond: what the database can hold.
    fn now(&self) -> Instant;

    /// Returns once it is `instant` or later.
    async fn wait_until(&self, instant: Instant);
}

//! What time it is, and waiting for a time. Whoever decides by time is given a [`Clock`].

use async_trait::async_trait;
use chrono::{SubsecRound, Utc};
use model::Instant;

/// The one source of time.
#[async_trait]
pub trait Clock: Send + Sync {
    /// The present instant, to the microsecond: what the database can hold.
    fn now(&self) -> Instant;

    /// Returns once it is `instant` or later.
    async fn wait_until(&self, instant: Instant);
}

/// The machine's own clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the Clock that everyone else asks")]
    fn now(&self) -> Instant {
        Utc::now().trunc_subsecs(6)
    }

    #[expect(clippy::disallowed_methods, reason = "this is the Clock that everyone else asks")]
    async fn wait_until(&self, instant: Instant) {
        // The monotonic timer and the wall clock may drift apart: look again before answering.
        while let Ok(left) = (instant - self.now()).to_std() {
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }
}

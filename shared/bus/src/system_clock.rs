//! The machine's clock, for what happens in the real world: publishing, and every process that serves.

use async_trait::async_trait;
use chrono::{SubsecRound, Utc};
use model::{Clock, Instant};

/// The clock of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "all other code is given a Clock")]
    fn now(&self) -> Instant {
        Utc::now().trunc_subsecs(6)
    }

    #[expect(clippy::disallowed_methods, reason = "all other code is given a Clock")]
    async fn wait_until(&self, instant: Instant) {
        // The monotonic timer and the wall clock may drift apart: compare again after each sleep.
        while let Ok(left) = (instant - self.now()).to_std() {
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }
}

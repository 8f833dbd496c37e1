//! How a worker ends: by a command, or at the platform's request. What it holds may finish or is handed back.

use std::time::Duration;

use model::{WorkerCommand, WorkerCommandKind};
use tracing::{info, warn};

use super::{Busy, Worker};

/// How long attempts that are handed back may take to stop: the platform is about to kill us.
const LAST_GRACE: Duration = Duration::from_millis(500);

/// For recording what was handed back: the sweep finds the rest.
const HAND_BACK_TIMEOUT: Duration = Duration::from_secs(5);

impl Worker {
    /// Takes no more work. Attempts may finish within the grace period; those that still run then are stopped and handed back.
    pub async fn stop(&self, why: &str, grace: Duration) {
        let _ = self.closing.set(why.to_owned());
        if self.ends_within(grace).await {
            return;
        }
        warn!("Worker {} permits back what it holds: {why}", self.id);
        self.holds.hand_back(why);
        if !self.ends_within(LAST_GRACE).await {
            self.holds.kill();
            self.ends_within(HAND_BACK_TIMEOUT).await;
        }
    }

    /// Returns once the worker was asked to end and holds nothing.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Why it takes no more work, if it does not.
    pub fn closing(&self) -> Option<&str> {
        self.closing.get().map(String::as_str)
    }

    /// Obeys a command.
    pub(super) fn heed(&self, order: Option<WorkerCommand>) {
        let Some(order) = order else { return };
        let why = in_words(&order);
        if self.closing.set(why.clone()).is_ok() {
            info!("Worker {} takes no more work: {why}", self.id);
        }
        if order.kind == WorkerCommandKind::Kill && self.holds.handed_back().is_none() {
            warn!("Worker {} stops all that it holds and ends: {why}", self.id);
            self.holds.hand_back(&why);
            self.holds.kill();
        }
    }

    pub(super) fn end_if_idle(&self, busy: &Busy) {
        if self.closing().is_some() && busy.attempts == 0 && !self.ended.is_cancelled() {
            info!("Worker {} has ended", self.id);
            self.ended.cancel();
        }
    }

    /// Whether everything is released within that time.
    async fn ends_within(&self, limit: Duration) -> bool {
        let clock = self.runtime.clock();
        let end = async {
            let idle = self.busy.lock().await.attempts == 0;
            if !idle {
                self.ended.cancelled().await;
            }
        };
        tokio::select! {
            biased;
            () = end => true,
            () = clock.wait_until(clock.now() + limit) => false,
        }
    }
}

fn in_words(order: &WorkerCommand) -> String {
    let what = match order.kind {
        WorkerCommandKind::Drain => "drained",
        WorkerCommandKind::Kill => "killed",
    };
    let reason = order.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("the worker was {what} by {}{reason}", order.actor)
}

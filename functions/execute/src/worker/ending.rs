//! How a worker ends: told to by an order, or asked to by the platform. What it holds may finish or is handed back.

use std::time::Duration;

use model::{Order, OrderKind};
use tracing::{info, warn};

use super::{Busy, Worker};

/// How long what is handed back may take to stop in good order. The platform is about to kill us all.
const LAST_GRACE: Duration = Duration::from_millis(500);

/// How long it may take to write down what was handed back: the sweep finds what was not.
const WRITING: Duration = Duration::from_secs(5);

impl Worker {
    /// Takes no more work. What is held may finish within the grace; what still runs then is stopped and handed back.
    pub async fn stop(&self, why: &str, grace: Duration) {
        let _ = self.closing.set(why.to_owned());
        if self.ends_within(grace).await {
            return;
        }
        warn!("Worker {} hands back what it holds: {why}", self.id);
        self.holds.hand_back(why);
        if !self.ends_within(LAST_GRACE).await {
            self.holds.kill();
            self.ends_within(WRITING).await;
        }
    }

    /// Returns once the worker was told to end and holds nothing any more.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Why it takes no more work, if it does not.
    pub fn closing(&self) -> Option<&str> {
        self.closing.get().map(String::as_str)
    }

    /// Does as it is told.
    pub(super) fn heed(&self, order: Option<Order>) {
        let Some(order) = order else { return };
        let why = in_words(&order);
        if self.closing.set(why.clone()).is_ok() {
            info!("Worker {} takes no more work: {why}", self.id);
        }
        if order.kind == OrderKind::Kill && self.holds.handed_back().is_none() {
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

    /// Whether nothing is held any more before so much time has passed.
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

fn in_words(order: &Order) -> String {
    let what = match order.kind {
        OrderKind::Drain => "drained",
        OrderKind::Kill => "killed",
    };
    let reason = order.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("the worker was {what} by {}{reason}", order.actor)
}

//! The shutdown of a worker, by a worker command or with its process. Its attempts may finish, or are handed back.

use std::time::Duration;

use model::{WorkerCommand, WorkerCommandKind};
use tracing::{info, warn};

use super::{Activity, Worker};

/// How long attempts that are handed back may take to stop: the platform is about to kill the process.
const LAST_GRACE: Duration = Duration::from_millis(500);

/// How long recording the handed-back attempts may take: the sweep finds the rest.
const HAND_BACK_TIMEOUT: Duration = Duration::from_secs(5);

impl Worker {
    /// Takes no more work. Attempts may finish within the grace period; the others are stopped and handed back.
    pub async fn stop(&self, reason: &str, grace: Duration) {
        let _ = self.shutdown_reason.set(reason.to_owned());
        if self.is_idle_within(grace).await {
            return;
        }
        warn!("Worker {} hands back its attempts: {reason}", self.id);
        self.claims.hand_back(reason);
        if !self.is_idle_within(LAST_GRACE).await {
            self.claims.kill();
            self.is_idle_within(HAND_BACK_TIMEOUT).await;
        }
    }

    /// Returns once the worker has shut down and holds no attempts.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Why it takes no more work, if it shuts down.
    pub fn shutdown_reason(&self) -> Option<&str> {
        self.shutdown_reason.get().map(String::as_str)
    }

    /// Obeys a worker command.
    pub(super) fn obey(&self, command: Option<WorkerCommand>) {
        let Some(command) = command else { return };
        let reason = describe(&command);
        if self.shutdown_reason.set(reason.clone()).is_ok() {
            info!("Worker {} takes no more work: {reason}", self.id);
        }
        if command.kind == WorkerCommandKind::Kill && self.claims.hand_back_reason().is_none() {
            warn!("Worker {} stops all its attempts and ends: {reason}", self.id);
            self.claims.hand_back(&reason);
            self.claims.kill();
        }
    }

    pub(super) fn end_if_idle(&self, activity: &Activity) {
        if self.shutdown_reason().is_some() && activity.attempts == 0 && !self.ended.is_cancelled() {
            info!("Worker {} has ended", self.id);
            self.ended.cancel();
        }
    }

    /// Whether all attempts are released within a timeout.
    async fn is_idle_within(&self, timeout: Duration) -> bool {
        let clock = self.runtime.clock();
        let end = async {
            let idle = self.activity.lock().await.attempts == 0;
            if !idle {
                self.ended.cancelled().await;
            }
        };
        tokio::select! {
            biased;
            () = end => true,
            () = clock.wait_until(clock.now() + timeout) => false,
        }
    }
}

fn describe(command: &WorkerCommand) -> String {
    let what = match command.kind {
        WorkerCommandKind::Drain => "drained",
        WorkerCommandKind::Kill => "killed",
    };
    let reason = command.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("the worker was {what} by {}{reason}", command.actor)
}

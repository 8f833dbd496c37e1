//! Heartbeats, and what follows from their responses.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use api::execution::{ClaimedAttemptView, HeartbeatView};
use tracing::{info, warn};

use super::Worker;
use super::protocol::{AttemptId, Refusal, Report};

/// A heartbeat that takes longer is abandoned, so that the next one is sent in time.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(5);

/// How soon a failed heartbeat is sent again.
const RETRY_PAUSE: Duration = Duration::from_secs(2);

/// How many heartbeats are sent after the response to a lease was lost: the server may still have been at work on it.
const DOUBTFUL_HEARTBEATS: u32 = 2;

/// Why an attempt that only the server knows is released.
const UNKNOWN: &str = "the response with its lease was lost";

impl Worker {
    /// Sends heartbeats while attempts are held, or may be.
    pub(super) async fn send_heartbeats(self: Arc<Self>) {
        loop {
            let seconds = self.heartbeat_seconds.load(Ordering::Relaxed);
            let mut pause = Duration::from_secs(seconds.into());
            if self.is_heartbeat_due() && !self.heartbeat().await {
                pause = pause.min(RETRY_PAUSE);
            }
            tokio::select! {
                () = self.wait(pause) => {}
                () = self.heartbeat_now.notified() => {}
            }
        }
    }

    /// Makes heartbeats follow even without attempts, since the server may hold some for this worker.
    pub(super) fn doubt(&self) {
        self.doubtful.store(DOUBTFUL_HEARTBEATS, Ordering::Relaxed);
        self.heartbeat_now.notify_one();
    }

    fn is_heartbeat_due(&self) -> bool {
        self.held.count() > 0 || self.held.has_unknown() || self.doubtful.load(Ordering::Relaxed) > 0
    }

    /// Sends one heartbeat and acts on the response. Returns whether there was one.
    pub(super) async fn heartbeat(&self) -> bool {
        let before = self.held.ids();
        // Also notices that attempts fill the disk.
        let usage = Some(self.usage());
        let response = tokio::select! {
            response = self.protocol.heartbeat(usage) => response.map_err(|error| error.to_string()),
            () = self.wait(HEARTBEAT_TIMEOUT) => Err("the server does not respond".to_owned()),
        };
        match response {
            Ok(view) => {
                let spend = |left: u32| left.checked_sub(1);
                let _ = self.doubtful.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend);
                self.reconcile(&before, &view).await;
                self.obey(view.command.as_deref());
                true
            }
            Err(error) => {
                warn!("Cannot send a heartbeat: {error}");
                false
            }
        }
    }

    /// Stops attempts that the server took away, and releases those that only the server knows.
    async fn reconcile(&self, before: &[AttemptId], view: &HeartbeatView) {
        let server: Vec<AttemptId> = view.held.iter().filter_map(|claim| named(claim, before)).collect();
        let differences = self.held.compare(before, &server);
        for id in &differences.lost {
            warn!("Stopping {id}: the server took it away");
        }
        for id in &differences.unknown {
            // Bounded, so that the next heartbeat is sent in time.
            let release = Report::Release { reason: UNKNOWN.into(), begun: false };
            let released = tokio::select! {
                released = self.protocol.report(id, &release) => released,
                () = self.wait(HEARTBEAT_TIMEOUT) => Err(Refusal::Later("the server does not respond".into())),
            };
            match released {
                Ok(()) => info!("Released {id}: {UNKNOWN}"),
                Err(Refusal::Later(why)) => return warn!("Cannot release {id} yet: {why}"),
                Err(refusal) => warn!("Cannot release {id}: {refusal}"),
            }
        }
    }
}

/// The attempt of a claim. Where the server cannot name the task, it is one of those held.
fn named(claim: &ClaimedAttemptView, before: &[AttemptId]) -> Option<AttemptId> {
    let ClaimedAttemptView { run, task, attempt } = claim.clone();
    match task {
        Some(task) => Some(AttemptId { run, task, attempt }),
        None => before.iter().find(|id| id.run == run && id.attempt == attempt).cloned(),
    }
}

#[cfg(test)]
mod tests {
    use api::execution::UsageView;
    use clap::Parser;
    use host::config::{Environment, WorkerConfig};
    use model::RunId;
    use tokio::sync::watch;

    use super::*;
    use crate::args::RunWorker;
    use crate::client::Server;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        worker: RunWorker,
    }

    /// A worker with the usual settings, on a machine whose memory is in use as the test says.
    fn worker(memory: watch::Receiver<f64>) -> Arc<Worker> {
        // No server listens there: a worker measures whether or not the server receives it.
        let server = Server { url: "http://127.0.0.1:9".into(), token: "x".into(), tenant: None };
        let config = WorkerConfig::from_env(&Environment::default()).unwrap();
        let arguments = Line::parse_from(["ebb", "--queue", "remote"]).worker;
        let meter = Box::new(move || UsageView { memory: Some(*memory.borrow()), ..UsageView::default() });
        Arc::new(Worker::new(server, &config, &arguments, meter).unwrap())
    }

    #[tokio::test]
    async fn a_worker_drains_itself_once_its_tasks_use_more_than_95_percent() {
        let (memory, meter) = watch::channel(0.95);
        let worker = worker(meter);
        let id = AttemptId { run: RunId(uuid::Uuid::nil()), task: "fill".into(), attempt: 1 };
        worker.held.begin_lease();
        worker.held.end_lease([id.clone()]);
        assert!(!worker.heartbeat().await, "there is no server");
        assert!(!worker.shutdown.begun().is_cancelled(), "95 % is not more than 95 %");
        memory.send_replace(0.96);
        let heartbeats = tokio::spawn(worker.clone().send_heartbeats());
        worker.shutdown.begun().cancelled().await;
        heartbeats.abort();
        let reason = worker.shutdown.reason().unwrap();
        assert_eq!(reason, "96 % of memory is in use, more than this worker's limit");
        assert_eq!(worker.held.ids(), [id], "it may finish");
    }
}

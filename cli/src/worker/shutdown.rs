//! The end of a worker: asked to stop, by a worker command, or since its machine is full.

use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::Worker;
use crate::client;

/// How long attempts that were killed may take to be handed back.
const HAND_BACK_TIMEOUT: Duration = Duration::from_secs(45);

/// How often the worker tries to deregister.
const MAX_GOODBYES: u32 = 3;

/// How long attempts may continue once the worker shuts down.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grace {
    /// How long they may take to finish.
    pub(super) finish: Duration,
    /// How long they may take to stop, after they were asked to.
    pub(super) stop: Duration,
}

/// How far a worker's end has come.
#[derive(Default)]
pub(super) struct Shutdown {
    reason: OnceLock<String>,
    has_failed: AtomicBool,
    begun: CancellationToken,
    killed: CancellationToken,
    abandoned: CancellationToken,
}

impl Shutdown {
    /// Cancelled once the worker takes no more attempts.
    pub(super) fn begun(&self) -> &CancellationToken {
        &self.begun
    }

    /// Cancelled once results that the server has not received are given up.
    pub(super) fn abandoned(&self) -> &CancellationToken {
        &self.abandoned
    }

    /// Why the worker takes no more attempts, once it does not.
    pub(super) fn reason(&self) -> Option<&str> {
        self.reason.get().map(String::as_str)
    }

    /// Success if somebody asked for the end.
    pub(super) fn exit_code(&self) -> ExitCode {
        if self.has_failed.load(Ordering::Relaxed) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }

    fn begin(&self, reason: &str) -> bool {
        let is_first = self.reason.set(reason.to_owned()).is_ok();
        self.begun.cancel();
        is_first
    }
}

impl Worker {
    /// Takes no more attempts.
    pub(super) fn shut_down(&self, reason: &str) {
        if self.shutdown.begin(reason) {
            info!("Taking no more tasks: {reason}");
        }
    }

    /// The same, for a reason that somebody should look at.
    pub(super) fn fail(&self, reason: &str) {
        if self.shutdown.begin(reason) {
            self.shutdown.has_failed.store(true, Ordering::Relaxed);
            error!("Taking no more tasks: {reason}");
        }
    }

    /// Obeys a worker command.
    pub(super) fn obey(&self, command: Option<&str>) {
        match command {
            None => {}
            Some("kill") => {
                self.shut_down("the worker was killed by a command");
                self.shutdown.killed.cancel();
            }
            Some(_) => self.shut_down("the worker was drained by a command"),
        }
    }

    /// Lets attempts finish within the grace period, then stops them and hands them back.
    pub(super) async fn drain(&self, grace: Grace) {
        if self.held.count() > 0 && !self.shutdown.killed.is_cancelled() {
            info!("{} tasks may finish within {} s", self.held.count(), grace.finish.as_secs());
        }
        tokio::select! {
            biased;
            () = self.held.empty() => return,
            () = self.shutdown.killed.cancelled() => {}
            () = self.wait(grace.finish) => {}
        }
        if !self.shutdown.killed.is_cancelled() {
            let (count, seconds) = (self.held.count(), grace.stop.as_secs());
            warn!("{count} tasks did not finish: they get TERM and {seconds} s to save their state");
        }
        self.held.hand_back(self.shutdown.reason().unwrap_or_default());
        tokio::select! {
            biased;
            () = self.held.empty() => return,
            () = self.shutdown.killed.cancelled() => {}
            () = self.wait(grace.stop) => {}
        }
        warn!("Killing {} tasks, to hand them back", self.held.count());
        self.held.kill();
        tokio::select! {
            biased;
            () = self.held.empty() => return,
            () = self.wait(HAND_BACK_TIMEOUT) => {}
        }
        warn!(
            "{} tasks could not be handed back: other workers take over once the server misses this one's heartbeats",
            self.held.count()
        );
        self.shutdown.abandoned.cancel();
    }

    /// Tells the server that this worker is gone. Attempts that it never received are released first.
    pub(super) async fn deregister(&self) {
        for _ in 0..MAX_GOODBYES {
            match self.protocol.goodbye().await {
                Ok(_) => return info!("Worker {} has ended", self.protocol.worker()),
                Err(client::Error::Rejected { code, .. }) if code == "still_holds" => {
                    self.heartbeat().await;
                }
                Err(error) => {
                    warn!("Cannot deregister yet: {error}");
                    self.wait(super::FIRST_PAUSE).await;
                }
            }
        }
        warn!("Worker {} has ended without deregistering: the server notices", self.protocol.worker());
    }
}

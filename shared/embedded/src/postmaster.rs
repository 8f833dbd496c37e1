//! The main process of a server.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::{oneshot, watch};
use tokio::time::{interval, timeout};

use crate::parent_death::signal_on_parent_death;

/// How often to poll for changes without a notification.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A running server, ended on drop.
#[derive(Debug)]
pub(crate) struct Postmaster {
    pid: Pid,
    running: watch::Receiver<bool>,
    waiter: Option<JoinHandle<()>>,
}

impl Postmaster {
    /// Starts `command` from a dedicated thread, which then waits for its end: the child is killed with the thread that starts
    /// it, and the caller's thread may end before the server.
    pub(crate) async fn spawn(mut command: Command) -> io::Result<Postmaster> {
        let (started, starting) = oneshot::channel();
        let (ended, running) = watch::channel(true);
        let waiter = thread::Builder::new().name("postgres".to_owned()).spawn(move || {
            signal_on_parent_death(&mut command, Signal::QUIT);
            let mut child = match command.spawn() {
                Ok(child) => child,
                Err(e) => return drop(started.send(Err(e))),
            };
            if started.send(Ok(Pid::from_child(&child))).is_err() {
                // The caller is gone, and nothing else would stop the server.
                let _ = child.kill();
            }
            let _ = child.wait();
            ended.send_replace(false);
        })?;
        let pid = starting.await.map_err(io::Error::other)??;
        Ok(Postmaster { pid, running, waiter: Some(waiter) })
    }

    /// Waits until the server of `cluster` accepts connections; false if it ended instead.
    pub(crate) async fn ready(&self, cluster: &Path) -> bool {
        let mut ticks = interval(POLL_INTERVAL);
        while *self.running.borrow() {
            if accepts_connections(cluster, self.pid) {
                return true;
            }
            ticks.tick().await;
        }
        false
    }

    /// Resolves when the server has ended.
    pub(crate) fn end(&self) -> impl Future<Output = ()> + use<> {
        let mut running = self.running.clone();
        async move {
            // Without a sender, the thread that waits for the server has ended, too.
            let _ = running.wait_for(|running| !running).await;
        }
    }

    /// Stops the server: ends all sessions and flushes everything. Gives up after `limit`.
    pub(crate) async fn stop(mut self, limit: Duration) {
        self.signal(Signal::INT);
        let _ = timeout(limit, self.running.wait_for(|running| !running)).await;
    }

    fn signal(&self, signal: Signal) {
        if *self.running.borrow() {
            // It may have ended in the meantime.
            let _ = kill_process(self.pid, signal);
        }
    }
}

impl Drop for Postmaster {
    fn drop(&mut self) {
        self.signal(Signal::QUIT);
        if let Some(waiter) = self.waiter.take() {
            let _ = waiter.join();
        }
    }
}

/// Whether the cluster's `postmaster.pid` says that process `pid` accepts connections.
fn accepts_connections(cluster: &Path, pid: Pid) -> bool {
    let status = fs::read_to_string(cluster.join("postmaster.pid")).unwrap_or_default();
    let lines: Vec<&str> = status.lines().map(str::trim).collect();
    lines.first() == Some(&pid.to_string().as_str()) && lines.get(7) == Some(&"ready")
}

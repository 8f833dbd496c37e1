//! Workers: their heartbeats and commands, and what remote workers report about the attempts that they hold.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::Command;
use model::{ProgressReport, ResourceUsage, TaskKey, WorkerCommand, WorkerFacts, WorkerId};
use serde_json::Value;
use store::{Checkpoint, Heartbeat, HeartbeatReply, LogChunk, LogLine};

use crate::leases::Leases;
use crate::{Liveness, Result, Runtime};

/// Receives heartbeats and reports, and gives workers commands.
#[derive(Clone, Copy)]
pub struct Workers<'r> {
    runtime: &'r Runtime,
}

/// Attempts that workers have ended and that the store has not counted. The numbers are for people: those of a process that is
/// killed are lost.
#[derive(Default)]
pub(crate) struct DoneCounts {
    pending: Mutex<BTreeMap<WorkerId, u32>>,
    turn: tokio::sync::Mutex<()>,
}

impl DoneCounts {
    fn add(&self, worker: WorkerId) {
        *self.pending().entry(worker).or_default() += 1;
    }

    fn is_empty(&self) -> bool {
        self.pending().is_empty()
    }

    fn take(&self) -> Vec<(WorkerId, u32)> {
        std::mem::take(&mut *self.pending()).into_iter().collect()
    }

    fn pending(&self) -> MutexGuard<'_, BTreeMap<WorkerId, u32>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runtime {
    /// Workers: heartbeats, commands and what remote ones report.
    pub fn workers(&self) -> Workers<'_> {
        Workers { runtime: self }
    }
}

impl<'r> Workers<'r> {
    /// How often workers send heartbeats, and when they are dead.
    pub fn liveness(self) -> Liveness {
        self.runtime.liveness
    }

    /// Leases: the tasks that remote workers take.
    pub fn leases(self) -> Leases<'r> {
        Leases::new(self.runtime)
    }

    /// Records a heartbeat, and what the worker reports about itself. Returns the attempts that it holds and its pending
    /// command.
    pub async fn heartbeat(self, worker: WorkerId, facts: Option<WorkerFacts>) -> Result<HeartbeatReply> {
        let heartbeat = Heartbeat { worker, facts, at: self.runtime.clock.now() };
        Ok(self.runtime.store.beat(&heartbeat).await?)
    }

    /// Records that a remote worker asked for work, no more often than it would send heartbeats. Returns its pending command.
    pub async fn check_in(self, worker: WorkerId, facts: WorkerFacts) -> Result<Option<WorkerCommand>> {
        let sign = Heartbeat { worker, facts: Some(facts), at: self.runtime.clock.now() };
        Ok(self.runtime.store.check_in(&sign, self.runtime.liveness.heartbeat_interval).await?)
    }

    /// Records how much of its machine a remote worker uses.
    pub async fn report_usage(self, worker: WorkerId, usage: &ResourceUsage) -> Result<()> {
        Ok(self.runtime.store.report_usage(worker, usage).await?)
    }

    /// Counts an attempt that a worker has ended. Of several callers at the same time one counts for all.
    pub async fn count_done(self, worker: WorkerId) -> Result<()> {
        let counts = &self.runtime.done_counts;
        counts.add(worker);
        // Its own turn, and once more for those that came meanwhile; the next caller counts for later ones.
        for _ in 0..2 {
            if counts.is_empty() {
                break;
            }
            let Ok(_turn) = counts.turn.try_lock() else { break };
            self.runtime.store.count_done(&counts.take()).await?;
        }
        Ok(())
    }

    /// Removes a worker that holds nothing and stops. Removing it again changes nothing.
    pub async fn farewell(self, worker: WorkerId) -> Result<()> {
        self.runtime.store.farewell(worker).await?;
        Ok(())
    }

    /// Gives a worker a command, which it receives with its next heartbeat. Returns the command in force, which may be
    /// an earlier one; none if the worker is unknown.
    pub async fn command(self, worker: WorkerId, command: &WorkerCommand) -> Result<Option<WorkerCommand>> {
        Ok(self.runtime.store.command_worker(worker, command).await?)
    }

    /// The command by which a worker hands back an attempt, with what the decision needs to know of its checkpoint.
    pub async fn hand_back(
        self,
        key: TaskKey,
        attempt: u32,
        worker: WorkerId,
        reason: String,
    ) -> Result<Command> {
        let checkpoint = self.runtime.store.checkpoint(key).await?;
        let saved = checkpoint.is_some_and(|checkpoint| checkpoint.attempt == attempt);
        Ok(Command::HandBack { task: key.task, attempt, worker, reason, saved })
    }

    /// Appends lines to an attempt's log. Lines are numbered from 0; the same first line again changes nothing.
    pub async fn append_log(self, key: TaskKey, attempt: u32, first: u32, lines: Vec<LogLine>) -> Result<()> {
        Ok(self.runtime.store.append_log(&LogChunk { key, attempt, first, lines }).await?)
    }

    /// Keeps the checkpoint of an attempt in place of an earlier one. The checkpoint of a later attempt stays.
    pub async fn keep_checkpoint(self, key: TaskKey, attempt: u32, data: Value) -> Result<()> {
        let checkpoint = Checkpoint { attempt, at: self.runtime.clock.now(), data };
        self.runtime.store.keep_checkpoint(key, &checkpoint).await?;
        Ok(())
    }

    /// Adds a report to the progress of an attempt.
    pub async fn report_progress(self, key: TaskKey, report: &ProgressReport) -> Result<()> {
        Ok(self.runtime.store.report_progress(key, report).await?)
    }
}

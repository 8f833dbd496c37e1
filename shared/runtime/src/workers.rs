//! Workers: their heartbeats and commands, and what remote workers report about the attempts that they hold.

use model::{TaskKey, WorkerCommand, WorkerFacts, WorkerId};
use serde_json::Value;
use store::{Checkpoint, Heartbeat, HeartbeatReply, LogChunk, LogLine};

use crate::{Result, Runtime};

/// Receives heartbeats and reports, and gives workers commands.
#[derive(Clone, Copy)]
pub struct Workers<'r> {
    runtime: &'r Runtime,
}

impl Runtime {
    /// Workers: heartbeats, commands and what remote ones report.
    pub fn workers(&self) -> Workers<'_> {
        Workers { runtime: self }
    }
}

impl Workers<'_> {
    /// Records a heartbeat, and what the worker reports about itself. Returns the attempts that it holds and its pending
    /// command.
    pub async fn heartbeat(self, worker: WorkerId, facts: Option<WorkerFacts>) -> Result<HeartbeatReply> {
        let heartbeat = Heartbeat { worker, facts, at: self.runtime.clock.now() };
        Ok(self.runtime.store.beat(&heartbeat).await?)
    }

    /// Gives a worker a command, which it receives with its next heartbeat. Returns the command that stands, which may be
    /// an earlier one; none if the worker is unknown.
    pub async fn command(self, worker: WorkerId, command: &WorkerCommand) -> Result<Option<WorkerCommand>> {
        Ok(self.runtime.store.command_worker(worker, command).await?)
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
}

//! Firing timers in bulk.

use engine::Command;
use model::{Instant, RunId};
use store::DueTimer;
use tracing::warn;
use uuid::Uuid;

use crate::counting;
use crate::inbox::catching_panics;
use crate::pipeline;
use crate::pipeline::Pipeline;
use crate::publish;
use crate::publish::Pending;
use crate::{Result, Runtime, Settled};

/// The outcome of timers that were due.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fired {
    /// How many were found.
    pub due: usize,
    /// How many of them changed anything; the others had been overtaken.
    pub applied: usize,
}

impl Runtime {
    /// Fires due timers in one transaction, of runs that no other transaction has locked. Two that fire at the same time
    /// fire different ones.
    ///
    /// If the transaction fails, the batch is settled as any other: in halves, and a run that spoils it is postponed.
    pub async fn fire(&self, now: Instant, limit: u32) -> Result<Fired> {
        let all = pipeline::despite_conflicts(self, RunId(Uuid::nil()), || try_fire(self, now, limit));
        match catching_panics(all).await {
            Ok((fired, pending)) => {
                publish::publish(self, pending).await;
                Ok(fired)
            }
            Err(error) if error.is_passing() => Err(error),
            Err(error) => {
                warn!("A batch of timers failed and is settled as commands: {error}");
                let commands: Vec<_> =
                    self.store.due_timers(now, limit).await?.into_iter().map(wake).collect();
                let due = commands.len();
                Ok(Fired { due, applied: self.settle_or_postpone(commands).await? })
            }
        }
    }
}

async fn try_fire(runtime: &Runtime, now: Instant, limit: u32) -> Result<(Fired, Pending)> {
    let mut pipeline = Pipeline::open(runtime).await?;
    let due = pipeline.unit().due_timers(now, limit).await?;
    if due.is_empty() {
        return Ok(Default::default());
    }
    counting::lateness(&due, now);
    let commands: Vec<(RunId, Command)> = due.into_iter().map(wake).collect();
    let locked = pipeline.lock(&commands).await?;
    let written = pipeline.settle(locked, &commands, Vec::new()).await?;
    let applied = written.settled.iter().filter(|settled| **settled == Settled::Applied).count();
    Ok((Fired { due: commands.len(), applied }, written.pending))
}

/// The command that fires a timer.
pub fn wake(due: DueTimer) -> (RunId, Command) {
    let timer = due.timer;
    (due.run, Command::Wake { task: timer.task, attempt: timer.attempt, kind: timer.kind })
}

//! Firing timers in bulk.

use engine::Command;
use model::{Instant, RunId};
use store::DueTimer;
use uuid::Uuid;

use crate::counting;
use crate::publish::Unsaid;
use crate::{Result, Runtime, Settled};

/// What became of timers that were due.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fired {
    /// How many were found.
    pub due: usize,
    /// How many of them changed anything; the others had been overtaken.
    pub applied: usize,
}

impl Runtime {
    /// Fires timers that are due, in one transaction, of runs that nobody else is at. Whoever fires at the same time
    /// fires others, and what two have seen is decided once.
    pub async fn fire(&self, now: Instant, limit: u32) -> Result<Fired> {
        let (fired, unsaid) =
            self.despite_conflicts(RunId(Uuid::nil()), || self.try_fire(now, limit)).await?;
        self.publish(unsaid).await;
        Ok(fired)
    }

    async fn try_fire(&self, now: Instant, limit: u32) -> Result<(Fired, Unsaid)> {
        let mut unit = self.store.begin().await?;
        let due = unit.due_timers(now, limit).await?;
        if due.is_empty() {
            return Ok(Default::default());
        }
        counting::lateness(&due, now);
        let commands: Vec<(RunId, Command)> = due.into_iter().map(wake).collect();
        let (settled, unsaid) = self.settle_in(unit, &commands, &[]).await?;
        let applied = settled.iter().filter(|settled| **settled == Settled::Applied).count();
        Ok((Fired { due: commands.len(), applied }, unsaid))
    }
}

/// The command that fires a timer.
pub fn wake(due: DueTimer) -> (RunId, Command) {
    let timer = due.timer;
    (due.run, Command::Wake { task: timer.task, attempt: timer.attempt, kind: timer.kind })
}

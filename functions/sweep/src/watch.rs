//! Detects dead workers. Silence only raises a doubt: the worker's clock may differ from ours, and while the store was
//! unavailable no worker could send a heartbeat.
//!
//! The verdict compares no clocks. A worker is dead if it sent nothing while this sweep, by its own clock, waited longer
//! than a live worker takes to try again, and the store answered before and after. An error in between ends the sweep, and
//! the next one starts with a doubt of its own.

use chrono::TimeDelta;
use engine::Command;
use model::Instant;
use runtime::Result;
use store::{Agenda, Silence};
use tracing::warn;

use crate::sweep::{BATCH, Sweep};

/// A worker that was silent for this long may be dead.
const DOUBT: TimeDelta = TimeDelta::seconds(40);

/// How long it then has to send a heartbeat. It sends one every ten seconds and gives up after five, so a live one tries at
/// least once. Together with the doubt this is the minute after which a silent worker is dead.
const LAST_CHANCE: TimeDelta = TimeDelta::seconds(20);

/// A live worker whose clock is slow would be in doubt again at once: it is left alone for this long.
const REST: TimeDelta = TimeDelta::seconds(30);

/// The workers in doubt, and when to check again.
#[derive(Default)]
pub(crate) struct Watch {
    doubted: Vec<Silence>,
    due_at: Option<Instant>,
}

impl Watch {
    /// When those in doubt have had their last chance.
    pub(crate) fn verdict_at(&self) -> Option<Instant> {
        self.due_at.filter(|_| !self.doubted.is_empty())
    }
}

impl Sweep {
    /// Checks workers that seem dead. Returns how many attempts were taken from them.
    pub(crate) async fn watch(&self, watch: &mut Watch, agenda: &Agenda, now: Instant) -> Result<usize> {
        if agenda.worker.is_none_or(|heard_at| now <= heard_at + DOUBT) {
            *watch = Watch::default();
            return Ok(0);
        }
        if watch.due_at.is_some_and(|due_at| now < due_at) {
            return Ok(0);
        }
        // The sweep that was to take over ended first: it is unknown whether the store answered all the while.
        if watch.verdict_at().is_some_and(|verdict_at| now > verdict_at + LAST_CHANCE) {
            watch.doubted.clear();
        }
        if watch.doubted.is_empty() {
            watch.doubted = self.runtime.store().silent(now - DOUBT, BATCH).await?;
            watch.due_at = Some(now + LAST_CHANCE);
            // An attempt held by an unknown worker is lost for certain.
            return self.give_up_on(&[]).await;
        }
        let doubted = std::mem::take(&mut watch.doubted);
        watch.due_at = Some(now + REST);
        self.give_up_on(&doubted).await
    }

    /// Takes their attempts from these workers, if they are still silent, and removes them. Returns the number of attempts.
    pub(crate) async fn give_up_on(&self, silent: &[Silence]) -> Result<usize> {
        let mut taken = 0;
        loop {
            let lost = self.runtime.store().lost(silent, BATCH).await?;
            for held in &lost {
                let (worker, attempt, run) = (held.worker, held.attempt, held.key.run);
                metrics::counter!("ebbflow_attempts_lost_total").increment(1);
                warn!(
                    event = "attempt_lost", %run, attempt,
                    "Worker {worker} is dead; attempt {attempt} of a task of run {run} is lost"
                );
            }
            let lose = lost.iter().map(|held| {
                let (task, attempt, worker) = (held.key.task, held.attempt, held.worker);
                (held.key.run, Command::Lose { task, attempt, worker })
            });
            let done = self.runtime.settle_or_postpone(lose.collect()).await?;
            taken += done;
            if done == 0 || lost.len() < BATCH as usize {
                break;
            }
        }
        if !silent.is_empty() {
            self.runtime.store().forget_workers(silent).await?;
        }
        Ok(taken)
    }
}

#[cfg(test)]
mod tests;

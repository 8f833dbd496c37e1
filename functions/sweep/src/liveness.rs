//! Detects dead workers. A silent worker is only suspected at first: its clock may differ from ours, and while the store was
//! unavailable it could not send a heartbeat.
//!
//! The verdict compares no clocks. A worker is dead if it sent nothing while this sweep, by its own clock, waited longer than
//! the heartbeat interval, and the store responded before and after. An error in between ends the sweep, and the next one
//! starts over.

use engine::Command;
use model::Instant;
use runtime::Result;
use store::{Agenda, Silence};
use tracing::warn;

use crate::sweep::{BATCH, Sweep};

/// The suspected workers, and when to check again.
#[derive(Default)]
pub(crate) struct Suspects {
    silent: Vec<Silence>,
    check_at: Option<Instant>,
}

impl Suspects {
    /// When the verdict on the suspects is due.
    pub(crate) fn verdict_at(&self) -> Option<Instant> {
        self.check_at.filter(|_| !self.silent.is_empty())
    }
}

impl Sweep {
    /// Checks workers that seem dead. Returns the number of attempts lost with them.
    pub(crate) async fn check_workers(
        &self,
        suspects: &mut Suspects,
        agenda: &Agenda,
        now: Instant,
    ) -> Result<usize> {
        let liveness = self.runtime.workers().liveness();
        let (suspect_after, confirm_after) = (liveness.suspect_after(), liveness.confirm_after());
        if agenda.worker.is_none_or(|heartbeat_at| now <= heartbeat_at + suspect_after) {
            *suspects = Suspects::default();
            return Ok(0);
        }
        if suspects.check_at.is_some_and(|check_at| now < check_at) {
            return Ok(0);
        }
        // There was a gap between sweeps, so it is unknown whether the store responded all the time.
        if suspects.verdict_at().is_some_and(|verdict_at| now > verdict_at + confirm_after) {
            suspects.silent.clear();
        }
        if suspects.silent.is_empty() {
            suspects.silent = self.runtime.store().silent(now - suspect_after, BATCH).await?;
            suspects.check_at = Some(now + confirm_after);
            // Attempts of unregistered workers are certainly lost.
            return self.declare_dead(&[]).await;
        }
        let silent = std::mem::take(&mut suspects.silent);
        // A suspect that proved alive is not suspected again at once: its clock is slow, so it still seems silent.
        suspects.check_at = Some(now + confirm_after * 3 / 2);
        self.declare_dead(&silent).await
    }

    /// Marks workers that are still silent as dead, and settles their attempts as lost. Returns the number of attempts.
    pub(crate) async fn declare_dead(&self, silent: &[Silence]) -> Result<usize> {
        let mut total = 0;
        loop {
            let lost = self.runtime.store().lost(silent, BATCH).await?;
            for claim in &lost {
                let (worker, attempt, run) = (claim.worker, claim.attempt, claim.key.run);
                metrics::counter!("ebbflow_attempts_lost_total").increment(1);
                warn!(
                    event = "attempt_lost", %run, attempt,
                    "Worker {worker} is dead; attempt {attempt} of a task of run {run} is lost"
                );
            }
            let lose = lost.iter().map(|claim| {
                let (task, attempt, worker) = (claim.key.task, claim.attempt, claim.worker);
                (claim.key.run, Command::Lose { task, attempt, worker })
            });
            let settled = self.runtime.settle_or_postpone(lose.collect()).await?;
            total += settled;
            if settled == 0 || lost.len() < BATCH as usize {
                break;
            }
        }
        if !silent.is_empty() {
            self.runtime.store().mark_dead(silent, self.runtime.clock().now()).await?;
        }
        Ok(total)
    }
}

#[cfg(test)]
mod tests;

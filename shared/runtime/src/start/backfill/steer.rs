//! The operations of people on an existing backfill.

use chrono::TimeDelta;
use engine::Command;
use model::{BackfillId, RunState};
use store::{BackfillDate, BackfillRecord, BackfillState, DateStep};

use super::RECHECK_AFTER;
use crate::{Backfills, Result};

/// How often a change is tried while others change the same backfill.
const MAX_TRIES: u32 = 10;

/// How long to wait for processes that still create runs for a backfill that was cancelled.
const STRAGGLERS: TimeDelta = TimeDelta::minutes(10);

/// States of runs that have not ended.
const UNFINISHED: [RunState; 4] = [RunState::Queued, RunState::Running, RunState::Paused, RunState::Stalled];

/// An operation on a backfill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Steer {
    /// Begin no more runs; active ones go on.
    Pause,
    /// Continue, even if it was cancelled: runs that were cancelled with it are rerun.
    Resume,
    /// Cancel it, together with its runs.
    Cancel,
}

impl Backfills<'_> {
    /// Pauses, resumes or cancels a backfill. Returns whether it could be done; none if there is no such backfill.
    pub async fn steer(self, id: BackfillId, steer: Steer, actor: &str) -> Result<Option<bool>> {
        use BackfillState as S;
        let now = self.runtime.clock.now();
        let moved = |record: BackfillRecord| {
            let (state, due_at, finished_at) = match (steer, record.state) {
                // The sweep ends its runs, should this process end before it does.
                (Steer::Pause, S::Running) => (S::Paused, None, None),
                (Steer::Resume, S::Paused | S::Cancelled) => (S::Running, Some(now + RECHECK_AFTER), None),
                (Steer::Cancel, S::Running | S::Paused) => {
                    (S::Cancelled, Some(now + RECHECK_AFTER), Some(now))
                }
                _ => return record,
            };
            let cancelled_by = (steer == Steer::Cancel).then(|| actor.to_owned());
            BackfillRecord { state, due_at, finished_at, cancelled_by, problem: None, ..record }
        };
        let Some(before) = self.runtime.store.any_backfill(id).await? else { return Ok(None) };
        if steer == Steer::Resume && before.state == S::Cancelled {
            self.take_up_cancelled(id).await?;
        }
        let Some(after) = self.change_backfill(id, moved).await? else { return Ok(None) };
        match steer {
            Steer::Resume => self.advance(id).await?,
            Steer::Cancel => self.cancel_runs(&after).await?,
            Steer::Pause => {}
        }
        let wanted = match steer {
            Steer::Pause => S::Paused,
            Steer::Resume => S::Running,
            Steer::Cancel => S::Cancelled,
        };
        Ok(Some(after.state == wanted))
    }

    /// Dates whose runs were cancelled wait again.
    async fn take_up_cancelled(self, id: BackfillId) -> Result<()> {
        for (date, _) in self.runtime.store.backfill_runs(id, &[RunState::Cancelled], u32::MAX).await? {
            let again = BackfillDate { step: DateStep::Waiting, redo: true, ..date };
            self.runtime.store.move_date(id, date.step, &again).await?;
        }
        Ok(())
    }

    /// Ends the runs of a backfill that was cancelled. Doing it twice changes nothing.
    pub(super) async fn cancel_runs(self, record: &BackfillRecord) -> Result<()> {
        let (id, actor) = (record.id, record.cancelled_by.as_ref().unwrap_or(&record.created_by));
        let reason = Some(format!("backfill {id} was cancelled"));
        for (date, _) in self.runtime.store.backfill_runs(id, &UNFINISHED, u32::MAX).await? {
            if let Some(run) = date.run {
                let cancel = Command::Cancel { actor: actor.clone(), reason: reason.clone() };
                self.runtime.settle(run, cancel).await?;
            }
        }
        // A process may have been about to create a run when it was cancelled: it ends the run itself, unless it dies.
        let over = record.finished_at.is_none_or(|at| at + STRAGGLERS <= self.runtime.clock.now());
        if over || self.runtime.store.backfill_turn(id, 1).await?.active == 0 {
            self.change_backfill(id, |record| match record.state {
                BackfillState::Cancelled => BackfillRecord { due_at: None, ..record },
                _ => record,
            })
            .await?;
        }
        Ok(())
    }

    /// Cancels runs that began while their backfill was being cancelled.
    pub(super) async fn stop_what_was_cancelled(self, id: BackfillId) -> Result<()> {
        match self.runtime.store.any_backfill(id).await? {
            Some(record) if record.state == BackfillState::Cancelled => self.cancel_runs(&record).await,
            _ => Ok(()),
        }
    }

    /// Changes a backfill, whatever others do to it meanwhile. Returns how it is then; none if there is no such one.
    pub(super) async fn change_backfill(
        self,
        id: BackfillId,
        change: impl Fn(BackfillRecord) -> BackfillRecord,
    ) -> Result<Option<BackfillRecord>> {
        for _ in 0..MAX_TRIES {
            let Some(record) = self.runtime.store.any_backfill(id).await? else { return Ok(None) };
            let changed = change(record.clone());
            if changed == record || self.runtime.store.save_backfill(&changed).await? {
                return Ok(Some(changed));
            }
        }
        Err(store::Error::Conflict.into())
    }
}

//! Backfills: a few runs at a time, of dates that are past.
//!
//! A backfill's runs have a group of their own, and the end of each lets the next begin. Wherever slots are short, they
//! take turns of their own, fewer than the live runs of their tenant by the backfill's weight.

mod plan;
mod steer;

use chrono::TimeDelta;
use engine::{By, Command, Graph, Operation};
use model::message::ConcurrencyGroupFreed;
use model::{BackfillId, Instant, Interval, Planned, Run, RunId, RunState};
use serde_json::Map;
use store::{BackfillDate, BackfillRecord, BackfillState, DateStep};
use tracing::{error, warn};

use super::{Origin, StartRun};
use crate::concurrency;
use crate::{Backfills, Error, Result, Settled};

pub use plan::{BackfillPlan, NewBackfill};
pub use steer::Steer;

/// The lowest priority there is: every task that waits beside a backfill's goes first.
const PRIORITY: i32 = -100;

/// How long after its last step a backfill is rechecked, in case the message about the end of a run got lost.
const RECHECK_AFTER: TimeDelta = TimeDelta::minutes(1);

/// Reruns belong to other concurrency groups, so no message says when they end.
const RECHECK_WHILE_RERUNNING: TimeDelta = TimeDelta::seconds(5);

/// The maximum number of dates that are read at a time.
const MAX_DATES_READ: u32 = 200;

/// The maximum number of times that runs which end at once let the next ones begin, before other backfills get their turn.
const MAX_PASSES: u32 = 10;

impl Backfills<'_> {
    /// Advances backfills that are due. Returns how many.
    pub async fn advance_due(self, now: Instant, limit: u32) -> Result<usize> {
        let due = self.runtime.store.due_backfills(now, limit).await?;
        for record in &due {
            // Put off first, so that one that makes trouble does not keep the others from their turn.
            let later = BackfillRecord { due_at: Some(now + RECHECK_AFTER), ..record.clone() };
            if !self.runtime.store.save_backfill(&later).await? {
                continue;
            }
            match self.advance(record.id).await {
                Err(error) if error.is_passing() => return Err(error),
                Err(error) => error!("Backfill {} cannot go on: {error}", record.id),
                Ok(()) => {}
            }
        }
        Ok(due.len())
    }

    /// Lets as many runs of a backfill begin as there is room for, and ends it after the last one. Asking twice changes
    /// nothing.
    pub async fn advance(self, id: BackfillId) -> Result<()> {
        for _ in 0..MAX_PASSES {
            let Some(record) = self.runtime.store.any_backfill(id).await? else { return Ok(()) };
            match record.state {
                BackfillState::Cancelled if record.due_at.is_some() => {
                    return self.cancel_runs(&record).await;
                }
                BackfillState::Running if self.begin_dates(&record).await? => {}
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    /// Begins what there is room for. Returns whether that was anything.
    async fn begin_dates(self, record: &BackfillRecord) -> Result<bool> {
        let turn = self.runtime.store.backfill_turn(record.id, MAX_DATES_READ).await?;
        let room = record.max_parallel.saturating_sub(turn.active) as usize;
        let next: Vec<BackfillDate> =
            turn.claimed.iter().copied().chain(turn.waiting.iter().copied().take(room)).collect();
        if next.is_empty() && turn.active == 0 && turn.waiting.is_empty() {
            return self.end_backfill(record).await.map(|()| false);
        }
        for date in &next {
            let begun = match date.redo {
                true => self.redo_date(record, *date).await,
                false => self.make_date(record, *date).await,
            };
            match begun {
                Err(error) if error.is_passing() => return Err(error),
                Err(error) if error.is_quota() => {
                    return self.wait_for_room(record, date, &error).await.map(|()| false);
                }
                Err(error) => return self.stumble_at(record, date, &error).await.map(|()| false),
                Ok(()) => {}
            }
        }
        if record.problem.is_some() && !next.is_empty() {
            self.change_backfill(record.id, |record| BackfillRecord { problem: None, ..record }).await?;
        }
        if turn.redoing || next.iter().any(|date| date.redo) {
            self.recheck(record.id).await?;
        }
        self.stop_what_was_cancelled(record.id).await?;
        Ok(!next.is_empty())
    }

    async fn make_date(self, record: &BackfillRecord, waiting: BackfillDate) -> Result<()> {
        let run = RunId::from_key(
            record.tenant,
            &record.workflow,
            &format!("backfill\n{}\n{}", record.id, waiting.date),
        );
        let request = self.request(record, run, &waiting).await?;
        let claimed = BackfillDate { step: DateStep::Claimed, run: Some(run), ..waiting };
        if waiting.step == DateStep::Waiting
            && !self.runtime.store.move_date(record.id, DateStep::Waiting, &claimed).await?
        {
            return Ok(());
        }
        let made = match self.runtime.start(request).await {
            Ok(started) => started.record.run.id,
            Err(Error::DateTaken(run) | Error::KeyReused(run) | Error::ConcurrencyGroupTaken(run)) => run,
            Err(error) => return Err(error),
        };
        let begun = BackfillDate { step: DateStep::Begun, run: Some(made), ..waiting };
        self.runtime.store.move_date(record.id, DateStep::Claimed, &begun).await?;
        Ok(())
    }

    async fn request(self, record: &BackfillRecord, id: RunId, date: &BackfillDate) -> Result<StartRun> {
        let workflow = self.version_of(record).await?;
        let schedule = workflow.schedules.into_iter().find(|schedule| schedule.name == record.schedule);
        let origin = Origin::Backfill {
            id: record.id,
            planned: Planned {
                schedule: record.schedule.clone(),
                interval: Interval { start: date.interval_start, end: date.date },
            },
            version: record.version,
            by: record.created_by.clone(),
        };
        Ok(StartRun {
            inputs: schedule.map(|schedule| schedule.inputs).unwrap_or_default(),
            labels: Map::from_iter([("backfill".to_owned(), record.id.to_string().into())]),
            logical_date: Some(date.date),
            priority: PRIORITY,
            ..StartRun::new(id, record.tenant, &record.workflow, origin)
        })
    }

    /// Reruns an existing run. Doing it twice changes nothing, since it has not ended then.
    async fn redo_date(self, record: &BackfillRecord, waiting: BackfillDate) -> Result<()> {
        let found = match waiting.run {
            Some(run) => self.runtime.store.run(record.tenant, run).await?,
            None => None,
        };
        let Some(found) = found else {
            // It has been forgotten meanwhile, so it is missing.
            let missing = BackfillDate { redo: false, run: None, ..waiting };
            self.runtime.store.move_date(record.id, waiting.step, &missing).await?;
            return Ok(());
        };
        self.redo(record, &found.run).await?;
        if let Some(group) = found.run.concurrency_group {
            concurrency::admit_to(
                self.runtime,
                &ConcurrencyGroupFreed { tenant: record.tenant, workflow: record.workflow.clone(), group },
            )
            .await?;
        }
        let begun = BackfillDate { step: DateStep::Begun, ..waiting };
        self.runtime.store.move_date(record.id, waiting.step, &begun).await?;
        Ok(())
    }

    /// Reruns a run that has ended: the tasks that failed, or all of them. If its outputs were deleted, nothing can continue
    /// from them, so all tasks are rerun.
    async fn redo(self, record: &BackfillRecord, run: &Run) -> Result<()> {
        let by = By { actor: record.created_by.clone(), reason: Some(format!("backfill {}", record.id)) };
        if matches!(run.state, RunState::Failed | RunState::Cancelled) {
            match self.runtime.operate(run, Operation::Retry, by.clone()).await {
                Err(Error::OutputsForgotten(_)) => {}
                other => return other.map(|_| ()),
            }
        } else if run.state != RunState::Succeeded {
            return Ok(());
        }
        let gone = || Error::Unusable { version: run.version, why: "it does not exist".into() };
        let graph = self.runtime.graph(run.version).await?.ok_or_else(gone)?;
        let clear = |root| Command::Operate { operation: Operation::Clear(root), by: by.clone() };
        let all: Vec<_> = roots(&graph).map(|root| (run.id, clear(root))).collect();
        let settle = self.runtime.settle_all(&all);
        let quota = &self.runtime.quota;
        quota.admitting(self.runtime, run.tenant, settle, |done| done.contains(&Settled::Applied)).await?;
        Ok(())
    }

    async fn end_backfill(self, record: &BackfillRecord) -> Result<()> {
        let (state, finished_at) = (BackfillState::Finished, Some(self.runtime.clock.now()));
        let ended = BackfillRecord { state, finished_at, due_at: None, problem: None, ..record.clone() };
        // If it was changed meanwhile, it is advanced again.
        self.runtime.store.save_backfill(&ended).await?;
        Ok(())
    }

    /// A date for whose run the tenant has no room waits, and the backfill tries again at its next turn.
    async fn wait_for_room(self, record: &BackfillRecord, date: &BackfillDate, error: &Error) -> Result<()> {
        self.unclaim(record, date).await?;
        let why = format!("the run for {} waits: {error}", date.date.to_rfc3339());
        warn!(event = "quota_reached", "Backfill {}: {why}", record.id);
        let due_at = Some(self.runtime.clock.now() + RECHECK_AFTER);
        self.change_backfill(record.id, |record| match record.state {
            BackfillState::Running => BackfillRecord { due_at, problem: Some(why.clone()), ..record },
            _ => record,
        })
        .await
        .map(|_| ())
    }

    async fn unclaim(self, record: &BackfillRecord, date: &BackfillDate) -> Result<()> {
        if !date.redo {
            let unclaimed = BackfillDate { step: DateStep::Waiting, run: None, ..*date };
            self.runtime.store.move_date(record.id, DateStep::Claimed, &unclaimed).await?;
        }
        Ok(())
    }

    /// A date that cannot begin waits again, and the backfill with it.
    async fn stumble_at(self, record: &BackfillRecord, date: &BackfillDate, error: &Error) -> Result<()> {
        self.unclaim(record, date).await?;
        self.stumble(record.id, format!("no run for {}: {error}", date.date.to_rfc3339())).await
    }

    /// Pauses a backfill that cannot continue, with the reason.
    async fn stumble(self, id: BackfillId, why: String) -> Result<()> {
        warn!("Backfill {id} is paused: {why}");
        self.change_backfill(id, |record| match record.state {
            BackfillState::Running => BackfillRecord {
                state: BackfillState::Paused,
                due_at: None,
                problem: Some(why.clone()),
                ..record
            },
            _ => record,
        })
        .await
        .map(|_| ())
    }

    async fn recheck(self, id: BackfillId) -> Result<()> {
        let at = self.runtime.clock.now() + RECHECK_WHILE_RERUNNING;
        self.change_backfill(id, |record| match record.due_at {
            Some(due_at) if due_at > at => BackfillRecord { due_at: Some(at), ..record },
            _ => record,
        })
        .await
        .map(|_| ())
    }
}

/// The tasks that depend on nothing.
fn roots(graph: &Graph) -> impl Iterator<Item = model::TaskIndex> + '_ {
    graph.indices().filter(|task| graph.ancestors(*task).is_empty())
}

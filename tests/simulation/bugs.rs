//! Bugs planted on purpose, outside the product, which the simulator must find.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use model::wait_queue::{SlotChanges, SlotRows};
use model::{Candidate, Changes, Message, Run, RunId, Task, TaskKey, TaskState, TenantId, TimerKind};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use store::{Claim, DueTimer, Memory, Runs, VersionRecord};

use crate::bus::InFlight;
use crate::fault_points::{Interrupted, now};
use crate::reports::ReportChecks;

/// A mistake that a programmer could make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bug {
    /// Rows are written whatever was written over them meanwhile.
    MissingFence,
    /// Messages go out before the commit, which may not come.
    PublishBeforeCommit,
    /// What is to be published is not written down with the rest.
    LostOutboxRow,
    /// A deadline that fired is due again.
    TimerFiredTwice,
    /// A retry that fired is due again, for whatever attempt there is.
    UnfencedTimer,
    /// A parent that ended is counted twice.
    DoubleRelease,
    /// A task that ended keeps its slot.
    KeptSlot,
    /// A tenant's tasks do not use up its turns.
    GreedyTenant,
    /// Nobody remembers which tasks are not idempotent.
    ForgottenPromise,
    /// A task that is dispatched no longer is still offered to workers outside.
    KeptOffer,
    /// A worker outside may report about an attempt after another worker has started the next one.
    UncheckedReport,
    /// A result that was accepted is refused when it is repeated.
    RefusedRepeat,
    /// A hand-back that was accepted is refused when it is repeated.
    RefusedHandBack,
    /// A checkpoint is refused once its worker has ended the attempt.
    RefusedCheckpoint,
    /// Attempts of workers that are gone are not found.
    UnnoticedLoss,
    /// The last in line is leased first.
    UnfairLease,
}

/// The bug that is planted in a world, if one is. Clones share what it remembers.
#[derive(Clone)]
pub(crate) struct Planted {
    bug: Option<Bug>,
    in_flight: InFlight,
    memory: Arc<Mutex<Remembered>>,
}

struct Remembered {
    rng: StdRng,
    runs: BTreeMap<RunId, Run>,
    tasks: BTreeMap<TaskKey, Task>,
    fired: Vec<DueTimer>,
    said: bool,
}

impl Planted {
    pub(crate) fn new(bug: Option<Bug>, in_flight: InFlight, seed: u64) -> Self {
        let remembered = Remembered {
            rng: StdRng::seed_from_u64(seed),
            runs: BTreeMap::new(),
            tasks: BTreeMap::new(),
            fired: Vec::new(),
            said: false,
        };
        Self { bug, in_flight, memory: Arc::new(Mutex::new(remembered)) }
    }

    fn is(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// A definition that lacks what it said about losses.
    pub(crate) fn read_version(&self, mut record: Option<VersionRecord>) -> Option<VersionRecord> {
        let tasks = record.iter_mut().flat_map(|record| &mut record.workflow.tasks);
        for task in tasks.filter(|_| self.is(Bug::ForgottenPromise)) {
            task.idempotent = None;
            task.fan_out.iter_mut().for_each(|fan_out| fan_out.task.idempotent = None);
        }
        record
    }

    /// What the server checks of a report of a worker outside.
    pub(crate) fn report_checks(&self) -> ReportChecks {
        ReportChecks {
            expected: !self.is(Bug::UncheckedReport),
            recorded: !self.is(Bug::RefusedRepeat),
            handed_back: !self.is(Bug::RefusedHandBack),
            ended: !self.is(Bug::RefusedCheckpoint),
        }
    }

    /// The attempts of workers that are gone.
    pub(crate) fn lost(&self, mut claims: Vec<Claim>) -> Vec<Claim> {
        claims.retain(|_| !self.is(Bug::UnnoticedLoss));
        claims
    }

    /// The offers that a worker outside tries for, in order.
    pub(crate) fn candidates(&self, candidates: &[Candidate]) -> Vec<Candidate> {
        let mut candidates = candidates.to_vec();
        if self.is(Bug::UnfairLease) {
            candidates.reverse();
        }
        candidates
    }

    /// A decision made on rows as they were a while ago …
    pub(crate) fn read_runs(&self, rows: Vec<Run>) -> Vec<Run> {
        if !self.is(Bug::MissingFence) {
            return rows;
        }
        let mut memory = self.memory.lock().unwrap();
        let memory = &mut *memory;
        let stale = memory.rng.random_bool(0.2);
        let older = |run: Run| match memory.runs.insert(run.id, run.clone()) {
            Some(before) if stale => before,
            _ => run,
        };
        rows.into_iter().map(older).collect()
    }

    pub(crate) fn read_tasks(&self, rows: Vec<(RunId, Task)>) -> Vec<(RunId, Task)> {
        if !self.is(Bug::MissingFence) {
            return rows;
        }
        let mut memory = self.memory.lock().unwrap();
        let memory = &mut *memory;
        let stale = memory.rng.random_bool(0.2);
        let older = |(run, task): (RunId, Task)| match memory
            .tasks
            .insert(TaskKey { run, task: task.index }, task.clone())
        {
            Some(before) if stale => (run, before),
            _ => (run, task),
        };
        rows.into_iter().map(older).collect()
    }

    /// … is written over what there is now, or is written in part, or counts too much.
    pub(crate) fn write(&self, changes: &[Changes], memory: &Memory) -> Vec<Changes> {
        let mut changes = changes.to_vec();
        match self.bug {
            Some(Bug::MissingFence) => changes.iter_mut().for_each(|changes| unfence(changes, memory)),
            Some(Bug::LostOutboxRow) => {
                // For some runs regardless of faults, so that none is needed.
                let is_kept =
                    |message: &Message| message.run().is_none_or(|run| run.0.as_bytes()[15] % 8 > 0);
                changes.iter_mut().for_each(|changes| changes.outbox.retain(is_kept));
            }
            Some(Bug::DoubleRelease) => {
                let joins = changes.iter_mut().flat_map(|changes| &mut changes.tasks);
                for join in
                    joins.filter(|task| task.state == TaskState::Pending && task.parents.succeeded > 0)
                {
                    join.parents.done += 1;
                    join.parents.succeeded += 1;
                }
            }
            Some(Bug::KeptOffer) => {
                changes.iter_mut().for_each(|changes| changes.withdrawn_offers.clear());
            }
            Some(Bug::PublishBeforeCommit) => {
                let outbox = changes.iter().flat_map(|changes| changes.outbox.iter().cloned());
                outbox.for_each(|message| self.in_flight.put(message));
                self.memory.lock().unwrap().said = true;
            }
            Some(
                Bug::TimerFiredTwice
                | Bug::UnfencedTimer
                | Bug::KeptSlot
                | Bug::GreedyTenant
                | Bug::ForgottenPromise
                | Bug::UncheckedReport
                | Bug::RefusedRepeat
                | Bug::RefusedHandBack
                | Bug::RefusedCheckpoint
                | Bug::UnnoticedLoss
                | Bug::UnfairLease,
            )
            | None => {}
        }
        changes
    }

    /// What an admission changed; a slot that is given back may not be counted.
    pub(crate) fn save_slots(&self, changes: &SlotChanges) -> SlotChanges {
        let mut changes = changes.clone();
        if self.is(Bug::KeptSlot) {
            let mut memory = self.memory.lock().unwrap();
            changes.counted.retain(|_, by| *by >= 0 || memory.rng.random_bool(0.9));
        }
        changes
    }

    /// The turns of groups; those of a greedy tenant never advance, so that it is always next.
    pub(crate) fn read_slots(&self, mut rows: SlotRows) -> SlotRows {
        if self.is(Bug::GreedyTenant) {
            let greedy = rows.groups.iter_mut().filter(|((_, group), _)| group.tenant == TenantId::DEFAULT);
            greedy.for_each(|(_, turns)| turns.position = 0);
        }
        rows
    }

    /// Whether the commit comes about.
    pub(crate) fn commit(&self) -> Result<(), Interrupted> {
        if !self.is(Bug::PublishBeforeCommit) {
            return Ok(());
        }
        let mut memory = self.memory.lock().unwrap();
        let said = std::mem::take(&mut memory.said);
        if said && memory.rng.random_bool(0.1) { Err(Interrupted) } else { Ok(()) }
    }

    /// What is due, and what was due before.
    pub(crate) fn due_timers(&self, mut due: Vec<DueTimer>, memory: &Memory) -> Vec<DueTimer> {
        if !self.is(Bug::TimerFiredTwice) && !self.is(Bug::UnfencedTimer) {
            return due;
        }
        let mut remembered = self.memory.lock().unwrap();
        let again = remembered.fired.iter().cloned();
        let again: Vec<DueTimer> = match self.bug {
            Some(Bug::UnfencedTimer) => {
                let again = again.filter(|fired| fired.timer.kind == TimerKind::Retry);
                again.filter_map(|fired| for_the_attempt_at_hand(fired, memory)).collect()
            }
            // Others are fenced by their attempt, or set again with their run.
            _ => again.filter(|fired| fired.timer.kind == TimerKind::Deadline).collect(),
        };
        remembered.fired.extend(due.iter().cloned());
        due.extend(again);
        due
    }
}

fn unfence(changes: &mut Changes, memory: &Memory) {
    let id = changes.run.id;
    let Some(run) = now(memory.run(TenantId::DEFAULT, id)).unwrap() else { return };
    // Events are numbered on, so that only the fence is missing and not their keys.
    changes.run.revision = run.run.revision;
    changes.run.events = run.run.events + changes.events.len() as i64;
    for task in &mut changes.tasks {
        let of = task.child.map(|child| child.of);
        let rows = now(memory.run_tasks(id, of, None, 100_000)).unwrap();
        if let Some(row) = rows.iter().find(|row| row.task.index == task.index) {
            task.revision = row.task.revision;
        }
    }
}

fn for_the_attempt_at_hand(mut fired: DueTimer, memory: &Memory) -> Option<DueTimer> {
    let rows = now(memory.run_tasks(fired.run, None, None, 100_000)).unwrap();
    let task = rows.into_iter().find(|row| Some(row.task.index) == fired.timer.task)?.task;
    fired.timer.attempt = task.attempt;
    Some(fired)
}

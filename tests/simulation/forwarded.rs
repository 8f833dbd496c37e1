//! What the simulated store passes on to the store within, trait by trait.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::TimeDelta;
use model::{
    AttemptRecord, BackfillId, Breaker, BreakerGate, BreakerKey, BreakerRead, CloudEvent, Event, Granted,
    Instant, Limit, Progress, ProgressReport, ResourceUsage, RunId, RunState, ServedQueues, TaskIndex,
    TaskKey, TenantId, TriggerKey, VersionId, WorkerCommand, WorkerId,
};
use serde_json::Value;
use store::{
    Activated, Active, Agenda, BackfillDate, BackfillRecord, BackfillTurn, Checkpoint, Claim, DateStep,
    DeadLetter, DeadLetterFilter, Heartbeat, HeartbeatReply, Inspection, LimitRecord, Load, LogChunk,
    LogLine, NewVersion, Part, Pause, Paused, PollRecord, Registered, Result, RunFilter, RunRecord,
    ScheduleRecord, Silence, SlotWait, TaskRecord, TriggerEvent, TriggerFilter, TriggerPause, TriggerRecord,
    Unsent, Usage, VersionRecord, WorkflowRecord,
};

use crate::fault_points::now;
use crate::faults::Point;
use crate::store::{SimulatedStore, SimulatedTransaction, away};

/// Passes on one trait: faults may happen before a read, before and after a write; the rest nobody calls in a simulated
/// world. A planted bug may change what is read.
macro_rules! forward {
    (
        $part:ident
        $(reads { $(fn $read:ident($($asked:ident: $ask:ty),*) -> $found:ty $(, with $bug:ident)?;)* })?
        $(writes { $(fn $write:ident($($argument:ident: $type:ty),*) -> $answer:ty;)* })?
        $(uncalled { $(fn $name:ident($($given:ident: $gift:ty),*) -> $got:ty;)* })?
    ) => {
        #[async_trait]
        impl store::$part for SimulatedStore {
            $($(async fn $read(&self, $($asked: $ask),*) -> Result<$found> {
                self.points.stop(Point::Read).await.map_err(away)?;
                let found = self.inner.$read($($asked),*).await?;
                $(let found = self.planted.$bug(found);)?
                Ok(found)
            })*)?

            $($(async fn $write(&self, $($argument: $type),*) -> Result<$answer> {
                self.points.stop(Point::Write).await.map_err(away)?;
                let answer = self.inner.$write($($argument),*).await?;
                self.points.stop(Point::AfterWrite).await.map_err(away)?;
                Ok(answer)
            })*)?

            $($(async fn $name(&self, $($given: $gift),*) -> Result<$got> {
                self.inner.$name($($given),*).await
            })*)?
        }
    };
}

forward! {
    Definitions
    reads {
        fn active(tenant: TenantId, name: &str) -> Option<Active>;
        fn workflow(tenant: TenantId, name: &str) -> Option<WorkflowRecord>;
        fn version(id: VersionId) -> Option<VersionRecord>;
        fn numbered_version(tenant: TenantId, workflow: &str, number: i32) -> Option<VersionRecord>;
    }
    writes {
        fn register_all(new: &[NewVersion]) -> Vec<Registered>;
        fn archive(tenant: TenantId, workflow: &str, at: Instant) -> bool;
        fn activate(tenant: TenantId, workflow: &str, number: i32, at: Instant) -> Activated;
    }
    uncalled {
        fn pause_workflow(tenant: TenantId, workflow: &str, pause: Option<&Pause>, at: Instant) -> Paused;
    }
}

forward! {
    Runs
    reads {
        fn run(tenant: TenantId, id: RunId) -> Option<RunRecord>;
        fn runs(tenant: TenantId, filter: &RunFilter) -> Vec<RunRecord>;
        fn run_tasks(
            run: RunId,
            children_of: Option<TaskIndex>,
            after: Option<TaskIndex>,
            limit: u32
        ) -> Vec<TaskRecord>;
        fn item(child: TaskKey) -> Option<Value>;
        fn outputs(run: RunId, tasks: &[TaskIndex]) -> BTreeMap<TaskIndex, Value>;
        fn events(run: RunId, from: i64, limit: u32) -> Vec<(i64, Event)>;
        fn waiters(owner: TaskKey, limit: u32) -> Vec<(TaskKey, u32)>;
    }
    writes {
        fn give_up_date(run: RunId) -> ();
    }
}

forward! {
    Slots
    reads {
        fn untaken(before: Instant, limit: u32) -> Vec<Granted>;
        fn limits(tenant: TenantId) -> Vec<LimitRecord>;
        fn slot_wait(key: TaskKey) -> Option<SlotWait>;
    }
    writes {
        fn set_slots(limit: &Limit, slots: Option<u32>) -> ();
        fn set_weight(tenant: TenantId, weight: u32) -> ();
    }
}

forward! {
    Tenants
    reads {
        fn tenant_named(name: &str) -> Option<TenantId>;
        fn tenant_name(tenant: TenantId) -> Option<String>;
    }
    writes {
        fn tenant(name: &str, at: Instant) -> TenantId;
    }
}

forward! {
    Attempts
    reads {
        fn attempts(key: TaskKey) -> Vec<AttemptRecord>;
        fn log(key: TaskKey, attempt: u32, from: u32, limit: u32) -> Vec<(u32, LogLine)>;
        fn checkpoint(key: TaskKey) -> Option<Checkpoint>;
    }
    writes {
        fn append_log(chunk: &LogChunk) -> ();
        fn keep_checkpoint(key: TaskKey, checkpoint: &Checkpoint) -> bool;
    }
    uncalled {
        fn report_progress(key: TaskKey, report: &ProgressReport) -> ();
        fn progress(key: TaskKey) -> Vec<Progress>;
    }
}

forward! {
    Maintenance
    reads {
        fn agenda(at: Instant) -> Agenda;
        fn due_rechecks(at: Instant, limit: u32) -> Vec<RunId>;
    }
    writes {
        fn postpone(run: RunId, at: Instant, until: Instant) -> ();
        fn check_all(at: Instant) -> u64;
    }
}

forward! {
    Inspections
    reads {
        fn inspect(at: Instant, after: Option<RunId>) -> Inspection;
    }
}

forward! {
    Outbox
    reads {
        fn unsent(before: Instant, limit: u32) -> Vec<Unsent>;
    }
    writes {
        fn sent(ids: &[i64]) -> ();
    }
}

forward! {
    Retention
    reads {
        fn expired(part: Part, state: RunState, before: Instant) -> Vec<RunId>;
        fn documents(part: Part, runs: &[RunId]) -> Vec<Value>;
    }
    writes {
        fn take_retention(at: Instant, until: Instant) -> bool;
        fn rest_retention(until: Instant) -> ();
        fn turn_pages(at: Instant, before: Instant) -> ();
        fn forget(part: Part, runs: &[RunId]) -> ();
    }
    uncalled {
        fn delete_dead_letters(before: Instant) -> u64;
        fn forget_trigger_events(at: Instant) -> u64;
        fn forget_breakers(before: Instant) -> u64;
    }
}

forward! {
    Workers
    reads {
        fn served_queues() -> ServedQueues;
        fn silent(since: Instant, limit: u32) -> Vec<Silence>;
        fn own_workers() -> Vec<Silence>;
        fn lost(silent: &[Silence], limit: u32) -> Vec<Claim>, with lost;
    }
    writes {
        fn beat(sign: &Heartbeat) -> HeartbeatReply;
        fn farewell(worker: WorkerId) -> Option<WorkerCommand>;
        fn command_worker(worker: WorkerId, command: &WorkerCommand) -> Option<WorkerCommand>;
        fn mark_dead(silent: &[Silence], at: Instant) -> u64;
        fn check_in(sign: &Heartbeat, every: TimeDelta) -> Option<WorkerCommand>;
        fn count_done(done: &[(WorkerId, u32)]) -> ();
    }
    uncalled {
        fn report_usage(worker: WorkerId, usage: &ResourceUsage) -> ();
    }
}

forward! {
    DeadLetters
    reads {
        fn dead_letter(id: &str) -> Option<DeadLetter>;
        fn dead_letters(filter: &DeadLetterFilter) -> Vec<DeadLetter>;
    }
    writes {
        fn insert_dead_letter(dead_letter: &DeadLetter) -> ();
        fn discard(id: &str) -> bool;
    }
}

forward! {
    Schedules
    reads {
        fn schedules(
            tenant: TenantId,
            workflow: Option<&str>,
            after: Option<(&str, &str)>,
            limit: u32
        ) -> Vec<ScheduleRecord>;
        fn due_schedules(at: Instant, limit: u32) -> Vec<ScheduleRecord>;
    }
    writes {
        fn save_schedule(record: &ScheduleRecord) -> bool;
    }
}

forward! {
    Backfills
    reads {
        fn runs_of_dates(
            tenant: TenantId,
            workflow: &str,
            schedule: &str,
            from: Instant,
            to: Instant
        ) -> BTreeMap<Instant, (RunId, RunState)>;
        fn any_backfill(id: BackfillId) -> Option<BackfillRecord>;
        fn backfills(
            tenant: TenantId,
            workflow: Option<&str>,
            after: Option<(Instant, BackfillId)>,
            limit: u32
        ) -> Vec<BackfillRecord>;
        fn due_backfills(at: Instant, limit: u32) -> Vec<BackfillRecord>;
        fn backfill_turn(id: BackfillId, limit: u32) -> BackfillTurn;
        fn backfill_runs(id: BackfillId, states: &[RunState], limit: u32) -> Vec<(BackfillDate, RunState)>;
    }
    writes {
        fn create_backfill(record: &BackfillRecord, dates: &[BackfillDate]) -> ();
        fn save_backfill(record: &BackfillRecord) -> bool;
        fn move_date(id: BackfillId, from: DateStep, date: &BackfillDate) -> bool;
        fn forget_backfills(before: Instant) -> u64;
    }
}

forward! {
    Triggers
    reads {
        fn trigger(key: &TriggerKey) -> Option<TriggerRecord>;
        fn triggers(tenant: TenantId, filter: &TriggerFilter) -> Vec<TriggerRecord>;
        fn triggers_on(tenant: TenantId, kind: &str, key: &str) -> Vec<TriggerRecord>;
        fn due_triggers(at: Instant, limit: u32) -> Vec<TriggerRecord>;
        fn runs_triggered(key: &TriggerKey, since: Instant) -> u32;
        fn run_on(tenant: TenantId, workflow: &str, date: Instant) -> Option<(RunId, RunState)>;
    }
    writes {
        fn put_off(key: &TriggerKey, due_at: Instant, until: Instant) -> bool;
        fn pause_trigger(key: &TriggerKey, pause: Option<&TriggerPause>, at: Instant) -> bool;
    }
}

forward! {
    Measured
    uncalled {
        fn load() -> Load;
        fn usage(tenant: TenantId, most: u32) -> Usage;
    }
}

macro_rules! forward_within {
    ($part:ident $(fn $name:ident($($given:ident: $gift:ty),*) -> $got:ty;)*) => {
        #[async_trait]
        impl store::$part for SimulatedTransaction {
            $(async fn $name(&mut self, $($given: $gift),*) -> Result<$got> {
                self.within(Point::UnitRead, |within| now(within.$name($($given),*)))
            })*
        }
    };
}

forward! {
    Breakers
    uncalled {
        fn breakers(keys: &[BreakerKey]) -> Vec<Breaker>;
    }
}

forward_within! {
    TransactionBreakers
    fn lock_breakers(read: &BreakerRead) -> Vec<Breaker>;
    fn breaker_gates(keys: &[BreakerKey]) -> Vec<BreakerGate>;
    fn save_breakers(breakers: &[Breaker]) -> ();
}

forward_within! {
    TransactionTriggers
    fn note_event(key: &TriggerKey, event: &TriggerEvent) -> bool;
    fn hold_event(key: &TriggerKey, event: &CloudEvent, due_at: Instant) -> bool;
    fn take_held(key: &TriggerKey, at: Instant) -> Option<CloudEvent>;
    fn record_poll(key: &TriggerKey, revision: i64, poll_record: &PollRecord) -> bool;
}

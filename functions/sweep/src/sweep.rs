//! One sweep: does the work that is due, waits for work that is due soon, requests the next wake-up, and ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chrono::TimeDelta;
use engine::Command;
use futures::FutureExt;
use host::WakeUps;
use host::wake_up::Ticks;
use model::{Instant, RunId};
use runtime::{Result, Runtime};
use store::{Agenda, Fault};
use tokio::sync::{Mutex, Notify};
use tracing::field::display;
use tracing::{info, warn};

use crate::Retention;
use crate::liveness::Suspects;

/// How long a sweep stays. The scheduler ticks every minute and may be a few seconds late, so consecutive sweeps overlap.
const TICK: TimeDelta = TimeDelta::seconds(65);

/// The same if it is called exactly when something is due: only the clocks of the caller and the sweep may differ a little.
const EXACT_TICK: TimeDelta = TimeDelta::seconds(2);

/// What is due and could not be done is tried again after this time.
const TRY_AGAIN_AFTER: TimeDelta = TimeDelta::seconds(30);

/// A dispatched task that no worker has claimed for this long gets its message again.
const CLAIM_TIMEOUT: TimeDelta = TimeDelta::seconds(30);

/// An outbox message of this age was not published by the process that wrote it.
const OUTBOX_TIMEOUT: TimeDelta = TimeDelta::seconds(5);

/// The maximum number of commands in one transaction.
pub(crate) const BATCH: u32 = 200;

/// The maximum number of timers fired in one transaction, whose own cost is then negligible.
const MAX_TIMERS: u32 = 1_000;

/// The maximum number of rechecks in one transaction: each reads all unfinished tasks of a run while it holds the run's lock.
const MAX_RECHECKS: u32 = 20;

/// The minimum time between two inspections of everything unfinished.
const INSPECTION_INTERVAL: TimeDelta = TimeDelta::minutes(5);

/// A timer that is overdue by this much and does not fire may be orphaned.
const ORPHANED_AFTER: TimeDelta = TimeDelta::minutes(1);

/// The number of pages of unfinished runs that one slice of an inspection reads.
const PAGES_PER_SLICE: u32 = 20;

/// The sweep of one instance. While one call is in progress, other calls notify it and return at once; but a tick replaces
/// it.
pub struct Sweep {
    pub(crate) runtime: Arc<Runtime>,
    /// Held by the current sweep; it holds the suspects for the next one.
    turn: Mutex<Suspects>,
    more_work: Notify,
    /// The number of ticks that wait for their turn.
    successors: AtomicUsize,
    inspection: std::sync::Mutex<Inspection>,
    retention: Retention,
    wake_ups: Arc<dyn WakeUps>,
    /// Follows the log filter that is set for the sweep, if one is.
    follow_filter: fn(Option<&str>),
}

/// The progress of this instance's inspection.
#[derive(Default)]
struct Inspection {
    started_at: Option<Instant>,
    /// The run after which to continue; none between inspections.
    after: Option<RunId>,
}

impl Sweep {
    /// A sweep of a runtime, with the default retention.
    pub fn new(runtime: Arc<Runtime>) -> Self {
        Self {
            runtime,
            turn: Mutex::default(),
            more_work: Notify::new(),
            successors: AtomicUsize::new(0),
            inspection: Default::default(),
            retention: Retention::default(),
            wake_ups: Arc::new(Ticks),
            follow_filter: |_| (),
        }
    }

    /// The same sweep with this retention instead of the default.
    pub fn with_retention(self, retention: Retention) -> Self {
        Self { retention, ..self }
    }

    /// Is called by other wake-ups than ticks.
    pub fn with_wake_ups(self, wake_ups: Arc<dyn WakeUps>) -> Self {
        Self { wake_ups, ..self }
    }

    /// Follows the log filter that is set for the sweep, with each look at the agenda.
    pub fn with_log_filter(self, follow_filter: fn(Option<&str>)) -> Self {
        Self { follow_filter, ..self }
    }

    /// Something is due at `wake_at`, perhaps before the next call of the sweep.
    pub(crate) async fn announced(&self, wake_at: Instant) -> Result<()> {
        if self.wake_ups.are_exact() && wake_at > self.runtime.clock().now() + EXACT_TICK {
            return self.request(wake_at).await;
        }
        self.run().await
    }

    async fn request(&self, wake_at: Instant) -> Result<()> {
        self.wake_ups.request(wake_at).await.map_err(runtime::Error::Bus)
    }

    /// Does the work that is due, and stays while timers are due before the next tick. It is idempotent.
    pub async fn run(&self) -> Result<()> {
        loop {
            let Ok(mut turn) = self.turn.try_lock() else {
                self.more_work.notify_one();
                if self.turn.try_lock().is_ok() {
                    // The other sweep ended before it noticed the new work.
                    continue;
                }
                return Ok(());
            };
            self.stay(Stay::WhileNotified, &mut turn).await?;
            drop(turn);
            if self.more_work.notified().now_or_never().is_none() {
                return Ok(());
            }
        }
    }

    /// The same for a tick, which stays at most until the next tick: the scheduler starts no tick before the last one has
    /// ended, and has a timeout. If another tick comes nevertheless, it replaces the current sweep, which ends after its
    /// current step.
    pub async fn tick(&self) -> Result<()> {
        let successor = Successor::among(&self.successors);
        self.more_work.notify_one();
        let mut turn = self.turn.lock().await;
        drop(successor);
        // The first pass covers all notifications until now.
        let _ = self.more_work.notified().now_or_never();
        self.stay(Stay::UntilNextTick, &mut turn).await?;
        drop(turn);
        // A caller that notified this sweep while it was ending relies on another pass.
        match self.more_work.notified().now_or_never() {
            Some(()) => self.run().await,
            None => Ok(()),
        }
    }

    /// Takes over the suspects of the previous sweep, and leaves its own to the next, so that ticks in quick succession do
    /// not postpone a verdict. Only an unbroken chain of sweeps knows that the store responded all the time.
    async fn stay(&self, how: Stay, handover: &mut Suspects) -> Result<()> {
        let clock = self.runtime.clock();
        let tick = if self.wake_ups.are_exact() { EXACT_TICK } else { TICK };
        let (mut end, mut suspects) = (clock.now() + tick, std::mem::take(handover));
        loop {
            let now = clock.now();
            let agenda = self.runtime.store().agenda(now).await?;
            (self.follow_filter)(agenda.log_filter.as_deref());
            let lost = self.check_workers(&mut suspects, &agenda, now).await?;
            let worked = self.work(&agenda, now, CLAIM_TIMEOUT).await? || lost > 0;
            // With nothing due, nothing more is read; waiting runs are inspected once a day.
            let expires = due(agenda.retention, TimeDelta::zero(), now);
            let overdue =
                due(agenda.recheck, TimeDelta::zero(), now) || due(agenda.timer, ORPHANED_AFTER, now);
            let more = self.reconcile(overdue || agenda.neglected || expires, now).await?;
            if self.successors.load(Ordering::SeqCst) > 0 {
                *handover = suspects;
                return Ok(());
            }
            if worked || more {
                continue;
            }
            // Last and in small steps, so that no timer is late.
            if expires && self.retention.step(&self.runtime, now).await? {
                continue;
            }
            let soon = [agenda.next_timer, agenda.trigger, agenda.breaker]
                .into_iter()
                .flatten()
                .filter(|next| *next < end);
            let Some(next) = soon.chain(suspects.verdict_at()).min() else {
                return match next_due(&agenda, self.runtime.workers().liveness().suspect_after(), now) {
                    Some(wake_at) => self.request(wake_at).await,
                    None => Ok(()),
                };
            };
            if self.is_notified_before(next).await && how == Stay::WhileNotified {
                end = clock.now() + tick;
            }
        }
    }

    /// Resumes all runs after a restart of the only process: all its messages are lost, and all its workers are dead.
    pub async fn after_restart(&self) -> Result<()> {
        let now = self.runtime.clock().now();
        let runs = self.runtime.store().check_all(now).await?;
        if runs > 0 {
            info!("Resuming {runs} unfinished runs");
        }
        let workers = self.runtime.store().own_workers().await?;
        self.declare_dead(&workers).await?;
        let agenda = Agenda { recheck: Some(now), ..Agenda::default() };
        while self.work(&agenda, now, TimeDelta::zero()).await? {}
        Ok(())
    }

    /// Does a batch of each kind of work that is due. Returns whether there was any.
    async fn work(&self, agenda: &Agenda, now: Instant, claim_timeout: TimeDelta) -> Result<bool> {
        let due = |at, after| due(at, after, now);
        let mut done = 0;
        if due(agenda.timer, TimeDelta::zero()) {
            done += self.fire_timers(now).await?;
        }
        if due(agenda.schedule, TimeDelta::zero()) {
            done += self.runtime.schedules().fire(now, BATCH).await?;
        }
        if due(agenda.backfill, TimeDelta::zero()) {
            done += self.runtime.backfills().advance_due(now, BATCH).await?;
        }
        if due(agenda.recheck, TimeDelta::zero()) {
            done += self.recheck(now, claim_timeout).await?;
        }
        if due(agenda.unsent, OUTBOX_TIMEOUT) {
            done += self.relay(now - OUTBOX_TIMEOUT).await;
        }
        if due(agenda.granted, OUTBOX_TIMEOUT) {
            done += self.runtime.slots().take_up_untaken(now - OUTBOX_TIMEOUT, BATCH).await?;
        }
        if due(agenda.trigger, TimeDelta::zero()) {
            done += self.runtime.triggers().fire_due(now, BATCH).await?;
        }
        if due(agenda.breaker, TimeDelta::zero()) {
            done += self.runtime.slots().breakers().end_pauses(now, BATCH).await?;
        }
        if agenda.room {
            // A process released these slots and died before it granted them to others.
            self.runtime.slots().grant().await?;
        }
        Ok(done > 0)
    }

    /// Fires a large batch of timers, skipping locked runs. If none fires, a small batch waits for the locks.
    async fn fire_timers(&self, now: Instant) -> Result<usize> {
        let fired = self.runtime.fire(now, MAX_TIMERS).await?;
        if fired.applied > 0 {
            return Ok(fired.applied);
        }
        let due = self.runtime.store().due_timers(now, BATCH).await?;
        self.runtime.settle_or_postpone(due.into_iter().map(runtime::wake).collect()).await
    }

    async fn recheck(&self, now: Instant, claim_timeout: TimeDelta) -> Result<usize> {
        let runs = self.runtime.store().due_rechecks(now, MAX_RECHECKS).await?;
        if runs.is_empty() {
            return Ok(0);
        }
        // After a restart nobody is at work yet, which says nothing about the queues.
        let served =
            if claim_timeout.is_zero() { None } else { Some(self.runtime.store().served_queues().await?) };
        let recheck = |run| (run, Command::Recheck { claim_timeout, served: served.clone() });
        self.runtime.settle_or_postpone(runs.into_iter().map(recheck).collect()).await
    }

    /// Inspects everything unfinished every few minutes, and repairs what is inconsistent: one slice at a time, so that
    /// nothing else is late. Returns whether there is more to inspect.
    async fn reconcile(&self, suspicious: bool, now: Instant) -> Result<bool> {
        let Some(after) = self.next_slice(suspicious, now) else { return Ok(false) };
        let (mut findings, next) = self.runtime.repairs().inspect(after, PAGES_PER_SLICE).await?;
        self.inspection().after = next;
        // Dead workers are detected without comparing clocks, by `check_workers`.
        findings.retain(|finding| finding.fault != Fault::DeadWorkers);
        for finding in &findings {
            let (fault, run) = (finding.fault.name(), finding.run.map(display));
            metrics::counter!("ebbflow_findings_total", "fault" => fault).increment(1);
            // Alerts count some of these events.
            warn!(event = fault, run, count = finding.count, "Found {fault}");
        }
        self.runtime.repairs().repair(&findings).await?;
        Ok(next.is_some())
    }

    /// The run after which to inspect, if an inspection is due.
    fn next_slice(&self, suspicious: bool, now: Instant) -> Option<Option<RunId>> {
        let mut inspection = self.inspection();
        let recent = inspection.started_at.is_some_and(|at| at + INSPECTION_INTERVAL > now);
        match inspection.after.take() {
            Some(after) => Some(Some(after)),
            None if !suspicious || recent => None,
            None => {
                inspection.started_at = Some(now);
                Some(None)
            }
        }
    }

    fn inspection(&self) -> std::sync::MutexGuard<'_, Inspection> {
        self.inspection.lock().expect("no holder panics")
    }

    /// Publishes messages that were committed and not sent. An unavailable bus must not keep timers from firing.
    async fn relay(&self, before: Instant) -> usize {
        self.runtime.relay(before, BATCH).await.unwrap_or_else(|error| {
            warn!("Outbox messages wait for the next tick: {error}");
            0
        })
    }

    /// Waits until an instant or a notification of more work. Returns whether it was a notification.
    async fn is_notified_before(&self, instant: Instant) -> bool {
        tokio::select! {
            biased;
            () = self.more_work.notified() => true,
            () = self.runtime.clock().wait_until(instant) => false,
        }
    }
}

/// How long a sweep stays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stay {
    /// Until the next tick has certainly begun.
    UntilNextTick,
    /// The same, counted from the last notification.
    WhileNotified,
}

/// Counts a tick as waiting for its turn, until it has it or gives up.
struct Successor<'a>(&'a AtomicUsize);

impl<'a> Successor<'a> {
    fn among(all: &'a AtomicUsize) -> Self {
        all.fetch_add(1, Ordering::SeqCst);
        Self(all)
    }
}

impl Drop for Successor<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// When the next thing is due. A sweep does everything that is due, so what is left could not be done.
fn next_due(agenda: &Agenda, suspect_after: TimeDelta, now: Instant) -> Option<Instant> {
    let late = |at: Option<Instant>, after: TimeDelta| at.map(|at| at + after);
    let all = [
        agenda.timer,
        agenda.next_timer,
        agenda.schedule,
        agenda.backfill,
        agenda.recheck,
        agenda.trigger,
        agenda.breaker,
        agenda.retention,
        late(agenda.unsent, OUTBOX_TIMEOUT),
        late(agenda.granted, OUTBOX_TIMEOUT),
        late(agenda.worker, suspect_after),
    ];
    let all = all.into_iter().flatten();
    all.map(|at| if at > now { at } else { now + TRY_AGAIN_AFTER }).min()
}

/// Whether the time `after` an instant has come.
fn due(at: Option<Instant>, after: TimeDelta, now: Instant) -> bool {
    at.is_some_and(|at| at + after <= now)
}

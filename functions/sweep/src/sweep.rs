//! One sweep: does what is due, waits for what is due soon, and ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chrono::TimeDelta;
use engine::Command;
use futures::FutureExt;
use model::{Instant, RunId};
use runtime::{Result, Runtime};
use store::{Agenda, Fault};
use tokio::sync::{Mutex, Notify};
use tracing::field::display;
use tracing::{info, warn};

use crate::Retention;
use crate::watch::Watch;

/// The scheduler ticks every minute and may be a few seconds late: a sweep waits for whatever is due until the next one has
/// surely begun. So two sweeps overlap, and no instant falls between them.
const TICK: TimeDelta = TimeDelta::seconds(65);

/// A dispatched task that no worker has claimed for this long gets its message again.
const CLAIM_TIMEOUT: TimeDelta = TimeDelta::seconds(30);

/// An outbox message of this age was not published by the process that wrote it.
const OUTBOX_TIMEOUT: TimeDelta = TimeDelta::seconds(5);

/// The maximum number of commands in one transaction.
pub(crate) const BATCH: u32 = 200;

/// The maximum number of timers fired in one transaction, whose own cost is then negligible.
const MAX_TIMERS: u32 = 1_000;

/// The maximum number of rechecks at a time: each reads all that is unfinished of a run while holding its lock.
const RECHECKS: u32 = 20;

/// The minimum time between two inspections of everything unfinished.
const INSPECTION_INTERVAL: TimeDelta = TimeDelta::minutes(5);

/// A timer overdue by this much that does not fire may be orphaned.
const ORPHANED_AFTER: TimeDelta = TimeDelta::minutes(1);

/// The number of pages of unfinished runs that one slice of an inspection reads.
const PAGES_PER_SLICE: u32 = 20;

/// The sweep of one instance. While one call is in progress, others hand over to it and return at once; but a tick replaces
/// it.
pub struct Sweep {
    pub(crate) runtime: Arc<Runtime>,
    turn: Mutex<Watch>,
    news: Notify,
    /// How many ticks wait for their turn.
    successors: AtomicUsize,
    round: std::sync::Mutex<Round>,
    retention: Retention,
}

/// How far this instance's inspection has come.
#[derive(Default)]
struct Round {
    began: Option<Instant>,
    /// The run after which to continue, while there are more.
    after: Option<RunId>,
}

impl Sweep {
    /// A sweep that works through this runtime.
    pub fn new(runtime: Arc<Runtime>) -> Self {
        Self {
            runtime,
            turn: Mutex::default(),
            news: Notify::new(),
            successors: AtomicUsize::new(0),
            round: Default::default(),
            retention: Retention::default(),
        }
    }

    /// The same sweep with another retention.
    pub fn keeping(self, retention: Retention) -> Self {
        Self { retention, ..self }
    }

    /// Does what is due, and stays while timers are due before the next tick. It is idempotent.
    pub async fn run(&self) -> Result<()> {
        loop {
            let Ok(mut turn) = self.turn.try_lock() else {
                self.news.notify_one();
                if self.turn.try_lock().is_ok() {
                    // The other sweep left before it noticed the new work.
                    continue;
                }
                return Ok(());
            };
            self.stay(Stay::WhileThereIsNews, &mut turn).await?;
            drop(turn);
            if self.news.notified().now_or_never().is_none() {
                return Ok(());
            }
        }
    }

    /// The same for a tick, which stays no longer than until the next one: the scheduler starts none before the last one has
    /// ended, and cuts it off after a while. If another comes all the same, it replaces the current sweep, which leaves after
    /// its current step.
    pub async fn tick(&self) -> Result<()> {
        let successor = Successor::among(&self.successors);
        self.news.notify_one();
        let mut turn = self.turn.lock().await;
        drop(successor);
        // The first round sees everything notified until now.
        let _ = self.news.notified().now_or_never();
        self.stay(Stay::UntilTheNextTick, &mut turn).await?;
        drop(turn);
        // A caller that handed over while this one was about to leave relies on another round.
        match self.news.notified().now_or_never() {
            Some(()) => self.run().await,
            None => Ok(()),
        }
    }

    /// Takes over the doubts of the previous sweep, and passes its own on to the next: ticks in quick succession postpone no
    /// verdict. Only the chain of sweeps has seen that the store answered all the while.
    async fn stay(&self, how: Stay, handed_on: &mut Watch) -> Result<()> {
        let clock = self.runtime.clock();
        let (mut end, mut watch) = (clock.now() + TICK, std::mem::take(handed_on));
        loop {
            let now = clock.now();
            let agenda = self.runtime.store().agenda(now).await?;
            let taken = self.watch(&mut watch, &agenda, now).await?;
            let worked = self.work(&agenda, now, CLAIM_TIMEOUT).await? || taken > 0;
            // While nothing is due, nothing more is read; waiting runs are inspected once a day.
            let expires = due(agenda.retention, TimeDelta::zero(), now);
            let overdue =
                due(agenda.recheck, TimeDelta::zero(), now) || due(agenda.timer, ORPHANED_AFTER, now);
            let more = self.reconcile(overdue || agenda.neglected || expires, now).await?;
            if self.successors.load(Ordering::SeqCst) > 0 {
                *handed_on = watch;
                return Ok(());
            }
            if worked || more {
                continue;
            }
            // Last, and a little at a time, so that no timer is late.
            if expires && self.retention.step(&self.runtime, now).await? {
                continue;
            }
            let soon = [agenda.next_timer, agenda.trigger].into_iter().flatten().filter(|next| *next < end);
            let Some(next) = soon.chain(watch.verdict_at()).min() else { return Ok(()) };
            if self.is_notified_before(next).await && how == Stay::WhileThereIsNews {
                end = clock.now() + TICK;
            }
        }
    }

    /// Resumes everything after a restart of the only process there is: all its messages are lost, and all its workers are
    /// dead.
    pub async fn after_restart(&self) -> Result<()> {
        let now = self.runtime.clock().now();
        let runs = self.runtime.store().check_all(now).await?;
        if runs > 0 {
            info!("Resuming {runs} unfinished runs");
        }
        let workers = self.runtime.store().silent(now, u32::MAX).await?;
        self.give_up_on(&workers).await?;
        let agenda = Agenda { recheck: Some(now), ..Agenda::default() };
        while self.work(&agenda, now, TimeDelta::zero()).await? {}
        Ok(())
    }

    /// Does a batch of each kind of work that is due. Returns whether there was any.
    async fn work(&self, agenda: &Agenda, now: Instant, patience: TimeDelta) -> Result<bool> {
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
            done += self.recheck(now, patience).await?;
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
        if agenda.room {
            // A process released these slots and died before it granted them.
            self.runtime.slots().grant().await?;
        }
        Ok(done > 0)
    }

    /// Fires a large batch of timers of unlocked runs. If that fires none, a run was locked or cannot be settled: a small batch
    /// then waits for its locks.
    async fn fire_timers(&self, now: Instant) -> Result<usize> {
        match self.runtime.fire(now, MAX_TIMERS).await {
            Ok(fired) if fired.applied > 0 => return Ok(fired.applied),
            Ok(_) => {}
            Err(error) if error.is_passing() => return Err(error),
            Err(error) => warn!("A batch of timers failed, trying a smaller one: {error}"),
        }
        let due = self.runtime.store().due_timers(now, BATCH).await?;
        self.runtime.settle_or_postpone(due.into_iter().map(runtime::wake).collect()).await
    }

    async fn recheck(&self, now: Instant, patience: TimeDelta) -> Result<usize> {
        let runs = self.runtime.store().due_rechecks(now, RECHECKS).await?;
        let commands = runs.into_iter().map(|run| (run, Command::Recheck { patience })).collect();
        self.runtime.settle_or_postpone(commands).await
    }

    /// Every few minutes, inspects everything unfinished and repairs what is wrong: a slice at a time, so that nothing else is
    /// late. Returns whether there is more to inspect.
    async fn reconcile(&self, suspicious: bool, now: Instant) -> Result<bool> {
        let Some(after) = self.next_slice(suspicious, now) else { return Ok(false) };
        let (mut findings, next) = self.runtime.repairs().inspect(after, PAGES_PER_SLICE).await?;
        self.round().after = next;
        // The watch decides about workers, without comparing clocks.
        findings.retain(|finding| finding.fault != Fault::DeadWorkers);
        for finding in &findings {
            let (fault, run) = (finding.fault.name(), finding.run.map(display));
            metrics::counter!("ebbflow_findings_total", "fault" => fault).increment(1);
            // The fault is the event: alerts count some of them.
            warn!(event = fault, run, count = finding.count, "Found {fault}");
        }
        self.runtime.repairs().repair(&findings).await?;
        Ok(next.is_some())
    }

    /// The run after which to inspect, if it is time to.
    fn next_slice(&self, suspicious: bool, now: Instant) -> Option<Option<RunId>> {
        let mut round = self.round();
        let rests = round.began.is_some_and(|began| began + INSPECTION_INTERVAL > now);
        match round.after.take() {
            Some(after) => Some(Some(after)),
            None if !suspicious || rests => None,
            None => {
                round.began = Some(now);
                Some(None)
            }
        }
    }

    fn round(&self) -> std::sync::MutexGuard<'_, Round> {
        self.round.lock().expect("nothing panics while it is held")
    }

    /// Publishes what was committed and not sent. An unavailable bus must not keep timers from firing.
    async fn relay(&self, before: Instant) -> usize {
        self.runtime.relay(before, BATCH).await.unwrap_or_else(|error| {
            warn!("Outbox messages wait for the next tick: {error}");
            0
        })
    }

    /// Waits for an instant, or for a notification that may bring an earlier one. Returns whether it was the notification.
    async fn is_notified_before(&self, instant: Instant) -> bool {
        tokio::select! {
            biased;
            () = self.news.notified() => true,
            () = self.runtime.clock().wait_until(instant) => false,
        }
    }
}

/// How long a sweep stays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stay {
    /// Until the next tick has surely come.
    UntilTheNextTick,
    /// The same, counted from the last notification that more is due.
    WhileThereIsNews,
}

/// A tick that waits for its turn, until it has it or gives up.
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

/// Whether something due a while after an instant is due now.
fn due(at: Option<Instant>, after: TimeDelta, now: Instant) -> bool {
    at.is_some_and(|at| at + after <= now)
}

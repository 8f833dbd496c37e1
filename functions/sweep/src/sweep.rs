//! One sweep: look what is due, do it, wait for what is due soon, end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chrono::TimeDelta;
use engine::Command;
use futures::FutureExt;
use model::{Instant, RunId};
use runtime::{Result, Runtime, Settled};
use store::{Agenda, Fault};
use tokio::sync::{Mutex, Notify};
use tracing::field::display;
use tracing::{error, info, warn};

use crate::Retention;
use crate::watch::Watch;

/// The scheduler ticks every minute and may be late by a few seconds: whatever is due before the next tick is surely there
/// is waited for. So two sweeps overlap, and no instant falls between them.
const TICK: TimeDelta = TimeDelta::seconds(65);

/// A dispatched task that nobody took for so long needs its message again.
const PATIENCE: TimeDelta = TimeDelta::seconds(30);

/// An outbox message as old as this was not published by the process that wrote it.
const UNSENT: TimeDelta = TimeDelta::seconds(5);

/// So many things are done in one transaction.
pub(crate) const BATCH: u32 = 200;

/// So many timers are fired in one transaction: what a transaction costs is then little beside what they cost.
const TIMERS: u32 = 1_000;

/// A check-up reads all that is unfinished of a run while the run waits: only so many at a time.
const CHECKUPS: u32 = 20;

/// Everything that is unfinished is looked through no more often than this.
const RECONCILE: TimeDelta = TimeDelta::minutes(5);

/// A timer that is overdue by so much and does not fire may be one that nothing waits for.
const FORGOTTEN: TimeDelta = TimeDelta::minutes(1);

/// So many pages of unfinished runs are looked through in one slice.
const LOOKS: u32 = 20;

/// A run that cannot be settled is left alone for so long.
const PUT_OFF: TimeDelta = TimeDelta::minutes(10);

/// The sweep of one instance. While one call is under way, others hand over to it and return at once; but a tick takes
/// its place.
pub struct Sweep {
    pub(crate) runtime: Arc<Runtime>,
    turn: Mutex<Watch>,
    news: Notify,
    /// How many ticks wait for the turn.
    successors: AtomicUsize,
    round: std::sync::Mutex<Round>,
    retention: Retention,
}

/// How far this instance has come in looking through everything for what should not be.
#[derive(Default)]
struct Round {
    began: Option<Instant>,
    /// The run after which to go on, while there are more.
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

    /// The same sweep, where what has ended is kept for other times.
    pub fn keeping(self, retention: Retention) -> Self {
        Self { retention, ..self }
    }

    /// Does what is due and stays while timers are due before the next tick. Doing it twice changes nothing.
    pub async fn run(&self) -> Result<()> {
        loop {
            let Ok(mut turn) = self.turn.try_lock() else {
                self.news.notify_one();
                if self.turn.try_lock().is_ok() {
                    // Whoever had the turn left before they could hear the news.
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

    /// The same for a tick, which stays for no longer than it takes the next to come: the scheduler begins none before the
    /// last one has ended, and cuts it off after a while. Should another come all the same, it takes the place of whoever
    /// is at it, who leaves after the step that is under way.
    pub async fn tick(&self) -> Result<()> {
        let successor = Successor::among(&self.successors);
        self.news.notify_one();
        let mut turn = self.turn.lock().await;
        drop(successor);
        // What was said until now is seen by the first look.
        let _ = self.news.notified().now_or_never();
        self.stay(Stay::UntilTheNextTick, &mut turn).await?;
        drop(turn);
        // Whoever handed over while this one was about to leave relies on another look.
        match self.news.notified().now_or_never() {
            Some(()) => self.run().await,
            None => Ok(()),
        }
    }

    /// Goes on with the doubts of whoever handed over, and hands its own on to whoever takes its place: ticks that come in
    /// quick succession put off no verdict. Nobody else has seen that the store answered all the while.
    async fn stay(&self, how: Stay, handed_on: &mut Watch) -> Result<()> {
        let clock = self.runtime.clock();
        let (mut end, mut watch) = (clock.now() + TICK, std::mem::take(handed_on));
        loop {
            let now = clock.now();
            let agenda = self.runtime.store().agenda(now).await?;
            let taken = self.watch(&mut watch, &agenda, now).await?;
            let worked = self.work(&agenda, now, PATIENCE).await? || taken > 0;
            // While nothing is due, nothing more is asked; what only waits is looked through once a day.
            let expires = due(agenda.retention, TimeDelta::zero(), now);
            let overdue = due(agenda.checkup, TimeDelta::zero(), now) || due(agenda.timer, FORGOTTEN, now);
            let more = self.reconcile(overdue || agenda.neglected || expires, now).await?;
            if self.successors.load(Ordering::SeqCst) > 0 {
                *handed_on = watch;
                return Ok(());
            }
            if worked || more {
                continue;
            }
            // Last, and a little at a time: timers must not be late for it.
            if expires && self.retention.step(&self.runtime, now).await? {
                continue;
            }
            let soon = [agenda.next_timer, agenda.trigger].into_iter().flatten().filter(|next| *next < end);
            let Some(next) = soon.chain(watch.verdict_at()).min() else { return Ok(()) };
            if self.hears_news_before(next).await && how == Stay::WhileThereIsNews {
                end = clock.now() + TICK;
            }
        }
    }

    /// Takes up everything again after a restart of the only process there is: all its messages are lost,
    /// and whoever held an attempt is dead.
    pub async fn after_restart(&self) -> Result<()> {
        let now = self.runtime.clock().now();
        let runs = self.runtime.store().check_all(now).await?;
        if runs > 0 {
            info!("Taking up {runs} unfinished runs");
        }
        let workers = self.runtime.store().silent(now, u32::MAX).await?;
        self.give_up_on(&workers).await?;
        let agenda = Agenda { checkup: Some(now), ..Agenda::default() };
        while self.work(&agenda, now, TimeDelta::zero()).await? {}
        Ok(())
    }

    /// Does a batch of each kind of work that is due. Answers whether there was any.
    async fn work(&self, agenda: &Agenda, now: Instant, patience: TimeDelta) -> Result<bool> {
        let due = |at, after| due(at, after, now);
        let mut done = 0;
        if due(agenda.timer, TimeDelta::zero()) {
            done += self.fire_timers(now).await?;
        }
        if due(agenda.schedule, TimeDelta::zero()) {
            done += self.runtime.fire_schedules(now, BATCH).await?;
        }
        if due(agenda.backfill, TimeDelta::zero()) {
            done += self.runtime.look_at_backfills(now, BATCH).await?;
        }
        if due(agenda.checkup, TimeDelta::zero()) {
            done += self.check_up(now, patience).await?;
        }
        if due(agenda.unsent, UNSENT) {
            done += self.relay(now - UNSENT).await;
        }
        if due(agenda.granted, UNSENT) {
            done += self.runtime.take_up_untaken(now - UNSENT, BATCH).await?;
        }
        if due(agenda.trigger, TimeDelta::zero()) {
            done += self.runtime.attend_triggers(now, BATCH).await?;
        }
        if agenda.room {
            // Whoever gave the places back did not live to pass them on.
            self.runtime.grant().await?;
        }
        Ok(done > 0)
    }

    /// Fires a large batch of timers of runs that nobody else is at. Where that comes to nothing, a run was busy with
    /// something else, or cannot be settled: a small batch then waits for its turn.
    async fn fire_timers(&self, now: Instant) -> Result<usize> {
        match self.runtime.fire(now, TIMERS).await {
            Ok(fired) if fired.applied > 0 => return Ok(fired.applied),
            Ok(_) => {}
            Err(error) if error.is_passing() => return Err(error),
            Err(error) => warn!("A batch of timers was spoiled, a smaller one is tried: {error}"),
        }
        let due = self.runtime.store().due_timers(now, BATCH).await?;
        self.settle(due.into_iter().map(runtime::wake).collect()).await
    }

    async fn check_up(&self, now: Instant, patience: TimeDelta) -> Result<usize> {
        let runs = self.runtime.store().due_checkups(now, CHECKUPS).await?;
        self.settle(runs.into_iter().map(|run| (run, Command::Checkup { patience })).collect()).await
    }

    /// Every few minutes, looks through everything that is unfinished for what should not be, and puts it right: a slice at
    /// a time, so that nothing else is late for it. Answers whether there is more to look through.
    async fn reconcile(&self, suspicious: bool, now: Instant) -> Result<bool> {
        let Some(after) = self.next_slice(suspicious, now) else { return Ok(false) };
        let (mut findings, next) = self.runtime.inspect(after, LOOKS).await?;
        self.round().after = next;
        // Workers are judged by the watch, which compares no clocks.
        findings.retain(|finding| finding.fault != Fault::DeadWorkers);
        for finding in &findings {
            let (fault, run) = (finding.fault.name(), finding.run.map(display));
            metrics::counter!("ebbflow_findings_total", "fault" => fault).increment(1);
            // The fault is the event: alerts count some of them.
            warn!(event = fault, run, count = finding.count, "Found {fault}");
        }
        self.runtime.repair(&findings).await?;
        Ok(next.is_some())
    }

    /// After which run to look, if it is time to.
    fn next_slice(&self, suspicious: bool, now: Instant) -> Option<Option<RunId>> {
        let mut round = self.round();
        let rests = round.began.is_some_and(|began| began + RECONCILE > now);
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

    /// Publishes what was committed and not sent. A bus that is away must not keep timers from firing.
    async fn relay(&self, before: Instant) -> usize {
        self.runtime.relay(before, BATCH).await.unwrap_or_else(|error| {
            warn!("Outbox messages wait for the next tick: {error}");
            0
        })
    }

    /// Settles a batch; where one command spoils it, each on its own, so that the others do not wait for it.
    /// Answers how many changed anything.
    pub(crate) async fn settle(&self, commands: Vec<(RunId, Command)>) -> Result<usize> {
        if commands.is_empty() {
            return Ok(0);
        }
        match self.runtime.settle_all(&commands).await {
            Ok(settled) => {
                return Ok(settled.into_iter().filter(|settled| *settled == Settled::Applied).count());
            }
            Err(error) if error.is_passing() => return Err(error),
            Err(error) => warn!("A batch was spoiled, its parts are settled one by one: {error}"),
        }
        let mut applied = 0;
        for (run, command) in commands {
            match self.runtime.settle(run, command).await {
                Ok(settled) => applied += usize::from(settled == Settled::Applied),
                Err(error) if error.is_passing() => return Err(error),
                Err(error) => self.put_off(run, &error).await?,
            }
        }
        Ok(applied)
    }

    /// A run that cannot be settled is tried again later and does not hold up the others.
    async fn put_off(&self, run: RunId, error: &runtime::Error) -> Result<()> {
        error!(event = "unsettled", %run, "Run {run} cannot be settled: {error}");
        let now = self.runtime.clock().now();
        Ok(self.runtime.store().postpone(run, now, now + PUT_OFF).await?)
    }

    /// Waits for an instant, or for news that may bring an earlier one. Answers which it was.
    async fn hears_news_before(&self, instant: Instant) -> bool {
        tokio::select! {
            biased;
            () = self.news.notified() => true,
            () = self.runtime.clock().wait_until(instant) => false,
        }
    }
}

/// For how long a sweep stays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stay {
    /// Until the next tick is surely there.
    UntilTheNextTick,
    /// The same from the last time on that someone said that more is due.
    WhileThereIsNews,
}

/// One who waits for the turn, until it has it or gives up.
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

/// Whether something that is to happen so long after an instant is due.
fn due(at: Option<Instant>, after: TimeDelta, now: Instant) -> bool {
    at.is_some_and(|at| at + after <= now)
}

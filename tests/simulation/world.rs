//! One simulated world: instances of each function, one store, one bus, one seed.

mod calls;
mod deploys;
mod inject;
mod leasing;
mod losses;
mod overload;
mod requests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use chrono::TimeDelta;
use model::{Instant, Message, RunId};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use store::Memory;
use tokio::task::JoinHandle;

use crate::bugs::{Bug, Planted};
use crate::bus::{InFlight, RequestedWakeUps};
use crate::check::{Checked, End, Violation};
use crate::clock::{Skew, Time};
use crate::coverage::Moves;
use crate::fault_points::Points;
use crate::faults::{Fault, FaultInjector, FaultRates, Tally};
use crate::instance::{Instance, Shared};
use crate::leasing::RemoteWorker;
use crate::observer::Observer;
use crate::people::{Action, ScheduledAction};
use crate::plans;
use crate::store::Ledger;
use crate::workflows;

const START: &str = "2026-01-01T00:00:00Z";

/// A run that has not ended by then is stuck.
pub(crate) const MAX_DURATION: TimeDelta = TimeDelta::hours(8);

/// No seed needs more steps; a world that does is caught in a loop.
const MAX_STEPS: u64 = 400_000;

/// A message that failed this often is not delivered again.
const MAX_DELIVERIES: u32 = 8;

/// Decides whether a published message is lost.
pub(crate) type LossRule = Box<dyn FnMut(&Message) -> bool>;

/// A message to deliver, and when at the earliest.
#[derive(Clone)]
struct Delivery {
    message: Message,
    not_before: Instant,
    attempts: u32,
    /// Its sender sends it until it is acknowledged.
    sure: bool,
    /// Its number among the messages that the bus gave up on, which become dead letters.
    dead: Option<u64>,
}

impl Delivery {
    fn new(message: Message, not_before: Instant) -> Self {
        Self { message, not_before, attempts: 0, sure: false, dead: None }
    }

    fn sure(message: Message, not_before: Instant) -> Self {
        Self { sure: true, ..Self::new(message, not_before) }
    }

    /// Whether the world goes on until it has arrived. A trigger's sensor polls forever, and a poll may be hours late; but
    /// even a poll that the bus gave up on becomes a dead letter.
    fn must_arrive(&self) -> bool {
        self.dead.is_some() || !matches!(self.message, Message::PollDue(_))
    }
}

/// What a handler serves: a delivery, the scheduler's tick, a person's action, or the request of a worker outside.
enum About {
    Delivery(Box<Delivery>),
    Tick,
    Action(Action),
    Worker(u64),
}

struct Call {
    about: About,
    instance: u64,
    handle: JoinHandle<()>,
}

impl Call {
    /// Whether it is a sweep, which responds only once nothing is due soon.
    fn is_sweep(&self) -> bool {
        match &self.about {
            About::Tick => true,
            About::Delivery(delivery) => {
                delivery.dead.is_none() && matches!(delivery.message, Message::TimerArmed(_))
            }
            About::Action(_) | About::Worker(_) => false,
        }
    }
}

/// How a world ended.
pub(crate) struct Ended {
    /// The requested runs, in order.
    pub(crate) ends: Vec<Option<End>>,
    /// Whether the ends follow from the definition alone.
    pub(crate) determined: bool,
    /// Everything that happened, in order: equal for equal seeds.
    pub(crate) journal: Vec<String>,
    pub(crate) moves: Moves,
    pub(crate) tally: Tally,
    /// How many faults were injected or suppressed.
    pub(crate) faults: u64,
}

/// Not a `testkit::World`: its instances die and restart, each with its own runtime over a store and a bus that inject
/// faults, and one thread advances the clock of all of them.
pub(crate) struct World {
    seed: u64,
    rng: StdRng,
    faults: FaultInjector,
    pub(crate) shared: Shared,
    instances: Vec<Instance>,
    last_instance: u64,
    calls: BTreeMap<u64, Call>,
    last_call: u64,
    answers: Arc<Mutex<Vec<(u64, bool)>>>,
    deliveries: Vec<Delivery>,
    /// How many messages the bus gave up on.
    dead: u64,
    actions: Vec<ScheduledAction>,
    /// The workers outside, in the order in which they came, and what they are answered.
    outside: Vec<RemoteWorker>,
    last_outside: u64,
    responses: leasing::Responses,
    /// Whether tasks are leased.
    has_leases: bool,
    runs: Vec<RunId>,
    start: Instant,
    next_tick: Instant,
    /// When the sweep is called besides, in worlds with exact wake-ups.
    wake_ups: Vec<Instant>,
    store_back: Option<Instant>,
    bus_back: Option<Instant>,
    pub(crate) observer: Observer,
    journal: Vec<String>,
    /// Whether runs start by schedules and triggers.
    has_plans: bool,
    /// Decides which messages are lost regardless of the fault rates.
    pub(crate) loss_rule: Option<LossRule>,
}

impl World {
    /// A world whose sweep is called when something is due, and once an hour.
    pub(crate) fn with_exact_wake_ups(seed: u64, rates: FaultRates) -> Self {
        Self::with_wake_ups(seed, rates, None, Some(RequestedWakeUps::default()))
    }

    /// A world whose sweep is called every minute.
    pub(crate) fn new(seed: u64, rates: FaultRates, bug: Option<Bug>) -> Self {
        Self::with_wake_ups(seed, rates, bug, None)
    }

    fn with_wake_ups(
        seed: u64,
        rates: FaultRates,
        bug: Option<Bug>,
        wake_ups: Option<RequestedWakeUps>,
    ) -> Self {
        let start: Instant = START.parse().unwrap();
        let (faults, in_flight) = (FaultInjector::new(seed, rates), InFlight::default());
        let shared = Shared {
            memory: Arc::new(Memory::default()),
            planted: Planted::new(bug, in_flight.clone(), seed),
            in_flight,
            time: Time::at(start),
            points: Points::new(faults.clone()),
            ledger: Ledger::default(),
            wake_ups,
        };
        let mut rng = StdRng::seed_from_u64(seed);
        let instances = rng.random_range(2..5);
        let mut world = Self {
            seed,
            rng,
            faults,
            observer: Observer::new(shared.memory.clone()),
            shared,
            instances: Vec::new(),
            last_instance: 0,
            calls: BTreeMap::new(),
            last_call: 0,
            answers: Arc::default(),
            deliveries: Vec::new(),
            dead: 0,
            actions: Vec::new(),
            outside: Vec::new(),
            last_outside: 0,
            responses: Default::default(),
            has_leases: false,
            runs: Vec::new(),
            start,
            next_tick: start,
            wake_ups: Vec::new(),
            store_back: None,
            bus_back: None,
            journal: Vec::new(),
            has_plans: false,
            loss_rule: None,
        };
        for _ in 0..instances {
            let fresh = world.fresh_instance();
            world.instances.push(fresh);
        }
        world
    }

    fn fresh_instance(&mut self) -> Instance {
        self.last_instance += 1;
        let mut skew = Skew::none(self.shared.time.now());
        if self.faults.inject(Fault::Skew, None) {
            skew.offset = TimeDelta::milliseconds(self.faults.draw(-50_000..50_000));
            skew.drift = self.faults.draw(-4..5);
        }
        Instance::new(self.last_instance, &self.shared, skew)
    }

    pub(crate) fn now(&self) -> Instant {
        self.shared.time.now()
    }

    /// Runs until all runs have ended and nothing is active.
    pub(crate) fn play(mut self) -> Result<Ended, Violation> {
        let mut steps = 0;
        loop {
            self.settle_step()?;
            if self.is_over() {
                return self.end();
            }
            steps += 1;
            if steps > MAX_STEPS || self.takes_too_long() {
                let what = format!("after {steps} steps at {}: {}", self.now(), self.describe());
                let ended = self.observer.all_ended();
                let invariant = if ended { "nothing_is_left_over" } else { "every_run_ends" };
                return Err(Violation { invariant, what });
            }
            self.step();
        }
    }

    /// Makes one step and checks what it changed.
    pub(crate) fn play_step(&mut self) -> Checked {
        self.step();
        self.settle_step()
    }

    /// Lets every handler run as far as it can, and checks what it changed.
    fn settle_step(&mut self) -> Checked {
        self.instances.iter().for_each(Instance::drive);
        self.collect_answers()?;
        let over = self.instances.iter().filter(|instance| instance.is_over()).map(|instance| instance.id);
        over.collect::<Vec<_>>().into_iter().for_each(|id| self.replace(id));
        let written = self.shared.ledger.take();
        for run in &written {
            self.observer.check_run(*run, self.now())?;
        }
        if !written.is_empty() && self.has_leases {
            self.observer.check_offers()?;
        }
        if !written.is_empty() {
            // Without faults no handler stops between two commits, so the order of turns cannot be observed.
            self.observer.check_slots(!self.faults.is_fault_free())?;
        }
        self.collect_responses()?;
        self.collect()
    }

    /// One thing happens: a handler continues, a message is delivered, a tick arrives, or time passes.
    fn step(&mut self) {
        let now = self.now();
        self.recover(now);
        if now >= self.next_tick {
            self.next_tick += self.tick_interval();
            return self.tick();
        }
        if let Some(place) = self.wake_ups.iter().position(|at| *at <= now) {
            self.wake_ups.swap_remove(place);
            return self.tick();
        }
        if let Some(place) = self.actions.iter().position(|action| action.at <= now) {
            let action = self.actions.swap_remove(place);
            return self.act(action.action);
        }
        if let Some(place) = self.due_worker() {
            return self.drive_worker(place);
        }
        self.inject_faults(now);
        let instances = &self.instances;
        let still =
            |id: u64| instances.iter().any(|instance| instance.id == id && instance.frozen_until.is_some());
        let ready = self.shared.points.ready(now, still);
        let due: Vec<usize> =
            (0..self.deliveries.len()).filter(|index| self.deliveries[*index].not_before <= now).collect();
        let choices = ready.len() + due.len();
        if choices == 0 || self.rng.random_bool(0.01) {
            return self.pass_time(choices > 0);
        }
        match self.rng.random_range(0..choices) {
            chosen if chosen < ready.len() => self.go_on(ready[chosen]),
            chosen => self.deliver(due[chosen - ready.len()]),
        }
    }

    /// Time passes: a little while handlers are active, else to the next due event.
    fn pass_time(&mut self, little: bool) {
        let now = self.now();
        let deliveries = self.deliveries.iter().map(|delivery| delivery.not_before);
        let actions = self.actions.iter().map(|action| action.at);
        let still = self.instances.iter().filter_map(|instance| instance.frozen_until);
        let workers = self.outside.iter().filter_map(RemoteWorker::next_at);
        let others = [self.shared.time.next_wake(), self.shared.points.next_at(now), Some(self.next_tick)];
        let all = deliveries.chain(actions).chain(still).chain(workers).chain(others.into_iter().flatten());
        let all = all.chain(self.store_back).chain(self.bus_back).chain(self.wake_ups.iter().copied());
        let next = all.filter(|at| *at > now).min().unwrap_or(self.next_tick);
        let step = TimeDelta::milliseconds(self.rng.random_range(1..2_000));
        self.shared.time.set(if little { (now + step).min(next) } else { next });
    }

    /// With exact wake-ups, ticks only find what got lost.
    fn tick_interval(&self) -> TimeDelta {
        match self.shared.wake_ups {
            Some(_) => TimeDelta::hours(1),
            None => TimeDelta::minutes(1),
        }
    }

    fn note(&mut self, what: &str) {
        self.journal.push(format!("{} {what}", self.now()));
    }

    /// Whether everything requested has ended and nothing is in flight. Runs that wait for a person get an answer first.
    pub(crate) fn is_over(&mut self) -> bool {
        // Regardless of other messages: a waiting run asks again and again.
        if self.actions.is_empty() && self.now() > self.start + TimeDelta::minutes(25) {
            let waiting = self.observer.waiting_for_people();
            let at = self.now() + TimeDelta::seconds(30);
            self.actions.extend(waiting.into_iter().map(|what| ScheduledAction { at, action: what }));
        }
        // A sweep may wait until the next tick; whether anything is left for it is checked below.
        let works = self.calls.values().any(|call| !call.is_sweep()) || !self.outside.is_empty();
        if self.deliveries.iter().any(Delivery::must_arrive) || !self.actions.is_empty() || works {
            return false;
        }
        let quiet = !self.has_plans || plans::are_quiet(&self.shared.memory, self.start, self.now());
        self.observer.all_ended() && self.observer.is_clean(self.now()) && quiet
    }

    pub(crate) fn describe(&self) -> String {
        let kind = |delivery: &Delivery| format!("{}#{}", delivery.message.kind(), delivery.attempts);
        let (deliveries, calls) = (self.deliveries.iter().map(kind).collect::<Vec<_>>(), self.calls.len());
        let (stops, actions) = (self.shared.points.count(), self.actions.len());
        format!(
            "{deliveries:?} in flight, {calls} calls, {stops} stops, {actions} actions; {}",
            self.observer.describe(self.now())
        )
    }

    fn end(mut self) -> Result<Ended, Violation> {
        self.observer.end(self.dead)?;
        if self.has_plans {
            plans::end(&self.shared.memory, self.start)?;
        }
        let determined =
            workflows::is_determined(&workflows::random(self.seed)) && self.observer.is_lossless();
        Ok(Ended {
            ends: self.runs.iter().map(|run| self.observer.end_of(*run)).collect(),
            determined,
            faults: self.faults.injected(),
            tally: self.faults.tally(),
            moves: std::mem::take(&mut self.observer.moves),
            journal: std::mem::take(&mut self.journal),
        })
    }
}

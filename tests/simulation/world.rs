//! One simulated world: instances of each function, one store, one bus, one seed.

mod asks;
mod calls;
mod losses;
mod rush;
mod strikes;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use chrono::TimeDelta;
use model::{Instant, Message, RunId};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use store::Memory;
use tokio::task::JoinHandle;

use crate::bugs::{Bug, Planted};
use crate::bus::Bag;
use crate::check::{Checked, End, Trouble};
use crate::clock::{Skew, Time};
use crate::coverage::Moves;
use crate::instance::{Ground, Instance};
use crate::people::{Errand, What};
use crate::plans;
use crate::points::Points;
use crate::store::Ledger;
use crate::watch::Watch;
use crate::weather::{Fault, Storm, Tally, Weather};
use crate::workflows;

const START: &str = "2026-01-01T00:00:00Z";

/// A run that has not ended after so long is stuck.
pub(crate) const LONGEST: TimeDelta = TimeDelta::hours(8);

/// No seed needs more steps than this; a world that does is going round in circles.
const MOST_STEPS: u64 = 400_000;

/// A message that failed so often is delivered no more.
const MOST_DELIVERIES: u32 = 8;

/// Decides whether a message that is published is lost.
pub(crate) type Censor = Box<dyn FnMut(&Message) -> bool>;

/// What is to be delivered, and when at the earliest.
#[derive(Clone)]
struct Parcel {
    message: Message,
    not_before: Instant,
    deliveries: u32,
    /// Whoever sends it sends it until it is answered.
    sure: bool,
    /// Its number among those that the bus gave up on: it goes to whoever keeps them.
    dead: Option<u64>,
}

impl Parcel {
    fn new(message: Message, not_before: Instant) -> Self {
        Self { message, not_before, deliveries: 0, sure: false, dead: None }
    }

    fn sure(message: Message, not_before: Instant) -> Self {
        Self { sure: true, ..Self::new(message, not_before) }
    }
}

/// What a handler is about: a delivery, the scheduler's tick, or a person's errand.
enum About {
    Delivery(Parcel),
    Tick,
    Errand(What),
}

struct Call {
    about: About,
    instance: u64,
    handle: JoinHandle<()>,
}

impl Call {
    /// Whether it is one that a sweep answers only once nothing is due soon.
    fn is_sweep(&self) -> bool {
        match &self.about {
            About::Tick => true,
            About::Delivery(parcel) => matches!(parcel.message, Message::TimerArmed(_)),
            About::Errand(_) => false,
        }
    }
}

/// How a world ended.
pub(crate) struct Ended {
    /// The runs that were asked for and created, in order.
    pub(crate) ends: Vec<Option<End>>,
    /// Whether the ends follow from the definition alone.
    pub(crate) determined: bool,
    /// Everything that the world did, in order: equal for equal seeds.
    pub(crate) journal: Vec<String>,
    pub(crate) moves: Moves,
    pub(crate) tally: Tally,
    /// How many faults struck or would have.
    pub(crate) faults: u64,
}

pub(crate) struct World {
    seed: u64,
    dice: StdRng,
    storm: Storm,
    pub(crate) ground: Ground,
    instances: Vec<Instance>,
    last_instance: u64,
    calls: BTreeMap<u64, Call>,
    last_call: u64,
    answers: Arc<Mutex<Vec<(u64, bool)>>>,
    parcels: Vec<Parcel>,
    /// How many messages the bus gave up on.
    dead: u64,
    errands: Vec<Errand>,
    runs: Vec<RunId>,
    start: Instant,
    next_tick: Instant,
    store_back: Option<Instant>,
    bus_back: Option<Instant>,
    pub(crate) watch: Watch,
    journal: Vec<String>,
    /// Whether things begin by themselves in it.
    has_plans: bool,
    /// Decides which messages are lost whatever the weather; none if it does not.
    pub(crate) censor: Option<Censor>,
}

impl World {
    pub(crate) fn new(seed: u64, weather: Weather, bug: Option<Bug>) -> Self {
        let start: Instant = START.parse().unwrap();
        let (storm, bag) = (Storm::new(seed, weather), Bag::default());
        let ground = Ground {
            memory: Arc::new(Memory::default()),
            planted: Planted::new(bug, bag.clone(), seed),
            bag,
            time: Time::at(start),
            points: Points::new(storm.clone()),
            ledger: Ledger::default(),
        };
        let mut dice = StdRng::seed_from_u64(seed);
        let instances = dice.random_range(2..5);
        let mut world = Self {
            seed,
            dice,
            storm,
            watch: Watch::new(ground.memory.clone()),
            ground,
            instances: Vec::new(),
            last_instance: 0,
            calls: BTreeMap::new(),
            last_call: 0,
            answers: Arc::default(),
            parcels: Vec::new(),
            dead: 0,
            errands: Vec::new(),
            runs: Vec::new(),
            start,
            next_tick: start,
            store_back: None,
            bus_back: None,
            journal: Vec::new(),
            has_plans: false,
            censor: None,
        };
        for _ in 0..instances {
            let fresh = world.fresh_instance();
            world.instances.push(fresh);
        }
        world
    }

    fn fresh_instance(&mut self) -> Instance {
        self.last_instance += 1;
        let mut skew = Skew::none(self.ground.time.now());
        if self.storm.strikes(Fault::Skew, None) {
            skew.offset = TimeDelta::milliseconds(self.storm.draw(-50_000..50_000));
            skew.drift = self.storm.draw(-4..5);
        }
        Instance::new(self.last_instance, &self.ground, skew)
    }

    pub(crate) fn now(&self) -> Instant {
        self.ground.time.now()
    }

    /// Plays until all runs have ended and nobody works any more.
    pub(crate) fn play(mut self) -> Result<Ended, Trouble> {
        let mut steps = 0;
        loop {
            self.settle_down()?;
            if self.is_over() {
                return self.end();
            }
            steps += 1;
            if steps > MOST_STEPS || self.takes_too_long() {
                let what = format!("after {steps} steps at {}: {}", self.now(), self.describe());
                let ended = self.watch.all_ended();
                let invariant = if ended { "nothing_is_left_over" } else { "every_run_ends" };
                return Err(Trouble { invariant, what });
            }
            self.step();
        }
    }

    /// Plays one step, and looks at what it changed.
    pub(crate) fn play_step(&mut self) -> Checked {
        self.step();
        self.settle_down()
    }

    /// Lets everyone go on who can, and looks at what came of it.
    fn settle_down(&mut self) -> Checked {
        self.instances.iter().for_each(Instance::drive);
        self.hear_answers()?;
        let over = self.instances.iter().filter(|instance| instance.is_over()).map(|instance| instance.id);
        over.collect::<Vec<_>>().into_iter().for_each(|id| self.replace(id));
        let written = self.ground.ledger.take();
        for run in &written {
            self.watch.look_at(*run, self.now())?;
        }
        if !written.is_empty() {
            // In calm nobody stands still between two commits: whose turn came first is not seen.
            self.watch.look_at_places(!self.storm.is_calm())?;
        }
        self.collect()
    }

    /// One thing happens: a handler goes on or not, a message is delivered, a tick comes, or time passes.
    fn step(&mut self) {
        let now = self.now();
        self.bring_back(now);
        if now >= self.next_tick {
            self.next_tick += TimeDelta::minutes(1);
            return self.tick();
        }
        if let Some(place) = self.errands.iter().position(|errand| errand.at <= now) {
            let errand = self.errands.swap_remove(place);
            return self.run_errand(errand.what);
        }
        self.strike(now);
        let instances = &self.instances;
        let still = |id: u64| {
            instances.iter().any(|instance| instance.id == id && instance.stands_still_until.is_some())
        };
        let ready = self.ground.points.ready(now, still);
        let due: Vec<usize> =
            (0..self.parcels.len()).filter(|index| self.parcels[*index].not_before <= now).collect();
        let choices = ready.len() + due.len();
        if choices == 0 || self.dice.random_bool(0.01) {
            return self.pass_time(choices > 0);
        }
        match self.dice.random_range(0..choices) {
            chosen if chosen < ready.len() => self.go_on(ready[chosen]),
            chosen => self.deliver(due[chosen - ready.len()]),
        }
    }

    /// Time passes: a little while somebody is at work, else to the next thing that is due.
    fn pass_time(&mut self, little: bool) {
        let now = self.now();
        let parcels = self.parcels.iter().map(|parcel| parcel.not_before);
        let errands = self.errands.iter().map(|errand| errand.at);
        let still = self.instances.iter().filter_map(|instance| instance.stands_still_until);
        let others = [self.ground.time.next_wake(), self.ground.points.next_at(now), Some(self.next_tick)];
        let all = parcels.chain(errands).chain(still).chain(others.into_iter().flatten());
        let all = all.chain(self.store_back).chain(self.bus_back);
        let next = all.filter(|at| *at > now).min().unwrap_or(self.next_tick);
        let step = TimeDelta::milliseconds(self.dice.random_range(1..2_000));
        self.ground.time.set(if little { (now + step).min(next) } else { next });
    }

    fn note(&mut self, what: &str) {
        self.journal.push(format!("{} {what}", self.now()));
    }

    /// Everything that was asked for has ended, and nothing is on its way. Whoever still waits for a person is heard.
    pub(crate) fn is_over(&mut self) -> bool {
        // Whatever else is said meanwhile: a held run asks again and again.
        if self.errands.is_empty() && self.now() > self.start + TimeDelta::minutes(25) {
            let waiting = self.watch.who_waits_for_people();
            let at = self.now() + TimeDelta::seconds(30);
            self.errands.extend(waiting.into_iter().map(|what| Errand { at, what }));
        }
        // A sweep may stay until the next tick comes: it waits, and whether anything is left for it is looked at below.
        let works = self.calls.values().any(|call| !call.is_sweep());
        if !self.parcels.is_empty() || !self.errands.is_empty() || works {
            return false;
        }
        let quiet = !self.has_plans || plans::are_quiet(&self.ground.memory, self.start, self.now());
        self.watch.all_ended() && self.watch.is_clean(self.now()) && quiet
    }

    pub(crate) fn describe(&self) -> String {
        let kind = |parcel: &Parcel| format!("{}#{}", parcel.message.kind(), parcel.deliveries);
        let (parcels, calls) = (self.parcels.iter().map(kind).collect::<Vec<_>>(), self.calls.len());
        let (stops, errands) = (self.ground.points.count(), self.errands.len());
        format!(
            "{parcels:?} on their way, {calls} calls, {stops} stops, {errands} errands; {}",
            self.watch.describe(self.now())
        )
    }

    fn end(mut self) -> Result<Ended, Trouble> {
        self.watch.end(self.dead)?;
        if self.has_plans {
            plans::end(&self.ground.memory, self.start)?;
        }
        let determined = workflows::is_determined(&workflows::random(self.seed)) && self.watch.is_lossless();
        Ok(Ended {
            ends: self.runs.iter().map(|run| self.watch.end_of(*run)).collect(),
            determined,
            faults: self.storm.struck(),
            tally: self.storm.tally(),
            moves: std::mem::take(&mut self.watch.moves),
            journal: std::mem::take(&mut self.journal),
        })
    }
}

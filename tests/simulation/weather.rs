//! What the world does to messages, calls, processes and clocks, how often, and what has been done so far.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Where a handler touches the store or the bus. Something may happen to it at each of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Point {
    /// Before a transaction begins.
    Begin,
    /// Its locks are not to be had yet.
    Turn,
    /// Something is read within it.
    UnitRead,
    /// Its rows are written.
    Save,
    /// Before it commits.
    BeforeCommit,
    /// The same, for what several runs share: whoever has the turn has it for all of them.
    BeforeSharedCommit,
    /// It is committed, and the answer is on its way.
    AfterCommit,
    /// Something is read outside a transaction.
    Read,
    /// Something is written outside one.
    Write,
    /// It is written, and the answer is on its way.
    AfterWrite,
    /// Before anything is published.
    BeforePublish,
    /// Some of several messages are out.
    MidPublish,
    /// All are out, and the answer is on its way.
    AfterPublish,
}

impl Point {
    pub(crate) const ALL: [Point; 13] = [
        Self::Begin,
        Self::Turn,
        Self::UnitRead,
        Self::Save,
        Self::BeforeCommit,
        Self::BeforeSharedCommit,
        Self::AfterCommit,
        Self::Read,
        Self::Write,
        Self::AfterWrite,
        Self::BeforePublish,
        Self::MidPublish,
        Self::AfterPublish,
    ];

    /// Whether it is a call to the bus; all others are calls to the store.
    pub(crate) fn is_bus(self) -> bool {
        matches!(self, Self::BeforePublish | Self::MidPublish | Self::AfterPublish)
    }

    /// Whether others may go on before whoever is there does.
    pub(crate) fn parks(self) -> bool {
        !matches!(self, Self::UnitRead | Self::Save)
    }
}

/// What can go wrong.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Fault {
    /// A message comes twice.
    Duplicate,
    /// A message never comes.
    Drop,
    /// A message comes up to an hour late.
    Late,
    /// A message that failed too often is delivered no more.
    DeadLetter,
    /// A message comes again while its first delivery is still at work.
    Impatience,
    /// A handler is dropped where it stands.
    Die,
    /// A call answers with an error, whether it was done or not.
    Fail,
    /// A call takes seconds or minutes.
    Slow,
    /// An instance ends where it stands, and a fresh one takes its place.
    Crash,
    /// An instance stands still for minutes, and goes on as if nothing had been.
    Freeze,
    /// The store is away for a while.
    StoreOutage,
    /// The bus is away for a while.
    BusOutage,
    /// The instances' clocks differ.
    Skew,
    /// Another version of a workflow is registered while runs go on.
    NewVersion,
    /// A person cancels a run.
    Cancel,
    /// A person pauses a run, has parts of it done anew, says how a task ended, or does not want to wait.
    Steer,
    /// An instance is asked to end, and a fresh one takes its place.
    Stop,
    /// A worker is told to drain, or is killed by an order.
    Order,
}

impl Fault {
    pub(crate) const ALL: [Fault; 18] = [
        Self::Duplicate,
        Self::Drop,
        Self::Late,
        Self::DeadLetter,
        Self::Impatience,
        Self::Die,
        Self::Fail,
        Self::Slow,
        Self::Crash,
        Self::Freeze,
        Self::StoreOutage,
        Self::BusOutage,
        Self::Skew,
        Self::NewVersion,
        Self::Cancel,
        Self::Steer,
        Self::Stop,
        Self::Order,
    ];

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| format!("{fault:?}").eq_ignore_ascii_case(name))
    }

    /// The highest chance that it strikes where it can, and how often it does at most in one world.
    fn worst(self) -> (f64, u32) {
        match self {
            Self::Duplicate => (0.4, u32::MAX),
            Self::Drop => (0.2, u32::MAX),
            Self::Late => (0.2, 40),
            Self::DeadLetter => (1.0, u32::MAX),
            Self::Impatience => (0.005, 10),
            Self::Die => (0.02, u32::MAX),
            Self::Fail => (0.02, u32::MAX),
            Self::Slow => (0.015, 20),
            Self::Crash => (0.003, 5),
            Self::Freeze => (0.006, 8),
            Self::StoreOutage | Self::BusOutage => (0.002, 3),
            Self::Skew | Self::NewVersion => (1.0, 4),
            Self::Cancel => (0.15, 1),
            Self::Steer => (0.97, 12),
            Self::Stop | Self::Order => (0.005, 4),
        }
    }

    /// Where it can strike; none for what happens outside any call.
    pub(crate) fn points(self) -> Vec<Point> {
        let at = |wanted: &dyn Fn(&Point) -> bool| Point::ALL.into_iter().filter(wanted).collect();
        match self {
            Self::Die | Self::Crash => at(&|point| point.parks()),
            Self::Fail => at(&|point| *point != Point::Turn),
            Self::Slow => at(&|point| point.parks() && !point.is_bus() && *point != Point::Turn),
            _ => Vec::new(),
        }
    }
}

/// How badly a world treats whoever lives in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Weather {
    pub(crate) rates: BTreeMap<Fault, f64>,
    /// Faults by their number in this world that do not strike after all: for finding out which ones matter.
    pub(crate) suppressed: BTreeSet<u64>,
}

impl Weather {
    /// Nothing happens to anyone.
    pub(crate) fn calm() -> Self {
        Self::default()
    }

    /// Some of everything, by the seed: not all faults in all worlds, so that each is met with and without the others.
    pub(crate) fn of(seed: u64) -> Self {
        let mut dice = StdRng::seed_from_u64(!seed);
        let mut rates = BTreeMap::new();
        for fault in Fault::ALL {
            let (rate, struck) = (dice.random_range(0.0..fault.worst().0), dice.random_bool(0.6));
            if struck {
                rates.insert(fault, rate);
            }
        }
        Self { rates, suppressed: BTreeSet::new() }
    }

    pub(crate) fn without(mut self, fault: Fault) -> Self {
        self.rates.remove(&fault);
        self
    }

    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.rates.contains_key(&fault)
    }

    pub(crate) fn faults(&self) -> Vec<Fault> {
        self.rates.keys().copied().collect()
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.rates.is_empty()
    }
}

/// How often points were passed and faults struck there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) passed: BTreeMap<Point, u64>,
    pub(crate) struck: BTreeMap<(Fault, Option<Point>), u64>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Tally) {
        for (point, count) in &other.passed {
            *self.passed.entry(*point).or_default() += count;
        }
        for (fault, count) in &other.struck {
            *self.struck.entry(*fault).or_default() += count;
        }
    }
}

/// The dice that decide what strikes; clones throw the same ones.
#[derive(Clone)]
pub(crate) struct Storm(Arc<Mutex<State>>);

struct State {
    dice: StdRng,
    weather: Weather,
    struck: u64,
    so_far: [u32; Fault::ALL.len()],
    tally: Tally,
}

impl Storm {
    pub(crate) fn new(seed: u64, weather: Weather) -> Self {
        let dice = StdRng::seed_from_u64(seed ^ 0x5707_0000);
        Self(Arc::new(Mutex::new(State {
            dice,
            weather,
            struck: 0,
            so_far: Default::default(),
            tally: Tally::default(),
        })))
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.state().weather.is_calm()
    }

    /// Someone passes a point.
    pub(crate) fn pass(&self, point: Point) {
        *self.state().tally.passed.entry(point).or_default() += 1;
    }

    /// Whether a fault strikes here and now.
    pub(crate) fn strikes(&self, fault: Fault, at: Option<Point>) -> bool {
        let mut state = self.state();
        let Some(rate) = state.weather.rates.get(&fault).copied() else { return false };
        let so_far = state.so_far[fault as usize];
        let strikes = so_far < fault.worst().1 && state.dice.random_bool(rate);
        if strikes {
            state.struck += 1;
            state.so_far[fault as usize] += 1;
        }
        if !strikes || state.weather.suppressed.contains(&state.struck) {
            return false;
        }
        *state.tally.struck.entry((fault, at)).or_default() += 1;
        true
    }

    /// A number from the same dice: how late, how long.
    pub(crate) fn draw(&self, range: std::ops::Range<i64>) -> i64 {
        self.state().dice.random_range(range)
    }

    /// How many faults have struck or would have.
    pub(crate) fn struck(&self) -> u64 {
        self.state().struck
    }

    pub(crate) fn tally(&self) -> Tally {
        self.state().tally.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

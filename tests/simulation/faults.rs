//! The faults of a world: where they can be injected, how often they are, and how often they were.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Where a handler calls the store or the bus, and a fault may be injected.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Point {
    /// Before a transaction begins.
    Begin,
    /// It waits for its locks.
    Turn,
    /// Something is read in it.
    UnitRead,
    /// Its rows are written.
    Save,
    /// Before the transaction commits.
    BeforeCommit,
    /// The same, for what several runs share: the transaction holds the lock for all of them.
    BeforeSharedCommit,
    /// It is committed, and the response is on its way.
    AfterCommit,
    /// Something is read outside a transaction.
    Read,
    /// Something is written outside one.
    Write,
    /// It is written, and the response is on its way.
    AfterWrite,
    /// Before anything is published.
    BeforePublish,
    /// Some of several messages are published.
    MidPublish,
    /// All are published, and the response is on its way.
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

    /// Whether other handlers may run while one stops there.
    pub(crate) fn parks(self) -> bool {
        !matches!(self, Self::UnitRead | Self::Save)
    }
}

/// The kinds of faults.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Fault {
    /// A message is delivered twice.
    Duplicate,
    /// A message is lost.
    Drop,
    /// A message is up to an hour late.
    Late,
    /// A message that failed too often becomes a dead letter.
    DeadLetter,
    /// A message is delivered again while its first delivery is still being handled.
    Redeliver,
    /// A handler is dropped at a fault point.
    Die,
    /// A call returns an error, whether it took effect or not.
    Fail,
    /// A call takes seconds or minutes.
    Slow,
    /// An instance ends immediately, and a new one takes its slot.
    Crash,
    /// An instance freezes for minutes and then continues.
    Freeze,
    /// The store is unavailable for a while.
    StoreOutage,
    /// The bus is unavailable for a while.
    BusOutage,
    /// The instances' clocks differ.
    Skew,
    /// Another version of a workflow is registered while runs are active.
    NewVersion,
    /// A person cancels a run.
    Cancel,
    /// A person pauses a run, re-runs parts of it, marks a task, or ends a wait.
    Steer,
    /// An instance is asked to stop, and a new one takes its slot.
    Stop,
    /// A person drains or kills a worker.
    WorkerCommand,
    /// A worker outside ends immediately, or stands still for minutes and then continues.
    Vanish,
    /// A worker outside is asked to stop.
    DrainWorker,
    /// The response to a worker outside is lost.
    LoseResponse,
}

impl Fault {
    pub(crate) const ALL: [Fault; 21] = [
        Self::Duplicate,
        Self::Drop,
        Self::Late,
        Self::DeadLetter,
        Self::Redeliver,
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
        Self::WorkerCommand,
        Self::Vanish,
        Self::DrainWorker,
        Self::LoseResponse,
    ];

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| format!("{fault:?}").eq_ignore_ascii_case(name))
    }

    /// The maximum probability of the fault where it can occur, and its maximum number in one world.
    fn worst(self) -> (f64, u32) {
        match self {
            Self::Duplicate => (0.4, u32::MAX),
            Self::Drop => (0.2, u32::MAX),
            Self::Late => (0.2, 40),
            Self::DeadLetter => (1.0, u32::MAX),
            Self::Redeliver => (0.005, 10),
            Self::Die => (0.02, u32::MAX),
            Self::Fail => (0.02, u32::MAX),
            Self::Slow => (0.015, 20),
            Self::Crash => (0.003, 5),
            Self::Freeze => (0.006, 8),
            Self::StoreOutage | Self::BusOutage => (0.002, 3),
            Self::Skew | Self::NewVersion => (1.0, 4),
            Self::Cancel => (0.15, 1),
            Self::Steer => (0.97, 12),
            Self::Stop | Self::WorkerCommand => (0.005, 4),
            Self::Vanish => (0.05, 6),
            Self::DrainWorker => (0.03, 3),
            Self::LoseResponse => (0.1, 10),
        }
    }

    /// Where it can be injected; empty for faults outside calls.
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

pub(crate) const LOST_WAKE_UP: &str = "lost a wake-up";
pub(crate) const DUPLICATED_WAKE_UP: &str = "duplicated a wake-up";
pub(crate) const LATE_WAKE_UP: &str = "delayed a wake-up";

/// What can happen to a requested wake-up, as the journal says it.
pub(crate) const WAKE_UP_FAULTS: [&str; 3] = [LOST_WAKE_UP, DUPLICATED_WAKE_UP, LATE_WAKE_UP];

/// The probability of each fault.
#[derive(Clone, Debug, Default)]
pub(crate) struct FaultRates {
    pub(crate) rates: BTreeMap<Fault, f64>,
    /// The numbers of faults that are not injected after all, to find out which ones matter.
    pub(crate) suppressed: BTreeSet<u64>,
}

impl FaultRates {
    /// A world without faults.
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// Rates by the seed: not all faults in all worlds, so that each occurs with and without the others.
    pub(crate) fn of(seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(!seed);
        let mut rates = BTreeMap::new();
        for fault in Fault::ALL {
            let (rate, injected) = (rng.random_range(0.0..fault.worst().0), rng.random_bool(0.6));
            if injected {
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

    pub(crate) fn is_fault_free(&self) -> bool {
        self.rates.is_empty()
    }
}

/// How often points were passed and faults were injected there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) passed: BTreeMap<Point, u64>,
    pub(crate) injected: BTreeMap<(Fault, Option<Point>), u64>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Tally) {
        for (point, count) in &other.passed {
            *self.passed.entry(*point).or_default() += count;
        }
        for (fault, count) in &other.injected {
            *self.injected.entry(*fault).or_default() += count;
        }
    }
}

/// Decides which faults are injected; clones share the state.
#[derive(Clone)]
pub(crate) struct FaultInjector(Arc<Mutex<State>>);

struct State {
    rng: StdRng,
    rates: FaultRates,
    injected: u64,
    so_far: [u32; Fault::ALL.len()],
    tally: Tally,
}

impl FaultInjector {
    pub(crate) fn new(seed: u64, rates: FaultRates) -> Self {
        let rng = StdRng::seed_from_u64(seed ^ 0x5707_0000);
        Self(Arc::new(Mutex::new(State {
            rng,
            rates,
            injected: 0,
            so_far: Default::default(),
            tally: Tally::default(),
        })))
    }

    pub(crate) fn is_fault_free(&self) -> bool {
        self.state().rates.is_fault_free()
    }

    /// Counts a handler that passes a point.
    pub(crate) fn pass(&self, point: Point) {
        *self.state().tally.passed.entry(point).or_default() += 1;
    }

    /// Whether a fault is injected here and now.
    pub(crate) fn inject(&self, fault: Fault, at: Option<Point>) -> bool {
        let mut state = self.state();
        let Some(rate) = state.rates.rates.get(&fault).copied() else { return false };
        let so_far = state.so_far[fault as usize];
        let chosen = so_far < fault.worst().1 && state.rng.random_bool(rate);
        if chosen {
            state.injected += 1;
            state.so_far[fault as usize] += 1;
        }
        if !chosen || state.rates.suppressed.contains(&state.injected) {
            return false;
        }
        *state.tally.injected.entry((fault, at)).or_default() += 1;
        true
    }

    /// A random number from the same source: how late, how long.
    pub(crate) fn draw(&self, range: std::ops::Range<i64>) -> i64 {
        self.state().rng.random_range(range)
    }

    /// How many faults were injected or suppressed.
    pub(crate) fn injected(&self) -> u64 {
        self.state().injected
    }

    pub(crate) fn tally(&self) -> Tally {
        self.state().tally.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

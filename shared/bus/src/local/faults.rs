//! Fault injection: everything that a bus may do to messages, but often.

use std::ops::Range;
use std::sync::Mutex;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The faults to inject; none by default.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Faults {
    /// The seed: the same seed has the same faults for the same messages.
    pub seed: u64,
    /// The probability that a message is delivered twice.
    pub duplicate: f64,
    /// The probability that a message is lost.
    pub drop: f64,
    /// How long messages are delayed before they are delivered.
    pub delay: Option<Range<Duration>>,
    /// Whether messages overtake each other in the queue.
    pub reorder: bool,
}

/// Applies faults to messages.
pub(super) struct Dice {
    faults: Faults,
    rng: Mutex<StdRng>,
}

impl Dice {
    /// Dice for these faults; none if there are none.
    pub(super) fn new(faults: Faults) -> Option<Self> {
        let rng = Mutex::new(StdRng::seed_from_u64(faults.seed));
        (faults != Faults { seed: faults.seed, ..Faults::default() }).then_some(Self { faults, rng })
    }

    /// The copies that a message is delivered in, each after its delay.
    pub(super) fn copies(&self) -> Vec<Option<Duration>> {
        let mut rng = self.rng.lock().expect("no holder panics");
        if rng.random_bool(self.faults.drop) {
            return Vec::new();
        }
        let copies = 1 + usize::from(rng.random_bool(self.faults.duplicate));
        let range = self.faults.delay.clone().filter(|range| !range.is_empty());
        (0..copies).map(|_| range.clone().map(|range| rng.random_range(range))).collect()
    }

    /// The position for a message in a queue of that length.
    pub(super) fn position(&self, length: usize) -> usize {
        match self.faults.reorder {
            true => self.rng.lock().expect("no holder panics").random_range(0..=length),
            false => length,
        }
    }
}

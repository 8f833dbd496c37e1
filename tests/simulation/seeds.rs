//! Runs seeds: one, many, and a failing one with fewer and fewer faults.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::bugs::Bug;
use crate::check::{self, Violation};
use crate::coverage::Moves;
use crate::faults::{Fault, FaultRates, Tally};
use crate::world::{Ended, World};

/// The maximum number of worlds to run while shrinking.
const MAX_TRIES: u32 = 400;

/// The results of many seeds.
#[derive(Default)]
pub(crate) struct Total {
    pub(crate) moves: Moves,
    pub(crate) tally: Tally,
    /// In how many worlds the ends were compared with those without faults.
    pub(crate) compared: u64,
    pub(crate) failures: Vec<(u64, Violation)>,
}

impl Total {
    pub(crate) fn add(&mut self, other: Total) {
        self.moves.add(&other.moves);
        self.tally.add(&other.tally);
        self.compared += other.compared;
        self.failures.extend(other.failures);
    }
}

pub(crate) fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().expect("a whole number"))
}

/// The fault rates of a seed, reduced as the environment asks.
pub(crate) fn rates(seed: u64) -> FaultRates {
    let list = |variable: &str| {
        let value = std::env::var(variable).unwrap_or_default();
        value.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut rates = FaultRates::of(seed);
    for name in list("EBB_WITHOUT") {
        rates = rates.without(Fault::named(&name).expect("the name of a fault"));
    }
    rates.suppressed = list("EBB_SUPPRESSED").iter().map(|number| number.parse().unwrap()).collect();
    rates
}

/// Runs one seed with faults and, where the end must be the same, without. Returns whether the ends were compared.
pub(crate) fn play(seed: u64, rates: FaultRates, bug: Option<Bug>) -> Result<(Ended, bool), Violation> {
    let faulty = World::new(seed, rates, bug).with_random_runs().play()?;
    if !faulty.determined {
        return Ok((faulty, false));
    }
    let clean = World::new(seed, FaultRates::none(), None).with_random_runs().play()?;
    if clean.determined {
        let both = clean.ends.iter().zip(&faulty.ends);
        let mut created = both.filter_map(|(clean, faulty)| clean.as_ref().zip(faulty.as_ref()));
        created.try_for_each(|(clean, faulty)| check::same_end(clean, faulty))?;
    }
    Ok((faulty, clean.determined))
}

/// Runs many seeds on all cores and reports progress.
pub(crate) fn play_all(seeds: std::ops::Range<u64>, progress: impl Fn(u64) + Sync) -> Total {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (next, done) = (AtomicU64::new(seeds.start), AtomicU64::new(0));
    let share = || {
        let mut total = Total::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return total;
            }
            match play(seed, rates(seed), None) {
                Ok((ended, compared)) => {
                    total.moves.add(&ended.moves);
                    total.tally.add(&ended.tally);
                    total.compared += u64::from(compared);
                }
                Err(violation) => {
                    // Printed at once, since many seeds take long.
                    println!("seed {seed}: {violation}");
                    total.failures.push((seed, violation));
                }
            }
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    let mut total = Total::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(share)).collect();
        workers.into_iter().for_each(|worker| total.add(worker.join().unwrap()));
    });
    total.failures.sort_by_key(|(seed, _)| *seed);
    total
}

/// A failing seed, with as few faults as possible.
pub(crate) struct Shrunk {
    pub(crate) rates: FaultRates,
    pub(crate) violation: Violation,
    without: Vec<Fault>,
}

/// Removes kinds of faults, then single faults, while the seed still fails.
pub(crate) fn shrink(seed: u64, violation: Violation, bug: Option<Bug>) -> Shrunk {
    let mut shrunk = Shrunk { rates: rates(seed), violation, without: Vec::new() };
    for fault in Fault::ALL.into_iter().filter(|fault| rates(seed).has(*fault)) {
        let milder = shrunk.rates.clone().without(fault);
        if let Err(violation) = play(seed, milder.clone(), bug) {
            shrunk.without.push(fault);
            (shrunk.rates, shrunk.violation) = (milder, violation);
        }
    }
    let mut tries = 0;
    let mut fault = 1;
    while !shrunk.rates.is_fault_free() && fault <= 200 && tries < MAX_TRIES {
        let mut milder = shrunk.rates.clone();
        milder.suppressed.insert(fault);
        tries += 1;
        match play(seed, milder.clone(), bug) {
            Err(violation) => (shrunk.rates, shrunk.violation) = (milder, violation),
            Ok((ended, _)) if fault > ended.faults => break,
            Ok(_) => {}
        }
        fault += 1;
    }
    shrunk
}

impl Shrunk {
    /// The violation, the remaining faults, and the command that reproduces it.
    pub(crate) fn report(&self, seed: u64) -> String {
        let list = |parts: Vec<String>| parts.join(",");
        let without = list(self.without.iter().map(|fault| format!("{fault:?}")).collect());
        let suppressed = list(self.rates.suppressed.iter().map(u64::to_string).collect());
        format!(
            "seed {seed}: {}\n  with {:?}; reproduce with: EBB_SEED={seed} EBB_WITHOUT={without} \
             EBB_SUPPRESSED={suppressed} cargo test -p ebbflow-tests --test simulation",
            self.violation,
            self.rates.faults(),
        )
    }
}

/// The first failures, each shrunk.
pub(crate) fn report(failures: &[(u64, Violation)], most: usize) -> String {
    let names: BTreeSet<&str> = failures.iter().map(|(_, violation)| violation.invariant).collect();
    let reports = failures
        .iter()
        .take(most)
        .map(|(seed, violation)| shrink(*seed, violation.clone(), None).report(*seed));
    format!("{} seeds failed: {names:?}\n{}", failures.len(), reports.collect::<Vec<_>>().join("\n"))
}

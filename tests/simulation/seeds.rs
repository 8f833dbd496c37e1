//! Playing seeds: one, many, and a failing one with fewer and fewer faults.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::bugs::Bug;
use crate::check::{self, Trouble};
use crate::coverage::Moves;
use crate::weather::{Fault, Tally, Weather};
use crate::world::{Ended, World};

/// No more worlds are played to find the faults that matter.
const MOST_TRIES: u32 = 400;

/// What came of the seeds that were played.
#[derive(Default)]
pub(crate) struct Total {
    pub(crate) moves: Moves,
    pub(crate) tally: Tally,
    /// In how many worlds the ends were held against those in calm.
    pub(crate) compared: u64,
    pub(crate) failures: Vec<(u64, Trouble)>,
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

/// The weather of a seed, as far as the environment lets it be.
pub(crate) fn weather(seed: u64) -> Weather {
    let list = |variable: &str| {
        let value = std::env::var(variable).unwrap_or_default();
        value.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut weather = Weather::of(seed);
    for name in list("EBB_WITHOUT") {
        weather = weather.without(Fault::named(&name).expect("the name of a fault"));
    }
    weather.suppressed = list("EBB_SUPPRESSED").iter().map(|number| number.parse().unwrap()).collect();
    weather
}

/// Plays one seed in a storm, and in calm where the end must be the same. Answers whether it was compared.
pub(crate) fn play(seed: u64, weather: Weather, bug: Option<Bug>) -> Result<(Ended, bool), Trouble> {
    let storm = World::new(seed, weather, bug).with_random_runs().play()?;
    if !storm.determined {
        return Ok((storm, false));
    }
    let calm = World::new(seed, Weather::calm(), None).with_random_runs().play()?;
    if calm.determined {
        let mut created =
            calm.ends.iter().zip(&storm.ends).filter_map(|(calm, storm)| calm.as_ref().zip(storm.as_ref()));
        created.try_for_each(|(calm, storm)| check::same_end(calm, storm))?;
    }
    Ok((storm, calm.determined))
}

/// Plays many seeds on all cores, and says how far it is.
pub(crate) fn play_all(seeds: std::ops::Range<u64>, told: impl Fn(u64) + Sync) -> Total {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (next, done) = (AtomicU64::new(seeds.start), AtomicU64::new(0));
    let share = || {
        let mut total = Total::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return total;
            }
            match play(seed, weather(seed), None) {
                Ok((ended, compared)) => {
                    total.moves.add(&ended.moves);
                    total.tally.add(&ended.tally);
                    total.compared += u64::from(compared);
                }
                Err(trouble) => {
                    // At once: many seeds take long.
                    println!("seed {seed}: {trouble}");
                    total.failures.push((seed, trouble));
                }
            }
            told(done.fetch_add(1, Ordering::Relaxed) + 1);
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

/// A failing seed with as few faults as it still fails with.
pub(crate) struct Shrunk {
    pub(crate) weather: Weather,
    pub(crate) trouble: Trouble,
    without: Vec<Fault>,
}

/// Takes away kinds of faults, then single ones, as long as the seed still fails.
pub(crate) fn shrink(seed: u64, trouble: Trouble, bug: Option<Bug>) -> Shrunk {
    let mut shrunk = Shrunk { weather: weather(seed), trouble, without: Vec::new() };
    for fault in Fault::ALL.into_iter().filter(|fault| weather(seed).has(*fault)) {
        let milder = shrunk.weather.clone().without(fault);
        if let Err(trouble) = play(seed, milder.clone(), bug) {
            shrunk.without.push(fault);
            (shrunk.weather, shrunk.trouble) = (milder, trouble);
        }
    }
    let mut tries = 0;
    let mut fault = 1;
    while !shrunk.weather.is_calm() && fault <= 200 && tries < MOST_TRIES {
        let mut milder = shrunk.weather.clone();
        milder.suppressed.insert(fault);
        tries += 1;
        match play(seed, milder.clone(), bug) {
            Err(trouble) => (shrunk.weather, shrunk.trouble) = (milder, trouble),
            Ok((ended, _)) if fault > ended.faults => break,
            Ok(_) => {}
        }
        fault += 1;
    }
    shrunk
}

impl Shrunk {
    /// What is wrong, what is left of the weather, and the command that plays it again.
    pub(crate) fn tell(&self, seed: u64) -> String {
        let list = |parts: Vec<String>| parts.join(",");
        let without = list(self.without.iter().map(|fault| format!("{fault:?}")).collect());
        let suppressed = list(self.weather.suppressed.iter().map(u64::to_string).collect());
        format!(
            "seed {seed}: {}\n  with {:?}; again by: EBB_SEED={seed} EBB_WITHOUT={without} \
             EBB_SUPPRESSED={suppressed} cargo test -p ebbflow-tests --test simulation",
            self.trouble,
            self.weather.faults(),
        )
    }
}

/// The first failures in words, each shrunk.
pub(crate) fn tell(failures: &[(u64, Trouble)], most: usize) -> String {
    let names: BTreeSet<&str> = failures.iter().map(|(_, trouble)| trouble.invariant).collect();
    let told = failures.iter().take(most);
    let told = told.map(|(seed, trouble)| shrink(*seed, trouble.clone(), None).tell(*seed));
    format!("{} seeds failed: {names:?}\n{}", failures.len(), told.collect::<Vec<_>>().join("\n"))
}

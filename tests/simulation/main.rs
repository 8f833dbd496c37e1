//! The real handlers on the in-memory store, under a virtual clock and a bus that misbehaves, from a seed.
//!
//! Whatever the seed does to messages and processes, a run must end as it ends in a calm world, each task's
//! success recorded once. A failing seed is printed; `EBB_SEED=N cargo test -p ebbflow-tests --test simulation`
//! plays it again exactly, and `EBB_SEEDS=N` plays more of them.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod bus;
mod check;
mod scheduler;
mod store;
mod workflows;
mod world;

use world::{Weather, World};

/// How many seeds the normal test run plays.
const SEEDS: u64 = 2_000;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().expect("a whole number"))
}

/// Plays one seed in a storm and in calm, and compares.
fn play(seed: u64) -> Result<(), String> {
    let calm = World::new(seed, Weather::calm()).play()?;
    let storm = World::new(seed, Weather::of(seed)).play()?;
    check::same_end(&calm, &storm)
}

#[test]
fn every_run_ends_the_same_whatever_happens_on_the_way() {
    if let Some(seed) = number("EBB_SEED") {
        play(seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        return;
    }
    let seeds = number("EBB_SEEDS").unwrap_or(SEEDS);
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let failures: Vec<(u64, String)> = std::thread::scope(|scope| {
        let share = |first: u64| {
            let failed = |seed: u64| play(seed).err().map(|error| (seed, error));
            (first..seeds).step_by(threads as usize).filter_map(failed).collect::<Vec<_>>()
        };
        let workers: Vec<_> = (0..threads).map(|first| scope.spawn(move || share(first))).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let told: Vec<String> =
        failures.iter().take(5).map(|(seed, error)| format!("seed {seed}: {error}")).collect();
    assert!(failures.is_empty(), "{} of {seeds} seeds failed:\n{}", failures.len(), told.join("\n"));
}

#[test]
fn a_seed_plays_again_exactly() {
    for seed in 0..20 {
        let [first, second] = [(); 2].map(|()| World::new(seed, Weather::of(seed)).play().unwrap());
        assert_eq!(first.journal, second.journal, "seed {seed}");
    }
}

//! The real handlers on the in-memory store, under a virtual clock, in a world that misbehaves by a seed.
//!
//! Whatever the seed does to messages, calls, processes and clocks, the invariants in `check.rs` hold after every step,
//! and a run ends as it ends in a calm world wherever its end follows from its definition. A failing seed is played
//! again with fewer and fewer faults, and the message names the command that plays what is left exactly.
//! `EBB_SEED=N cargo test -p ebbflow-tests --test simulation` plays one seed, `EBB_SEEDS=N` plays more of them, and
//! `cargo run -p ebbflow-tests --example simulate -- --seeds N` plays many and says how far it is.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod aside;
mod bugs;
mod bus;
mod check;
mod clock;
mod coverage;
mod identities;
mod instance;
mod people;
mod places;
mod plans;
mod planted;
mod points;
mod ready;
mod rush;
mod script;
mod seeds;
mod shadow;
mod silence;
mod store;
mod timers;
mod triggers;
mod turns;
mod watch;
mod weather;
mod workflows;
mod world;

use seeds::number;
use weather::Weather;
use world::World;

/// How many seeds the normal test run plays.
const SEEDS: u64 = 2_000;

/// So many more at a time, while something has not happened yet, and no more in all.
const MORE_SEEDS: u64 = 200;
const MOST_SEEDS: u64 = 10_000;

#[test]
fn every_run_ends_the_same_whatever_happens_on_the_way() {
    if let Some(seed) = number("EBB_SEED") {
        seeds::play(seed, seeds::weather(seed), None)
            .unwrap_or_else(|trouble| panic!("seed {seed}: {trouble}"));
        return;
    }
    let seeds = number("EBB_SEEDS").unwrap_or(SEEDS);
    let began = std::time::Instant::now();
    let mut total = seeds::play_all(0..seeds, |_| {});
    println!("{seeds} worlds in {:.1} s", began.elapsed().as_secs_f64());
    assert!(total.failures.is_empty(), "{}", seeds::tell(&total.failures, 3));
    if seeds >= SEEDS {
        let (mut played, mut gaps) = (seeds, coverage::gaps(&total.moves, &total.tally));
        // What is rare may need a few more worlds.
        while !gaps.is_empty() && played < MOST_SEEDS.max(seeds) {
            println!("after {played} worlds this has not happened: {gaps:?}");
            total.add(seeds::play_all(played..played + MORE_SEEDS, |_| {}));
            played += MORE_SEEDS;
            gaps = coverage::gaps(&total.moves, &total.tally);
        }
        assert!(total.failures.is_empty(), "{}", seeds::tell(&total.failures, 3));
        assert!(gaps.is_empty(), "in {played} worlds this never happened: {gaps:#?}");
        let wrong = coverage::wrongly_excused(&total.moves);
        assert!(wrong.is_empty(), "this happened, though it is said to be impossible: {wrong:#?}");
        assert!(total.compared > seeds / 10, "only {} ends were compared", total.compared);
    }
}

#[test]
fn a_seed_plays_again_exactly() {
    for seed in 0..20 {
        let play = || World::new(seed, Weather::of(seed), None).with_random_runs().play().unwrap();
        let (first, second) = (play(), play());
        assert_eq!(first.journal, second.journal, "seed {seed}");
    }
}

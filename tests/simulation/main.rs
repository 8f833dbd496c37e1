//! The real handlers on the in-memory store, under a virtual clock, with faults that are injected by a seed.
//!
//! Whatever the seed does to messages, calls, processes and clocks, the invariants in `check.rs` hold after every step,
//! and a run ends as it does without faults wherever its end follows from its definition. A failing seed is run again
//! with fewer and fewer faults, and the message contains the command that reproduces exactly what is left.
//! `EBB_SEED=N cargo test -p ebbflow-tests --test simulation` runs one seed, `EBB_SEEDS=N` runs more, and
//! `cargo run -p ebbflow-tests --example simulate -- --seeds N` runs many and reports progress.
//!
//! A world is two to four instances of every function, each on a `tokio` runtime of its own (dropping it is the end of a
//! process), over one `store::Memory`; time jumps to the next due event. Handlers stop at fault points (`faults.rs`): before
//! and after each commit, write and publish, and between the messages of one publish. The seed chooses which handler
//! continues, what is delivered to whom, and which fault is injected there.
//!
//! - `workflows.rs` generates a random workflow of the whole language, `script.rs` the work of its tasks; `people.rs` sends
//!   signals, answers and new versions, and steers runs and workers. `plans.rs` adds schedules, a backfill, events and
//!   sensors in one world of sixteen.
//! - `replay.rs` applies every event of a run to the state machines; the result must be the rows. `check.rs` has the
//!   invariants, `timers.rs` those of timers, `slots.rs` and `fairness.rs` those of slots; `observer.rs` applies them.
//! - `leasing.rs` has the workers outside that lease tasks in one world of three; `offers.rs` the invariants of offers.
//! - `deploys.rs` replaces every process while a worker runs a task of hours.
//! - `lost_messages.rs` loses messages on purpose, `overload.rs` requests ten times the capacity.
//! - `coverage.rs` requires that every legal move of the state machines is made, and every fault is injected at every point
//!   where it can be. `bugs.rs` plants bugs; `planted.rs` shows which invariant finds each.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod bugs;
mod bus;
mod check;
mod clock;
mod coverage;
mod deploys;
mod fairness;
mod fault_points;
mod faults;
mod forwarded;
mod instance;
mod leasing;
mod lost_messages;
mod observer;
mod offers;
mod overload;
mod people;
mod plans;
mod planted;
mod ready;
mod replay;
mod reports;
mod script;
mod seeds;
mod slots;
mod store;
mod timers;
mod workflows;
mod world;

use std::collections::BTreeSet;

use faults::{FaultRates, WAKE_UP_FAULTS};
use seeds::number;
use world::World;

/// How many seeds the normal test run covers.
const SEEDS: u64 = 2_000;

/// How many of them also run with exact wake-ups, unless `EBB_SEEDS` says otherwise.
const EXACT_SEEDS: u64 = 200;

/// More seeds run in steps of this size, up to the maximum, while something has not happened yet.
const MORE_SEEDS: u64 = 200;
const MAX_SEEDS: u64 = 10_000;

#[test]
fn every_run_ends_the_same_whatever_happens_on_the_way() {
    if let Some(seed) = number("EBB_SEED") {
        seeds::play(seed, seeds::rates(seed), None)
            .unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
        return;
    }
    let seeds = number("EBB_SEEDS").unwrap_or(SEEDS);
    let began = std::time::Instant::now();
    let mut total = seeds::play_all(0..seeds, |_| {});
    println!("{seeds} worlds in {:.1} s", began.elapsed().as_secs_f64());
    assert!(total.failures.is_empty(), "{}", seeds::report(&total.failures, 3));
    if seeds >= SEEDS {
        let (mut played, mut gaps) = (seeds, coverage::gaps(&total.moves, &total.tally));
        // Rare moves may need a few more worlds.
        while !gaps.is_empty() && played < MAX_SEEDS.max(seeds) {
            println!("after {played} worlds this has not happened: {gaps:?}");
            total.add(seeds::play_all(played..played + MORE_SEEDS, |_| {}));
            played += MORE_SEEDS;
            gaps = coverage::gaps(&total.moves, &total.tally);
        }
        assert!(total.failures.is_empty(), "{}", seeds::report(&total.failures, 3));
        assert!(gaps.is_empty(), "in {played} worlds this never happened: {gaps:#?}");
        let wrong = coverage::wrongly_excused(&total.moves);
        assert!(wrong.is_empty(), "this happened, although it is excused as impossible: {wrong:#?}");
        assert!(total.compared > seeds / 10, "only {} ends were compared", total.compared);
    }
}

#[test]
fn every_run_ends_if_wake_ups_are_lost_duplicated_and_late_and_ticks_come_once_an_hour() {
    let mut never: BTreeSet<&str> = WAKE_UP_FAULTS.into();
    for seed in 0..number("EBB_SEEDS").map_or(EXACT_SEEDS, |seeds| seeds.min(SEEDS)) {
        let world = World::with_exact_wake_ups(seed, FaultRates::of(seed)).with_random_runs();
        let ended = world.play().unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
        never.retain(|fault| !ended.journal.iter().any(|line| line.ends_with(fault)));
    }
    assert!(never.is_empty(), "the world never {never:?}");
}

#[test]
fn a_seed_plays_again_exactly() {
    for seed in 0..20 {
        let play = || World::new(seed, FaultRates::of(seed), None).with_random_runs().play().unwrap();
        let (first, second) = (play(), play());
        assert_eq!(first.journal, second.journal, "seed {seed}");
    }
}

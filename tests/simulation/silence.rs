//! Every message about a run may be lost: it moves on within two minutes all the same.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use chrono::TimeDelta;
use model::{Instant, Message, RunState};

use crate::seeds::number;
use crate::weather::Weather;
use crate::world::World;

/// A run that has work to do moves on within this, whatever was lost.
const SILENCE: TimeDelta = TimeDelta::minutes(2);

fn seeds() -> u64 {
    number("EBB_SEEDS").unwrap_or(100).min(1_000)
}

/// A small workflow whose tasks end at once.
fn chain() -> model::Workflow {
    testkit::workflow("a -> b, a -> c, b -> d, c -> d, d -> e")
}

#[test]
fn a_run_whose_messages_are_all_lost_once_ends_each_hop_within_two_minutes() {
    let mut world = World::new(1, Weather::calm(), None);
    world.register([chain()]);
    let start = world.now();
    let run = world.request("example", start);
    let heard = Rc::new(RefCell::new(BTreeSet::new()));
    world.censor = Some(Box::new(move |message: &Message, _: Instant| {
        // The first copy of each message is lost; what is said again is another copy.
        heard.borrow_mut().insert(format!("{message:?}"))
    }));
    let mut moved = start;
    while world.watch.end_of(run).is_none_or(|(state, _)| !state.is_final()) {
        world.play_step().unwrap();
        let last = world.watch.last_move().unwrap_or(start);
        assert!(world.now() - last <= SILENCE, "nothing moved from {last} to {}", world.now());
        moved = last;
    }
    assert_eq!(world.watch.end_of(run).unwrap().0, RunState::Succeeded);
    assert!(moved - start > TimeDelta::minutes(1), "messages were lost on the way");
}

#[test]
fn a_run_moves_on_within_two_minutes_of_losing_all_that_was_in_flight() {
    for seed in 0..seeds() {
        let mut world = World::new(seed, Weather::calm(), None);
        world.register([chain()]);
        let start = world.now();
        let run = world.request("example", start);
        // From the n-th message on, all that is said at that instant is lost, and nothing after it.
        let (first, silent) = (seed % 9, Rc::new(RefCell::new((0, None))));
        world.censor = Some(Box::new(move |_: &Message, now: Instant| {
            let mut silent = silent.borrow_mut();
            silent.0 += 1;
            if silent.0 > first && silent.1.is_none() {
                silent.1 = Some(now);
            }
            silent.1 == Some(now)
        }));
        while world.watch.end_of(run).is_none_or(|(state, _)| !state.is_final()) {
            world.play_step().unwrap();
            let last = world.watch.last_move().unwrap_or(start);
            assert!(
                world.now() - last <= SILENCE,
                "seed {seed}: nothing moved from {last} to {}",
                world.now()
            );
        }
    }
}

//! Every message about a run may be lost: it still ends, and in time.
//!
//! "Every message of a run is lost once" is read in two ways, and both are shown, over random workflows whose end follows
//! from their definition: work that workers claim, fan-outs, child runs, shared tasks, concurrency groups, sleeps, retries.
//!
//! - Everything in flight at one moment is lost, at each moment of the run in turn: the run ends no later than two minutes
//!   after it does without losses. With few slots a late task also finds others before it, and a task that waits for
//!   shared work may have to do failed work itself, so these worlds have enough slots and no shared work that fails.
//! - The first copy of each message is lost. A run of many steps then loses many messages one after the other, so the
//!   bound applies to each step: whatever waits only for a message continues within two minutes.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use chrono::TimeDelta;
use model::{Instant, Message, RunId, TaskKind, TaskSpec};

use crate::check::End;
use crate::faults::FaultRates;
use crate::plans;
use crate::ready::Ready;
use crate::seeds::number;
use crate::workflows;
use crate::world::World;

/// A run that has work to do moves on within this, whatever was lost.
const SILENCE: TimeDelta = TimeDelta::minutes(2);

/// Steps may happen a moment later in one world than in the other.
const MOMENT: TimeDelta = TimeDelta::seconds(10);

/// The seeds whose runs end as their definition says, and in which nothing starts by itself.
fn seeds(usual: u64) -> impl Iterator<Item = u64> {
    let seeds = 0..number("EBB_SEEDS").unwrap_or(usual).min(2_000);
    let is_alike = |seed: &u64| {
        let starts_by_itself = plans::are_in(*seed);
        // Workers outside ask for tasks: they wait for no message.
        !starts_by_itself
            && !workflows::has_leases(*seed)
            && workflows::is_determined(&workflows::random(*seed))
    };
    seeds.filter(is_alike)
}

/// Whether a late task delays only what depends on it: no task waits for a slot, and no shared work fails.
fn delays_only_its_dependants(seed: u64) -> bool {
    let workflow = workflows::random(seed);
    let is_safe = |task: &TaskSpec| task.global.is_none() || task.kind == TaskKind::Noop;
    let has_room = !World::has_few_slots(seed) && workflow.max_active_tasks.is_none();
    has_room && workflow.tasks.iter().all(is_safe)
}

fn world(seed: u64) -> World {
    World::new(seed, FaultRates::none(), None).with_random_runs()
}

/// How the runs of a world ended, and when.
type Ends = BTreeMap<RunId, (End, Instant)>;

/// Runs a world without faults to its end, in which everything in flight at one instant is lost.
fn play(seed: u64, lost_at: Option<Instant>, mut on_flight: impl FnMut(Instant)) -> Ends {
    let mut world = world(seed);
    while !world.is_over() {
        if world.is_anything_in_flight() {
            on_flight(world.now());
        }
        if lost_at == Some(world.now()) {
            world.lose_what_is_in_flight();
        }
        world.play_step().unwrap_or_else(|violation| panic!("seed {seed}, lost at {lost_at:?}: {violation}"));
        assert!(!world.takes_too_long(), "seed {seed}, lost at {lost_at:?}: {}", world.describe());
    }
    world.ends()
}

#[test]
fn a_run_that_loses_all_that_is_in_flight_at_any_one_moment_ends_within_two_minutes_of_its_time() {
    let (mut worlds, mut later) = (0, 0);
    for seed in seeds(40).filter(|seed| delays_only_its_dependants(*seed)) {
        let mut moments = BTreeSet::new();
        let clean = play(seed, None, |at| {
            moments.insert(at);
        });
        for moment in moments {
            let lost = play(seed, Some(moment), |_| {});
            worlds += 1;
            for (run, (end, at)) in &clean {
                let (found, found_at) = &lost[run];
                assert_eq!(found, end, "seed {seed}, run {run}, lost at {moment}");
                later += u32::from(*found_at > *at + MOMENT);
                let late = *found_at - *at;
                assert!(late <= SILENCE + MOMENT, "seed {seed}, run {run}, lost at {moment}: {late} later");
            }
        }
    }
    assert!(later > worlds / 10, "{later} ends in {worlds} worlds were any later: hardly anything was lost");
}

#[test]
fn a_run_that_loses_the_first_copy_of_every_message_takes_each_step_within_two_minutes() {
    for seed in seeds(200) {
        let mut world = world(seed);
        let (mut seen, lost) = (BTreeSet::new(), Rc::new(Cell::new(0)));
        let count = lost.clone();
        world.loss_rule = Some(Box::new(move |message: &Message| {
            // A message that is published again is another copy.
            let first = seen.insert(format!("{message:?}"));
            count.set(count.get() + u32::from(first));
            first
        }));
        let mut ready: BTreeMap<Ready, Instant> = BTreeMap::new();
        while !world.is_over() {
            world.play_step().unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
            let (now, before) = (world.now(), ready);
            let keep = |what: Ready| (what, before.get(&what).copied().unwrap_or(now));
            ready = world.observer.what_is_ready(now).into_iter().map(keep).collect();
            if let Some((what, since)) = ready.iter().find(|(_, since)| now - **since > SILENCE) {
                panic!("seed {seed}: {what:?} is ready since {since}, and it is {now}");
            }
            assert!(!world.takes_too_long(), "seed {seed}: {}", world.describe());
        }
        assert!(lost.get() > 0, "seed {seed}: messages were lost on the way");
        let clean = play(seed, None, |_| {});
        let ends = world.ends();
        for (run, (end, _)) in clean {
            assert_eq!(ends[&run].0, end, "seed {seed}, run {run}");
        }
    }
}

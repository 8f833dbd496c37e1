//! The real sweep, ticked every minute: while it is up, timers fire within a second and never early.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::TimeDelta;
use model::{EventKind, Instant, TaskIndex, TaskKind};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use sweep::Sweep;
use testkit::run_others;
use tokio::task::JoinHandle;

use crate::world::World;

const TIMERS: usize = 400;

/// The maximum duration of a sleep, in seconds.
const MAX_SLEEP: u32 = 600;

/// Virtual time passes in steps of this length.
const STEP: TimeDelta = TimeDelta::milliseconds(100);

/// Starts a run of tasks that sleep. Returns when each of them is to wake.
async fn start_sleepers(world: &World) -> (model::RunId, BTreeMap<TaskIndex, Instant>) {
    let mut dice = StdRng::seed_from_u64(7);
    let names: Vec<String> = (0..TIMERS).map(|number| format!("s{number}")).collect();
    let mut workflow = testkit::workflow(&names.join(", "));
    for task in &mut workflow.tasks {
        task.kind = TaskKind::Sleep;
        task.config = json!({"duration": dice.random_range(1..MAX_SLEEP)});
    }
    world.register(workflow).await;
    let run = world.start("example").await;
    let due = world.store().due_timers(world.now() + TimeDelta::days(1), u32::MAX).await.unwrap();
    (run, due.into_iter().filter_map(|due| Some((due.timer.task?, due.timer.wake_at))).collect())
}

/// How late each timer was that was due while a sweep was up.
async fn lateness(world: &World) -> Vec<TimeDelta> {
    let (run, wake) = start_sleepers(world).await;
    let sweep = Arc::new(Sweep::new(world.runtime.clone()));
    let mut up: Vec<JoinHandle<runtime::Result<()>>> = Vec::new();
    let (mut tick, mut attended) = (world.now(), Vec::new());
    let end = world.now() + TimeDelta::seconds(i64::from(MAX_SLEEP) + 120);
    while world.now() < end {
        if world.now() >= tick {
            tick += TimeDelta::minutes(1);
            let sweep = sweep.clone();
            up.push(tokio::spawn(async move { sweep.run().await }));
        }
        run_others().await;
        up.retain(|sweep| !sweep.is_finished());
        let (from, to) = (world.now(), world.now() + STEP);
        if !up.is_empty() {
            attended.extend(wake.iter().filter(|(_, at)| from < **at && **at <= to).map(|(task, _)| *task));
        }
        world.clock.set(to);
    }
    run_others().await;
    let events = world.events(run).await;
    let woken = events.iter().filter(|event| event.kind == EventKind::TaskSucceeded);
    let woken: BTreeMap<TaskIndex, Instant> =
        woken.filter_map(|event| Some((event.task?, event.at))).collect();
    assert_eq!(woken.len(), TIMERS, "each timer has fired");
    assert!(woken.iter().all(|(task, at)| *at >= wake[task]), "none fired early");
    attended.iter().map(|task| woken[task] - wake[task]).collect()
}

#[tokio::test]
async fn timers_are_late_by_less_than_a_second_at_the_99th_percentile_while_a_sweep_is_up() {
    // Sleeps end between two ticks, and at all distances from them.
    let world = World::at("2026-01-01T00:00:07.350Z");
    let mut late = lateness(&world).await;
    late.sort_unstable();
    assert!(late.len() > TIMERS * 9 / 10, "a sweep is up while timers are due: {} of {TIMERS}", late.len());
    let worst = late[late.len() * 99 / 100];
    assert!(worst < TimeDelta::seconds(1), "{worst}");
}

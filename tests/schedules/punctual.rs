//! The real sweep, woken every minute: while it is up, timers fire to the second, and none is early.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::TimeDelta;
use model::{EventKind, Instant, TaskIndex, TaskKind, TenantId};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use runtime::StartRun;
use serde_json::{Map, json};
use store::NewVersion;
use sweep::Sweep;
use tokio::task::JoinHandle;

use crate::world::World;

const TIMERS: usize = 400;

/// The longest of them.
const LONGEST: u32 = 600;

/// Time passes in steps of this.
const STEP: TimeDelta = TimeDelta::milliseconds(100);

/// Lets a run with many sleepers begin. Answers when each of them is to wake.
async fn put_to_sleep(world: &World) -> (model::RunId, BTreeMap<TaskIndex, Instant>) {
    let mut dice = StdRng::seed_from_u64(7);
    let names: Vec<String> = (0..TIMERS).map(|number| format!("s{number}")).collect();
    let mut workflow = testkit::workflow(&names.join(", "));
    for task in &mut workflow.tasks {
        task.kind = TaskKind::Sleep;
        task.config = json!({"duration": dice.random_range(1..LONGEST)});
    }
    let (tenant, by, at) = (TenantId::DEFAULT, "test".to_owned(), world.now());
    let new = NewVersion { tenant, workflow, source: String::new(), hash: "h".into(), by: by.clone(), at };
    world.store().register(&new).await.unwrap();
    let request = StartRun {
        id: model::RunId(uuid::Uuid::from_u128(1)),
        tenant,
        workflow: "example".into(),
        inputs: Map::new(),
        labels: Map::new(),
        logical_date: None,
        origin: runtime::Origin::Api { by },
        priority: 0,
    };
    let run = world.runtime.start(request).await.unwrap().record.run.id;
    let due = world.store().due_timers(at + TimeDelta::days(1), u32::MAX).await.unwrap();
    (run, due.into_iter().filter_map(|due| Some((due.timer.task?, due.timer.wake_at))).collect())
}

/// Lets whoever can go on do so.
async fn calm() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

/// How late each timer was that fell due while a sweep was up.
async fn lateness(world: &World) -> Vec<TimeDelta> {
    let (run, wake) = put_to_sleep(world).await;
    let sweep = Arc::new(Sweep::new(world.runtime.clone()));
    let mut up: Vec<JoinHandle<runtime::Result<()>>> = Vec::new();
    let (mut tick, mut attended) = (world.now(), Vec::new());
    let end = world.now() + TimeDelta::seconds(i64::from(LONGEST) + 120);
    while world.now() < end {
        if world.now() >= tick {
            tick += TimeDelta::minutes(1);
            let sweep = sweep.clone();
            up.push(tokio::spawn(async move { sweep.run().await }));
        }
        calm().await;
        up.retain(|sweep| !sweep.is_finished());
        let (from, to) = (world.now(), world.now() + STEP);
        if !up.is_empty() {
            attended.extend(wake.iter().filter(|(_, at)| from < **at && **at <= to).map(|(task, _)| *task));
        }
        world.clock.set(to);
    }
    calm().await;
    let events = world.store().events(run, 0, u32::MAX).await.unwrap();
    let woken = events.iter().filter(|(_, event)| event.kind == EventKind::TaskSucceeded);
    let woken: BTreeMap<TaskIndex, Instant> =
        woken.filter_map(|(_, event)| Some((event.task?, event.at))).collect();
    assert_eq!(woken.len(), TIMERS, "each has fired");
    assert!(woken.iter().all(|(task, at)| *at >= wake[task]), "and none early");
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

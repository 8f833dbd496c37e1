//! Many timers: each fires once and never early, with several sweeps at once. An idle sweep sends one statement.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chrono::TimeDelta;
use model::{Clock, EventKind, RunState, TaskKind, TimerKind};
use testkit::ManualClock;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::world::World;

const RUNS: usize = 100;
const ASLEEP: usize = 100;

/// Counts the statements that this thread sends to a database.
#[derive(Clone, Default)]
pub(crate) struct Statements(Arc<AtomicUsize>);

impl<S: tracing::Subscriber> Layer<S> for Statements {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "sqlx::query" {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Statements {
    pub(crate) async fn of(&self, what: impl Future<Output = ()>) -> usize {
        let before = self.0.load(Ordering::Relaxed);
        what.await;
        self.0.load(Ordering::Relaxed) - before
    }
}

/// Registers a workflow of tasks that sleep for an hour.
async fn register_sleepers(world: &World, sleepers: usize) {
    let mut workflow =
        testkit::workflow(&(0..sleepers).map(|n| format!("s{n}")).collect::<Vec<_>>().join(", "));
    for task in &mut workflow.tasks {
        task.kind = TaskKind::Sleep;
        task.config = serde_json::json!({"duration": "1h"});
    }
    world.register(workflow).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_timers_fire_once_and_never_early_with_three_concurrent_sweeps() {
    let world = World::new().await;
    register_sleepers(&world, ASLEEP).await;
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        runs.push(world.start("example").await);
    }
    let (first, last) =
        (world.run(runs[0]).await.run.created_at, world.run(runs[RUNS - 1]).await.run.created_at);
    let hour = TimeDelta::hours(1);
    let clock = ManualClock::at(&(first + hour - TimeDelta::milliseconds(1)).to_rfc3339());
    let mut sweeps = Vec::new();
    for _ in 0..3 {
        sweeps.push(world.process(clock.clone()).await);
    }
    assert_eq!(sweeps[0].fire(clock.now(), 1_000).await.unwrap().due, 0, "not a moment early");

    clock.set(last + hour + TimeDelta::minutes(1));
    let began = world.now();
    let fired = futures::future::join_all(sweeps.into_iter().map(async |sweep| {
        let mut fired = 0;
        loop {
            let now = sweep.fire(sweep.clock().now(), 1_000).await.unwrap();
            fired += now.applied;
            if now.due == 0 {
                return fired;
            }
        }
    }))
    .await;
    let seconds = (world.now() - began).as_seconds_f64();
    println!(
        "{} timers in {seconds:.2} s: {:.0} a second, by sweep {fired:?}",
        RUNS * ASLEEP,
        (RUNS * ASLEEP) as f64 / seconds
    );
    let left = world.store().due_timers(clock.now(), 10).await.unwrap();
    assert_eq!(fired.iter().sum::<usize>(), RUNS * ASLEEP, "left over: {left:?}");
    for run in runs {
        assert_eq!(world.run(run).await.run.state, RunState::Succeeded);
        let mut woken = BTreeMap::new();
        for event in world.events(run).await.iter().filter(|event| event.kind == EventKind::TaskSucceeded) {
            *woken.entry(event.task).or_insert(0) += 1;
        }
        assert_eq!((woken.len(), woken.values().max()), (ASLEEP, Some(&1)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_concurrent_transactions_take_timers_of_different_runs_without_waiting() {
    let world = World::new().await;
    register_sleepers(&world, 2).await;
    let (one, two) = (world.start("example").await, world.start("example").await);
    let later = world.app.now() + TimeDelta::hours(2);
    let store = world.store();
    let (mut first, mut second) = (store.begin().await.unwrap(), store.begin().await.unwrap());
    first.lock(&[one]).await.unwrap();
    let due = second.due_timers(later, 10).await.unwrap();
    assert!(
        due.len() == 2 && due.iter().all(|due| due.run == two && due.timer.kind == TimerKind::Sleep),
        "{due:?}"
    );
    assert_eq!(
        first.due_timers(later, 10).await.unwrap().len(),
        2,
        "a run that the transaction itself has locked is not skipped"
    );
}

#[tokio::test]
async fn an_idle_tick_is_one_statement_even_while_a_task_sleeps_for_a_day() {
    let world = World::new().await;
    let statements = Statements::default();
    let _guard = testkit::subscribe(tracing_subscriber::registry().with(statements.clone()));
    let clock = ManualClock::at(&world.now().to_rfc3339());
    let runtime = world.process(clock.clone()).await;
    let sweep = sweep::Sweep::new(runtime.clone());
    // The first tick of a day runs retention.
    sweep.run().await.unwrap();
    assert_eq!(statements.of(async { sweep.run().await.unwrap() }).await, 1, "nothing to do");

    let mut workflow = testkit::workflow("rest");
    workflow.tasks[0].kind = TaskKind::Sleep;
    workflow.tasks[0].config = serde_json::json!({"duration": "24h"});
    world.register(workflow).await;
    let run = runtime.start(testkit::start_run("example")).await.unwrap().record.run.id;
    // The functions of the world send statements in this thread, too: let them finish.
    world.bus.idle().await;
    // The first recheck sees that the run only waits, and plans no other.
    clock.advance(TimeDelta::minutes(1));
    sweep.run().await.unwrap();
    for _ in 0..22 {
        clock.advance(TimeDelta::hours(1));
        assert_eq!(statements.of(async { sweep.run().await.unwrap() }).await, 1, "it only sleeps");
    }
    clock.advance(TimeDelta::hours(2));
    sweep.run().await.unwrap();
    assert_eq!(world.run(run).await.run.state, RunState::Succeeded);
}

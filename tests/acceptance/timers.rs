//! Timers in bulk: each fires once, none early, with several sweeps at once; and an idle system asks one question.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bus::SystemClock;
use chrono::TimeDelta;
use model::{Clock, EventKind, Instant, RunState, TaskKind, TimerKind};
use runtime::Runtime;
use store::Postgres;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::world::World;

const RUNS: usize = 100;
const ASLEEP: usize = 100;

/// The statements that this thread sends to a database.
#[derive(Clone, Default)]
struct Statements(Arc<AtomicUsize>);

impl<S: tracing::Subscriber> Layer<S> for Statements {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "sqlx::query" {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Statements {
    async fn of(&self, what: impl Future<Output = ()>) -> usize {
        let before = self.0.load(Ordering::Relaxed);
        what.await;
        self.0.load(Ordering::Relaxed) - before
    }
}

/// A clock that stands at an instant until it is moved.
pub(crate) struct Standing(pub(crate) std::sync::Mutex<Instant>);

#[async_trait::async_trait]
impl Clock for Standing {
    fn now(&self) -> Instant {
        *self.0.lock().unwrap()
    }

    async fn wait_until(&self, instant: Instant) {
        let mut now = self.0.lock().unwrap();
        *now = instant.max(*now);
    }
}

/// A workflow of so many tasks that sleep for an hour.
async fn register_sleepers(world: &World, sleepers: usize) {
    let mut workflow =
        testkit::workflow(&(0..sleepers).map(|n| format!("s{n}")).collect::<Vec<_>>().join(", "));
    for task in &mut workflow.tasks {
        task.kind = TaskKind::Sleep;
        task.config = serde_json::json!({"duration": "1h"});
    }
    world.register(workflow).await;
}

/// Another process on the same database, whose clock stands.
pub(crate) async fn another(world: &World, clock: &Arc<Standing>) -> Arc<Runtime> {
    let store = Arc::new(Postgres::connect(&world.database.url, 4).await.unwrap());
    Arc::new(Runtime::new(store, Arc::new(world.broker.clone()), clock.clone()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_timers_fire_once_each_and_none_early_with_three_sweeps_at_once() {
    let world = World::new().await;
    register_sleepers(&world, ASLEEP).await;
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        runs.push(world.trigger("example").await);
    }
    let (first, last) =
        (world.run(runs[0]).await.run.created_at, world.run(runs[RUNS - 1]).await.run.created_at);
    let hour = TimeDelta::hours(1);
    let clock = Arc::new(Standing(std::sync::Mutex::new(first + hour - TimeDelta::milliseconds(1))));
    let mut sweeps = Vec::new();
    for _ in 0..3 {
        sweeps.push(another(&world, &clock).await);
    }
    assert_eq!(sweeps[0].fire(clock.now(), 1_000).await.unwrap().due, 0, "not a moment early");

    clock.wait_until(last + hour + TimeDelta::minutes(1)).await;
    let began = SystemClock.now();
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
    let seconds = (SystemClock.now() - began).as_seconds_f64();
    println!(
        "{} timers in {seconds:.2} s: {:.0} a second, by sweep {fired:?}",
        RUNS * ASLEEP,
        (RUNS * ASLEEP) as f64 / seconds
    );
    let left = world.runtime.store().due_timers(clock.now(), 10).await.unwrap();
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
async fn two_units_at_once_take_timers_of_different_runs_and_wait_for_nobody() {
    let world = World::new().await;
    register_sleepers(&world, 2).await;
    let (one, two) = (world.trigger("example").await, world.trigger("example").await);
    let later = world.app.now() + TimeDelta::hours(2);
    let store = world.runtime.store();
    let (mut first, mut second) = (store.begin().await.unwrap(), store.begin().await.unwrap());
    first.lock(&[one]).await.unwrap();
    let due = second.due_timers(later, 10).await.unwrap();
    assert!(
        due.len() == 2 && due.iter().all(|due| due.run == two && due.timer.kind == TimerKind::Sleep),
        "{due:?}"
    );
    assert_eq!(first.due_timers(later, 10).await.unwrap().len(), 2, "one's own runs are not skipped");
}

#[tokio::test]
async fn an_idle_tick_is_one_statement_also_while_a_task_sleeps_for_a_day() {
    let world = World::new().await;
    let statements = Statements::default();
    // Where there is only one subscriber, the first who says something anywhere decides whether it listens.
    let _other = tracing::Dispatch::new(tracing_subscriber::registry());
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(statements.clone()));
    let clock = Arc::new(Standing(std::sync::Mutex::new(world.app.now())));
    let runtime = another(&world, &clock).await;
    let sweep = sweep::Sweep::new(runtime.clone());
    // The first tick of a day looks for what has been kept long enough.
    sweep.run().await.unwrap();
    assert_eq!(statements.of(async { sweep.run().await.unwrap() }).await, 1, "nothing to do");

    let mut workflow = testkit::workflow("rest");
    workflow.tasks[0].kind = TaskKind::Sleep;
    workflow.tasks[0].config = serde_json::json!({"duration": "24h"});
    world.register(workflow).await;
    let run = runtime.start(crate::world::request("example")).await.unwrap().record.run.id;
    // The first check-up sees that it only waits; then nobody looks at it.
    clock.wait_until(clock.now() + TimeDelta::minutes(1)).await;
    sweep.run().await.unwrap();
    for _ in 0..22 {
        clock.wait_until(clock.now() + TimeDelta::hours(1)).await;
        assert_eq!(statements.of(async { sweep.run().await.unwrap() }).await, 1, "it only sleeps");
    }
    clock.wait_until(clock.now() + TimeDelta::hours(2)).await;
    sweep.run().await.unwrap();
    assert_eq!(world.run(run).await.run.state, RunState::Succeeded);
}

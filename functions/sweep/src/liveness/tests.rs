//! Workers that live, die, or have a wrong clock, on a clock that the test moves.

use std::ops::Deref;
use std::sync::Arc;

use auth::PushAuth;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use bus::envelope;
use chrono::TimeDelta;
use model::message::{WorkerHeartbeat, WorkerKill, WorkerRegistered};
use model::{Clock, Message, RunId, Task, TaskIndex, TaskState, WorkerCommandKind, WorkerFacts, WorkerId};
use store::{Heartbeat, Silence};
use testkit::run_others;
use tokio::task::JoinHandle;
use tower::ServiceExt;
use uuid::Uuid;

use super::*;

const WORKER: WorkerId = WorkerId(Uuid::from_u128(9));

/// A run whose only task is held by a worker that has sent one heartbeat.
struct World {
    base: testkit::World,
    sweep: Arc<Sweep>,
    run: RunId,
    /// How far the worker's clock is ahead.
    skew: TimeDelta,
}

impl Deref for World {
    type Target = testkit::World;

    fn deref(&self) -> &Self::Target {
        &self.base
    }
}

impl World {
    async fn new(skew: i64) -> Self {
        let base = testkit::World::at("2026-01-01T00:00:00Z");
        let mut workflow = testkit::workflow("a");
        // So that a loss is followed by another attempt.
        workflow.tasks[0].idempotent = Some(true);
        base.register(workflow).await;
        let run = base.start("example").await;
        let sweep = Arc::new(Sweep::new(base.runtime.clone()));
        let world = Self { base, sweep, run, skew: TimeDelta::seconds(skew) };
        world.beat().await;
        world.apply(run, Command::Claim { task: TaskIndex(0), attempt: 1, worker: WORKER }).await;
        world
    }

    async fn beat(&self) {
        let sign = Heartbeat { worker: WORKER, facts: None, at: self.clock.now() + self.skew };
        self.store().beat(&sign).await.unwrap();
    }

    /// The scheduler's tick, until it waits for the clock.
    async fn tick(&self) -> JoinHandle<Result<()>> {
        let sweep = self.sweep.clone();
        let tick = tokio::spawn(async move { sweep.run().await });
        run_others().await;
        tick
    }

    async fn pass(&self, seconds: i64) {
        self.clock.advance(TimeDelta::seconds(seconds));
        run_others().await;
    }

    async fn task(&self) -> Task {
        self.tasks(self.run).await.remove(0).task
    }

    async fn is_held(&self) -> bool {
        let task = self.task().await;
        task.state == TaskState::Running && task.attempt == 1
    }

    async fn is_known(&self) -> bool {
        !self.store().silent(Instant::MAX_UTC, 9).await.unwrap().is_empty()
    }
}

#[tokio::test]
async fn a_worker_without_a_heartbeat_for_a_minute_is_dead() {
    let world = World::new(0).await;
    world.pass(40).await;
    assert!(world.tick().await.is_finished(), "the sweep does not wait for a worker that may be alive");
    world.pass(1).await;
    let tick = world.tick().await;
    world.pass(19).await;
    assert!(!tick.is_finished() && world.is_held().await, "it has its last chance");
    world.pass(1).await;
    let task = world.task().await;
    assert_eq!((task.state, task.attempt, task.worker), (TaskState::Dispatched, 2, None));
    assert!(!world.is_known().await);
    tick.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_worker_that_could_not_send_heartbeats_while_the_store_was_unavailable_is_alive() {
    let world = World::new(0).await;
    world.pass(600).await;
    let tick = world.tick().await;
    world.pass(15).await;
    world.beat().await;
    world.pass(5).await;
    tick.await.unwrap().unwrap();
    assert!(world.is_held().await && world.is_known().await);
}

#[tokio::test]
async fn the_next_sweep_starts_over_after_one_that_was_interrupted() {
    let world = World::new(0).await;
    world.pass(600).await;
    let tick = world.tick().await;
    tick.abort();
    world.pass(60).await;
    let tick = world.tick().await;
    assert!(!tick.is_finished() && world.is_held().await, "the worker has its last chance again");
}

#[tokio::test]
async fn ticks_in_quick_succession_do_not_postpone_the_verdict() {
    let world = World::new(0).await;
    world.pass(41).await;
    let tick = || {
        let sweep = world.sweep.clone();
        tokio::spawn(async move { sweep.tick().await })
    };
    let mut ticks = Vec::new();
    for _ in 0..10 {
        assert!(world.is_held().await, "it has its last chance");
        ticks.push(tick());
        run_others().await;
        world.pass(2).await;
    }
    run_others().await;
    assert_eq!((world.task().await.attempt, world.is_known().await), (2, false));
    for tick in ticks {
        tick.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_doubt_that_no_sweep_took_over_is_not_a_verdict_later() {
    let world = World::new(0).await;
    world.pass(600).await;
    let first = world.sweep.clone();
    let first = tokio::spawn(async move { first.tick().await });
    run_others().await;
    // The second makes the first leave, and is dropped as soon as it has the turn.
    let second = world.sweep.clone();
    let mut second = Box::pin(async move { second.tick().await });
    assert!(futures::poll!(&mut second).is_pending());
    first.await.unwrap().unwrap();
    drop(second);
    world.pass(60).await;
    let tick = world.tick().await;
    assert!(!tick.is_finished() && world.is_held().await, "the worker has its last chance again");
}

#[tokio::test]
async fn a_worker_with_a_slow_clock_is_alive_as_long_as_it_sends_heartbeats() {
    let world = World::new(-60).await;
    for _ in 0..3 {
        let tick = world.tick().await;
        for _ in 0..6 {
            world.pass(10).await;
            world.beat().await;
        }
        assert!(tick.is_finished(), "the sweep does not stay up for a worker that is alive");
        assert!(world.is_held().await && world.is_known().await);
    }
    let tick = world.tick().await;
    world.pass(20).await;
    tick.await.unwrap().unwrap();
    assert_eq!(world.task().await.attempt, 2);
}

#[tokio::test]
async fn a_worker_with_a_fast_clock_is_declared_dead_later_by_its_skew() {
    let world = World::new(60).await;
    world.pass(100).await;
    assert!(world.tick().await.is_finished() && world.is_held().await);
    world.pass(1).await;
    let tick = world.tick().await;
    world.pass(20).await;
    tick.await.unwrap().unwrap();
    assert_eq!(world.task().await.attempt, 2);
}

#[tokio::test]
async fn an_attempt_of_a_worker_that_left_is_lost_at_once() {
    let world = World::new(0).await;
    world.store().farewell(WORKER).await.unwrap();
    world.tick().await.await.unwrap().unwrap();
    assert_eq!(world.task().await.attempt, 2);
}

#[tokio::test]
async fn a_worker_without_a_database_registers_sends_heartbeats_and_is_killed_by_messages() {
    let world = World::new(0).await;
    let router = crate::router(world.app(PushAuth::None));
    let (at, host, version) = (world.clock.now() + TimeDelta::hours(1), "far away".into(), "1".into());
    let (function, queue, since) = ("execute".into(), Some("heavy".into()), world.clock.now());
    let facts = WorkerFacts { function, queue, host, version, since, breakers: Vec::new(), remote: None };
    let (actor, reason) = ("ada".to_owned(), Some("it hangs".to_owned()));
    for message in [
        Message::WorkerRegistered(WorkerRegistered { worker: WORKER, facts: facts.clone(), at }),
        Message::WorkerHeartbeat(WorkerHeartbeat { worker: WORKER, at }),
        Message::WorkerKill(WorkerKill { worker: WORKER, actor, reason }),
        Message::WorkerKill(WorkerKill { worker: WorkerId(Uuid::nil()), actor: "ada".into(), reason: None }),
    ] {
        let (headers, body) = envelope::wrap(&message, "1", world.clock.now(), "management", Some(1));
        let mut request = Request::post("/push").body(Body::from(body)).unwrap();
        *request.headers_mut() = headers;
        assert_eq!(router.clone().oneshot(request).await.unwrap().status(), StatusCode::NO_CONTENT);
    }
    let known = world.store().silent(Instant::MAX_UTC, 9).await.unwrap();
    assert_eq!(
        known,
        [Silence { worker: WORKER, heartbeat_at: world.clock.now() }],
        "a heartbeat from the future counts as now"
    );
    assert_eq!(world.base.memory().worker_facts(WORKER), Some(facts));
    let command = world.store().farewell(WORKER).await.unwrap().unwrap();
    assert_eq!((command.kind, command.reason.as_deref()), (WorkerCommandKind::Kill, Some("it hangs")));
}

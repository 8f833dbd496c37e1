//! Workers that live, die, and whose clocks are wrong, on a clock that the test moves.

use std::sync::Arc;

use async_trait::async_trait;
use auth::PushAuth;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use bus::{Bus, envelope};
use host::App;
use model::message::{WorkerHeartbeat, WorkerKill, WorkerRegistered};
use model::{
    Clock, Message, RunId, Task, TaskIndex, TaskState, TenantId, WorkerCommandKind, WorkerFacts, WorkerId,
};
use runtime::{Runtime, Settled, StartRun};
use serde_json::Map;
use store::{Heartbeat, Memory, NewVersion, Silence};
use testkit::ManualClock;
use tokio::task::JoinHandle;
use tower::ServiceExt;
use uuid::Uuid;

use super::*;

const WORKER: WorkerId = WorkerId(Uuid::from_u128(9));

struct Mute;

#[async_trait]
impl Bus for Mute {
    async fn publish(&self, _: &[Message]) -> std::result::Result<(), bus::Error> {
        Ok(())
    }

    async fn ping(&self) -> std::result::Result<(), bus::Error> {
        Ok(())
    }
}

/// A run whose only task is held by a worker that has beaten once.
struct World {
    clock: ManualClock,
    memory: Memory,
    runtime: Arc<Runtime>,
    sweep: Arc<Sweep>,
    run: RunId,
    /// How far the worker's clock is ahead.
    skew: TimeDelta,
}

impl World {
    async fn new(skew: i64) -> Self {
        let clock = ManualClock::at("2026-01-01T00:00:00Z");
        let memory = Memory::default();
        let runtime =
            Arc::new(Runtime::new(Arc::new(memory.clone()), Arc::new(Mute), Arc::new(clock.clone())));
        let (workflow, hash) = (testkit::workflow("a"), "h".to_owned());
        let (tenant, by, at) = (TenantId::DEFAULT, "test".to_owned(), clock.now());
        let new = NewVersion { tenant, workflow, source: String::new(), hash, by, at };
        runtime.store().register(&new).await.unwrap();
        let request = StartRun {
            id: RunId(Uuid::from_u128(1)),
            tenant,
            workflow: "example".into(),
            inputs: Map::new(),
            labels: Map::new(),
            logical_date: None,
            origin: runtime::Origin::Api { by: "test".into() },
            priority: 0,
        };
        let run = runtime.start(request).await.unwrap().record.run.id;
        let sweep = Arc::new(Sweep::new(runtime.clone()));
        let world = Self { clock, memory, runtime, sweep, run, skew: TimeDelta::seconds(skew) };
        world.beat().await;
        let claim = Command::Claim { task: TaskIndex(0), attempt: 1, worker: WORKER };
        assert_eq!(world.runtime.settle(run, claim).await.unwrap(), Settled::Applied);
        world
    }

    async fn beat(&self) {
        let sign = Heartbeat { worker: WORKER, facts: None, at: self.clock.now() + self.skew };
        self.runtime.store().beat(&sign).await.unwrap();
    }

    /// The scheduler's tick. It goes on until it has done what it can at this time.
    async fn tick(&self) -> JoinHandle<Result<()>> {
        let sweep = self.sweep.clone();
        let tick = tokio::spawn(async move { sweep.run().await });
        self.calm().await;
        tick
    }

    async fn pass(&self, seconds: i64) {
        self.clock.advance(TimeDelta::seconds(seconds));
        self.calm().await;
    }

    /// Lets everyone go on until all of them wait for the clock.
    async fn calm(&self) {
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
    }

    async fn task(&self) -> Task {
        self.runtime.store().run_tasks(self.run, None, None, 1).await.unwrap().remove(0).task
    }

    async fn is_held(&self) -> bool {
        let task = self.task().await;
        task.state == TaskState::Running && task.attempt == 1
    }

    async fn is_known(&self) -> bool {
        !self.runtime.store().silent(Instant::MAX_UTC, 9).await.unwrap().is_empty()
    }
}

#[tokio::test]
async fn a_worker_that_says_nothing_for_a_minute_is_dead() {
    let world = World::new(0).await;
    world.pass(40).await;
    assert!(world.tick().await.is_finished(), "nobody waits for a worker that may be well");
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
async fn a_worker_that_could_not_beat_while_the_store_was_away_lives() {
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
async fn a_sweep_that_is_cut_short_leaves_the_doubt_to_the_next() {
    let world = World::new(0).await;
    world.pass(600).await;
    let tick = world.tick().await;
    tick.abort();
    world.pass(60).await;
    let tick = world.tick().await;
    assert!(!tick.is_finished() && world.is_held().await, "the worker has its last chance again");
}

#[tokio::test]
async fn ticks_in_quick_succession_put_off_no_verdict() {
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
        world.calm().await;
        world.pass(2).await;
    }
    world.calm().await;
    assert_eq!((world.task().await.attempt, world.is_known().await), (2, false));
    for tick in ticks {
        tick.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_doubt_that_nobody_took_over_is_no_verdict_later() {
    let world = World::new(0).await;
    world.pass(600).await;
    let first = world.sweep.clone();
    let first = tokio::spawn(async move { first.tick().await });
    world.calm().await;
    // The second makes the first leave, and is cut off as soon as it has the turn.
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
async fn a_worker_whose_clock_is_slow_lives_while_it_beats_and_dies_when_it_does_not() {
    let world = World::new(-60).await;
    for _ in 0..3 {
        let tick = world.tick().await;
        for _ in 0..6 {
            world.pass(10).await;
            world.beat().await;
        }
        assert!(tick.is_finished(), "nobody stays for a worker that lives");
        assert!(world.is_held().await && world.is_known().await);
    }
    let tick = world.tick().await;
    world.pass(20).await;
    tick.await.unwrap().unwrap();
    assert_eq!(world.task().await.attempt, 2);
}

#[tokio::test]
async fn a_worker_whose_clock_is_fast_lives_no_longer_than_it_is_ahead() {
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
    world.runtime.store().farewell(WORKER).await.unwrap();
    world.tick().await.await.unwrap().unwrap();
    assert_eq!(world.task().await.attempt, 2);
}

#[tokio::test]
async fn a_worker_without_a_database_registers_beats_and_is_ended_by_message() {
    let world = World::new(0).await;
    let app = App::new(world.runtime.clone(), PushAuth::None);
    let router = crate::router(app);
    let (at, host, version) = (world.clock.now() + TimeDelta::hours(1), "far away".into(), "1".into());
    let (function, queue, since) = ("execute".into(), Some("heavy".into()), world.clock.now());
    let facts = WorkerFacts { function, queue, host, version, since, breakers: Vec::new() };
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
    let known = world.runtime.store().silent(Instant::MAX_UTC, 9).await.unwrap();
    assert_eq!(
        known,
        [Silence { worker: WORKER, heard_at: world.clock.now() }],
        "no heartbeat is from the future"
    );
    assert_eq!(world.memory.worker_facts(WORKER), Some(facts));
    let command = world.runtime.store().farewell(WORKER).await.unwrap().unwrap();
    assert_eq!((command.kind, command.reason.as_deref()), (WorkerCommandKind::Kill, Some("it hangs")));
}

//! Reconciliation: whatever is broken in the rows is seen and put right, once, by the sweep or by the doctor.

use std::sync::Arc;

use bus::SystemClock;
use chrono::TimeDelta;
use futures::StreamExt;
use model::{Clock, EventKind, Instant, RunId, RunState};
use runtime::Runtime;
use sqlx::Connection;
use store::{Fault, Postgres};
use testkit::ManualClock;

use crate::world::{World, request};

/// A world whose tasks nobody carries out, seen by a sweep whose clock is moved by hand.
struct Broken {
    world: World,
    clock: ManualClock,
    runtime: Arc<Runtime>,
    sweep: sweep::Sweep,
}

impl Broken {
    async fn new(graph: &str) -> Self {
        let world = World::new().await;
        let mut workflow = testkit::workflow(graph);
        workflow.tasks.iter_mut().for_each(|task| task.queue = "nobody".into());
        world.register(workflow).await;
        let clock = ManualClock::at(&SystemClock.now().to_rfc3339());
        let store = Arc::new(Postgres::connect(&world.database.url, 4).await.unwrap());
        let runtime = Arc::new(Runtime::new(store, Arc::new(world.broker.clone()), Arc::new(clock.clone())));
        let sweep = sweep::Sweep::new(runtime.clone());
        Self { world, clock, runtime, sweep }
    }

    async fn start(&self) -> RunId {
        self.runtime.start(request("example")).await.unwrap().record.run.id
    }

    async fn report(&self, run: RunId, task: u32) {
        self.report_attempt(run, task, 1).await;
    }

    async fn report_attempt(&self, run: RunId, task: u32, attempt: u32) {
        let result = model::message::TaskResult::Succeeded(serde_json::Value::Null);
        let (task, started_at) = (model::TaskIndex(task), self.clock.now());
        let report = engine::Command::Report { task, attempt, worker: None, started_at, result };
        self.runtime.settle(run, report).await.unwrap();
    }

    /// Breaks rows behind everybody's back.
    async fn break_rows(&self, sql: &'static str, run: RunId) {
        let mut connection = sqlx::PgConnection::connect(&self.world.database.url).await.unwrap();
        sqlx::query(sql).bind(run.0).execute(&mut connection).await.unwrap();
    }

    async fn faults(&self) -> Vec<Fault> {
        self.runtime
            .repairs()
            .inspect(None, 9)
            .await
            .unwrap()
            .0
            .into_iter()
            .map(|finding| finding.fault)
            .collect()
    }

    async fn sweep_after(&self, minutes: i64) -> Instant {
        self.clock.set(self.clock.now() + TimeDelta::minutes(minutes));
        self.sweep.run().await.unwrap();
        self.clock.now()
    }

    async fn repairs(&self, run: RunId) -> usize {
        let events = self.world.events(run).await;
        events.iter().filter(|event| event.kind == EventKind::RunRepaired).count()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_that_do_not_fit_the_tasks_are_counted_again_by_the_sweep() {
    let broken = Broken::new("a -> b").await;
    let run = broken.start().await;
    let right = broken.world.run(run).await.run.counts;
    broken.break_rows("update runs set counts = '{9,0,0,0,0,0,0,0,0,0,0,0}' where id = $1", run).await;
    assert!(broken.faults().await.contains(&Fault::WrongCounts));
    // A look at the run that is due brings the inspection with it.
    broken.sweep_after(2).await;
    assert_eq!((broken.world.run(run).await.run.counts, broken.repairs(run).await), (right, 1));
    broken.sweep_after(6).await;
    assert_eq!(broken.repairs(run).await, 1, "what is right is left alone");
    broken.report(run, 0).await;
    broken.report(run, 1).await;
    assert_eq!(broken.world.run(run).await.run.state, RunState::Succeeded);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_of_more_runs_than_one_look_reaches_is_put_right_by_the_same_sweep() {
    let broken = Broken::new("a").await;
    let starts = (0..1_001).map(|_| broken.start());
    let runs: Vec<RunId> = futures::stream::iter(starts).buffered(100).collect().await;
    let last = *runs.iter().max().unwrap();
    broken.break_rows("update runs set counts = '{9,0,0,0,0,0,0,0,0,0,0,0}' where id = $1", last).await;
    broken.sweep_after(2).await;
    assert_eq!(broken.repairs(last).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_tasks_have_all_ended_is_ended_by_the_sweep() {
    let broken = Broken::new("a").await;
    let run = broken.start().await;
    broken.break_rows("update tasks set state = 'succeeded', finished_at = since where run = $1", run).await;
    assert!(broken.faults().await.contains(&Fault::NotEnded));
    broken.sweep_after(2).await;
    assert_eq!(broken.world.run(run).await.run.state, RunState::Succeeded);
    assert_eq!(broken.faults().await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_is_ready_and_was_never_queued_is_dispatched_by_the_doctor() {
    let broken = Broken::new("a -> b").await;
    let run = broken.start().await;
    // As if whoever released it had only half written it; nobody will look at the run either.
    broken
        .break_rows(
            "update tasks set state = 'pending', attempt = 0, begun_at = null where run = $1 and idx = 0",
            run,
        )
        .await;
    broken
        .break_rows(
            "update runs set counts = '{2,0,0,0,0,0,0,0,0,0,0,0}', recheck_at = null where id = $1",
            run,
        )
        .await;
    broken.clock.set(broken.clock.now() + TimeDelta::minutes(3));
    assert_eq!(broken.faults().await, [Fault::AtRest, Fault::NoRecheck]);
    let findings = broken.runtime.repairs().inspect(None, 9).await.unwrap().0;
    assert_eq!(broken.runtime.repairs().repair(&findings).await.unwrap().len(), 1, "a run is put right once");
    assert_eq!(broken.world.states(run).await, ["dispatched", "pending"]);
    assert_eq!(broken.faults().await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_nobody_is_to_look_at_is_found_by_the_sweep_though_nothing_is_due() {
    let broken = Broken::new("a").await;
    // The first tick of a day looks for what has been kept long enough, and through everything.
    broken.sweep_after(0).await;
    let run = broken.start().await;
    broken.break_rows("update runs set recheck_at = null where id = $1", run).await;
    let is_looked_at =
        async || broken.runtime.store().agenda(broken.clock.now()).await.unwrap().recheck.is_some();
    assert!(!is_looked_at().await);
    broken.sweep_after(6).await;
    assert!(is_looked_at().await);
    // One that seems to wait, since what is noted about it is wrong, is found within a day.
    let asleep = "update runs set recheck_at = null, counts = '{0,0,0,0,1,0,0,0,0,0,0,0}' where id = $1";
    broken.break_rows(asleep, run).await;
    for _ in 0..5 {
        broken.sweep_after(60).await;
        assert!(!is_looked_at().await, "what only waits costs nothing");
    }
    broken.sweep_after(24 * 60).await;
    assert_eq!((is_looked_at().await, broken.repairs(run).await), (true, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timer_of_a_task_that_ended_is_dropped_by_the_sweep() {
    let broken = Broken::new("a").await;
    let run = broken.start().await;
    broken.report(run, 0).await;
    let sql = "insert into timers (run, idx, attempt, kind, wake_at) select $1, 0, 1, 'retry', finished_at from runs where id = $1";
    broken.break_rows(sql, run).await;
    let now = broken.sweep_after(2).await;
    assert_eq!(broken.runtime.store().due_timers(now, 9).await.unwrap(), []);
    assert_eq!(broken.repairs(run).await, 1);
    assert_eq!(broken.world.run(run).await.run.state, RunState::Succeeded);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispatched_task_that_nobody_took_is_announced_again() {
    let broken = Broken::new("a").await;
    let run = broken.start().await;
    broken.clock.set(broken.clock.now() + TimeDelta::minutes(10));
    assert_eq!(broken.faults().await, [Fault::OverdueRechecks, Fault::UnheardTasks]);
    let findings = broken.runtime.repairs().inspect(None, 9).await.unwrap().0;
    assert_eq!(broken.runtime.repairs().repair(&findings).await.unwrap().len(), 2);
    let again = |event: &&model::Event| event.kind == EventKind::TaskRedispatched;
    assert!(broken.world.events(run).await.iter().filter(again).count() >= 1);
    assert_eq!(broken.faults().await, [Fault::UnheardTasks], "until somebody takes it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_nothing_can_move_is_stalled_and_moves_on_once_a_person_has_its_task_done_anew() {
    let broken = Broken::new("a -> b").await;
    let run = broken.start().await;
    broken.report(run, 0).await;
    // As if `b` had never heard of the end of `a`.
    let forget = "update tasks set state = 'pending', attempt = 0, begun_at = null, parents_done = 0,
                  parents_succeeded = 0 where run = $1 and idx = 1";
    broken.break_rows(forget, run).await;
    broken.break_rows("update runs set counts = '{1,0,0,0,0,0,1,0,0,0,0,0}' where id = $1", run).await;
    broken.sweep_after(2).await;
    assert_eq!(broken.world.run(run).await.run.state, RunState::Stalled);
    let stalled = |event: &&model::Event| event.kind == EventKind::RunStalled;
    assert_eq!(broken.world.events(run).await.iter().filter(stalled).count(), 1, "and it is said once");

    let by = engine::By { actor: "ana".into(), reason: None };
    let operation = engine::Operation::Clear(model::TaskIndex(0));
    broken.runtime.settle(run, engine::Command::Operate { operation, by }).await.unwrap();
    assert_eq!(broken.world.run(run).await.run.state, RunState::Running);
    assert_eq!(broken.world.states(run).await, ["dispatched", "pending"]);
    broken.report_attempt(run, 0, 2).await;
    broken.report(run, 1).await;
    assert_eq!(broken.world.run(run).await.run.state, RunState::Succeeded);
}

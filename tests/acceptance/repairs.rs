//! Reconciliation: the sweep or the doctor finds inconsistent rows and repairs them once.

use std::sync::Arc;

use chrono::TimeDelta;
use futures::StreamExt;
use model::{Clock, EventKind, Instant, RunId, RunState};
use runtime::Runtime;
use sqlx::Connection;
use store::Fault;
use testkit::ManualClock;

use crate::world::World;

/// A world without workers, and a sweep whose clock the test moves.
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
        let clock = ManualClock::at(&world.now().to_rfc3339());
        let runtime = world.process(clock.clone()).await;
        let sweep = sweep::Sweep::new(runtime.clone());
        Self { world, clock, runtime, sweep }
    }

    async fn start(&self) -> RunId {
        self.runtime.start(testkit::start_run("example")).await.unwrap().record.run.id
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

    /// Changes rows directly, as a defect would.
    async fn break_rows(&self, sql: &'static str, run: RunId) {
        let mut connection = sqlx::PgConnection::connect(self.world.database_url()).await.unwrap();
        sqlx::query(sql).bind(run.0).execute(&mut connection).await.unwrap();
    }

    async fn faults(&self) -> Vec<Fault> {
        let (findings, _) = self.runtime.repairs().inspect(None, 9).await.unwrap();
        findings.into_iter().map(|finding| finding.fault).collect()
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
async fn the_sweep_recounts_counts_that_do_not_match_the_tasks() {
    let broken = Broken::new("a -> b").await;
    let run = broken.start().await;
    let right = broken.world.run(run).await.run.counts;
    broken.break_rows("update runs set counts = '{9,0,0,0,0,0,0,0,0,0,0,0}' where id = $1", run).await;
    assert!(broken.faults().await.contains(&Fault::WrongCounts));
    // A due recheck brings an inspection with it.
    broken.sweep_after(2).await;
    assert_eq!((broken.world.run(run).await.run.counts, broken.repairs(run).await), (right, 1));
    broken.sweep_after(6).await;
    assert_eq!(broken.repairs(run).await, 1, "a consistent run is left alone");
    broken.report(run, 0).await;
    broken.report(run, 1).await;
    assert_eq!(broken.world.run(run).await.run.state, RunState::Succeeded);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_sweep_repairs_the_last_of_more_runs_than_fit_into_one_page() {
    let broken = Broken::new("a").await;
    let starts = (0..1_001).map(|_| broken.start());
    let runs: Vec<RunId> = futures::stream::iter(starts).buffered(100).collect().await;
    let last = *runs.iter().max().unwrap();
    broken.break_rows("update runs set counts = '{9,0,0,0,0,0,0,0,0,0,0,0}' where id = $1", last).await;
    broken.sweep_after(2).await;
    assert_eq!(broken.repairs(last).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sweep_ends_a_run_whose_tasks_have_all_ended() {
    let broken = Broken::new("a").await;
    let run = broken.start().await;
    broken.break_rows("update tasks set state = 'succeeded', finished_at = since where run = $1", run).await;
    assert!(broken.faults().await.contains(&Fault::NotEnded));
    broken.sweep_after(2).await;
    assert_eq!(broken.world.run(run).await.run.state, RunState::Succeeded);
    assert_eq!(broken.faults().await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_dispatches_a_ready_task_that_was_never_queued() {
    let broken = Broken::new("a -> b").await;
    let run = broken.start().await;
    // As if its release had been written only in part. No recheck of the run is due either.
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
    assert_eq!(broken.runtime.repairs().repair(&findings).await.unwrap().len(), 1, "a run is repaired once");
    assert_eq!(broken.world.states(run).await, ["dispatched", "pending"]);
    assert_eq!(broken.faults().await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sweep_finds_a_run_without_a_recheck_although_nothing_is_due() {
    let broken = Broken::new("a").await;
    // The first tick of a day runs retention and inspects everything.
    broken.sweep_after(0).await;
    let run = broken.start().await;
    broken.break_rows("update runs set recheck_at = null where id = $1", run).await;
    let has_recheck =
        async || broken.runtime.store().agenda(broken.clock.now()).await.unwrap().recheck.is_some();
    assert!(!has_recheck().await);
    broken.sweep_after(6).await;
    assert!(has_recheck().await);
    // A run that only seems to wait, because its counts are wrong, is found within a day.
    let asleep = "update runs set recheck_at = null, counts = '{0,0,0,0,1,0,0,0,0,0,0,0}' where id = $1";
    broken.break_rows(asleep, run).await;
    for _ in 0..5 {
        broken.sweep_after(60).await;
        assert!(!has_recheck().await, "a run that waits costs nothing");
    }
    broken.sweep_after(24 * 60).await;
    assert_eq!((has_recheck().await, broken.repairs(run).await), (true, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sweep_deletes_the_timer_of_a_task_that_has_ended() {
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
async fn the_message_of_a_dispatched_task_that_no_worker_claims_is_published_again() {
    let broken = Broken::new("a").await;
    let run = broken.start().await;
    broken.clock.set(broken.clock.now() + TimeDelta::minutes(10));
    assert_eq!(broken.faults().await, [Fault::OverdueRechecks, Fault::UnclaimedTasks]);
    let findings = broken.runtime.repairs().inspect(None, 9).await.unwrap().0;
    assert_eq!(broken.runtime.repairs().repair(&findings).await.unwrap().len(), 2);
    let again = |event: &&model::Event| event.kind == EventKind::TaskRedispatched;
    assert!(broken.world.events(run).await.iter().filter(again).count() >= 1);
    assert_eq!(broken.faults().await, [Fault::UnclaimedTasks], "until a worker claims it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_nothing_can_move_is_stalled_and_continues_once_a_person_clears_its_task() {
    let broken = Broken::new("a -> b").await;
    let run = broken.start().await;
    broken.report(run, 0).await;
    // As if the end of `a` had not been propagated to `b`.
    let forget = "update tasks set state = 'pending', attempt = 0, begun_at = null, parents_done = 0,
                  parents_succeeded = 0 where run = $1 and idx = 1";
    broken.break_rows(forget, run).await;
    broken.break_rows("update runs set counts = '{1,0,0,0,0,0,1,0,0,0,0,0}' where id = $1", run).await;
    broken.sweep_after(2).await;
    assert_eq!(broken.world.run(run).await.run.state, RunState::Stalled);
    let stalled = |event: &&model::Event| event.kind == EventKind::RunStalled;
    assert_eq!(broken.world.events(run).await.iter().filter(stalled).count(), 1, "it is recorded once");

    let by = engine::By { actor: "ana".into(), reason: None };
    let operation = engine::Operation::Clear(model::TaskIndex(0));
    broken.runtime.settle(run, engine::Command::Operate { operation, by }).await.unwrap();
    assert_eq!(broken.world.run(run).await.run.state, RunState::Running);
    assert_eq!(broken.world.states(run).await, ["dispatched", "pending"]);
    broken.report_attempt(run, 0, 2).await;
    broken.report(run, 1).await;
    assert_eq!(broken.world.run(run).await.run.state, RunState::Succeeded);
}

//! Triggers on a real Postgres: of concurrent copies of an event one counts, and a process that dies at any step loses
//! and duplicates nothing.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use async_trait::async_trait;
use bus::SystemClock;
use chrono::TimeDelta;
use execute::{Executor, Runner, Worker};
use futures::future::join_all;
use model::message::{PollDue, PollTarget, RunFinished};
use model::{
    Clock, CloudEvent, EventKind, Message, RunId, RunState, TaskIndex, TaskKey, TenantId, TriggerKey,
};
use runtime::{StartRun, TriggerOutcome};
use serde_json::json;
use sqlx::{Connection, PgConnection};
use sweep::Sweep;

use crate::world::World;

const ON_EVENT: &str = "
name: on-event
inputs: {n: {type: integer}}
triggers: [{name: it-happened, event: happened, inputs: {n: '{{ event.data.n }}'}}]
tasks: [{name: a, type: noop}]
";

async fn runs(world: &World, workflow: &str) -> usize {
    world.runs(workflow).await.len()
}

fn happened(id: usize) -> CloudEvent {
    CloudEvent {
        id: id.to_string(),
        source: "/here".into(),
        kind: "happened".into(),
        data: json!({ "n": id }),
        ..CloudEvent::default()
    }
}

#[tokio::test]
async fn of_many_concurrent_copies_of_an_event_one_starts_a_run() {
    let world = World::new().await;
    world.write(ON_EVENT).await;
    let copies: Vec<CloudEvent> = (0..40).map(|copy| happened(copy % 5)).collect();
    let received = join_all(copies.iter().map(|event| world.runtime.triggers().receive(event))).await;
    let outcomes =
        received.into_iter().flat_map(|received| received.unwrap().outcomes).map(|(_, outcome)| outcome);
    let (started, others): (Vec<TriggerOutcome>, Vec<TriggerOutcome>) =
        outcomes.partition(|outcome| matches!(outcome, TriggerOutcome::Started(_)));
    assert_eq!((started.len(), others.len()), (5, 35));
    assert!(others.iter().all(|outcome| *outcome == TriggerOutcome::Before), "{others:?}");
    assert_eq!(runs(&world, "on-event").await, 5);
}

#[tokio::test]
async fn concurrent_messages_about_the_last_upstream_run_start_one_run() {
    let world = World::new().await;
    let join = "
name: join
triggers: [{name: both, workflows: [left, right]}]
tasks: [{name: a, type: noop}]
";
    let side = |name: &str| format!("name: {name}\ntasks: [{{name: a, type: noop}}]\n");
    let (left, right) = (side("left"), side("right"));
    world.write_all(&[join, &left, &right]).await;
    let now = SystemClock.now();
    let mut finished = Vec::new();
    for workflow in ["left", "right"] {
        let start = StartRun { logical_date: Some(now), ..testkit::start_run(workflow) };
        let run = world.runtime.start(start).await.unwrap().record.run.id;
        assert_eq!(world.state(run).await, RunState::Succeeded);
        let (tenant, workflow, state) = (TenantId::DEFAULT, workflow.to_owned(), RunState::Succeeded);
        finished.push(RunFinished { run, tenant, workflow, state, created_at: None, finished_at: now });
    }
    let following =
        finished.iter().cycle().take(10).map(|finished| world.runtime.triggers().follow(finished));
    for followed in join_all(following).await {
        followed.unwrap();
    }
    assert_eq!(runs(&world, "join").await, 1);
}

/// Polls a future at most this many times and drops it, as if its process had died there. Returns whether it completed.
async fn cut<T>(future: impl Future<Output = T>, polls: usize) -> bool {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        future.as_mut().poll(context).map(|_| true)
    })
    .await
}

/// A bus that loses every message, after a step at which the process may die.
struct LossyBus;

#[async_trait]
impl bus::Bus for LossyBus {
    async fn publish(&self, _: &[Message]) -> Result<(), bus::Error> {
        tokio::task::yield_now().await;
        Ok(())
    }

    async fn ping(&self) -> Result<(), bus::Error> {
        Ok(())
    }
}

fn poll_of_files() -> PollDue {
    let target = PollTarget::Trigger { workflow: "watched".into(), name: "files".into() };
    PollDue { tenant: TenantId::DEFAULT, queue: "light".into(), target }
}

#[tokio::test]
async fn a_process_that_dies_at_any_step_between_detection_and_trigger_loses_and_duplicates_nothing() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "name: watched\ninputs: {{path: {{type: string}}}}\ntriggers:\n  - name: files\n    sensor: {{file: {{path: '{}/*'}}, \
         max_events_per_hour: 10000}}\n    inputs: {{path: '{{{{ event.subject }}}}'}}\ntasks: [{{name: a, type: noop}}]\n",
        folder.path().display()
    );
    world.write(&text).await;
    let runtime = world.process_with(LossyBus, SystemClock, 4).await;
    let executor = Arc::new(Executor::new(
        runtime.clone(),
        Worker::new(runtime.clone()),
        Runner::new(runtime.clock().clone(), "."),
    ));
    let (mut polls, mut whole) = (0, 0);
    // Once it completes several times in a row, it has been cut at every earlier step.
    while whole < 3 {
        polls += 1;
        std::fs::write(folder.path().join(polls.to_string()), "x").unwrap();
        whole = if cut(executor.poll(&poll_of_files()), polls).await { whole + 1 } else { 0 };
        assert!(polls < 5_000, "it never completes");
    }
    // Files that were found and not settled are found again. Of two concurrent polls, one is late.
    for _ in 0..3 {
        let due = poll_of_files();
        let (one, other) = tokio::join!(executor.poll(&due), executor.poll(&due));
        one.unwrap();
        other.unwrap();
    }
    assert_eq!(runs(&world, "watched").await, polls, "a run for each file");
}

fn watching(folder: &std::path::Path) -> String {
    format!(
        "name: watched\ninputs: {{path: {{type: string, default: ''}}}}\ntriggers:\n  - name: files\n    sensor: {{file: {{path: \
         '{}/*'}}, interval_seconds: 60, max_events_per_hour: 10000}}\n    inputs: {{path: '{{{{ event.subject }}}}'}}\n  \
         - {{name: calm, event: happened, debounce_seconds: 1}}\ntasks: [{{name: a, type: noop}}]\n",
        folder.display()
    )
}

#[tokio::test]
async fn a_sweep_that_dies_at_any_step_of_firing_triggers_loses_and_duplicates_nothing() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    world.write(&watching(folder.path())).await;
    let dying = world.process_with(LossyBus, SystemClock, 4).await;
    let (mut polls, mut whole, mut now) = (0, 0, SystemClock.now());
    while whole < 3 {
        polls += 1;
        std::fs::write(folder.path().join(polls.to_string()), "x").unwrap();
        world.runtime.triggers().receive(&happened(polls)).await.unwrap();
        // It dies or its messages are lost: no poll happens, and the debounced event is released or not.
        now += TimeDelta::minutes(2);
        whole = if cut(dying.triggers().fire_due(now, 10), polls).await { whole + 1 } else { 0 };
        // The next sweep fires again.
        now += TimeDelta::minutes(2);
        world.runtime.triggers().fire_due(now, 10).await.unwrap();
        world.bus.idle().await;
        assert_eq!(runs(&world, "watched").await, 2 * polls, "for each file and each event, cut at {polls}");
        assert!(polls < 5_000, "it never completes");
    }
}

#[tokio::test]
async fn a_process_that_polls_for_a_task_and_dies_at_any_step_loses_and_duplicates_nothing() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "name: waiting\ntasks:\n  - {{name: poll, type: sensor, config: {{file: {{path: '{}/ready'}}, interval_seconds: 3600}}}}\n  \
         - {{name: after, type: noop, depends_on: [poll]}}\n",
        folder.path().display()
    );
    world.write(&text).await;
    let runtime = world.process_with(LossyBus, SystemClock, 4).await;
    let executor = Arc::new(Executor::new(
        runtime.clone(),
        Worker::new(runtime.clone()),
        Runner::new(runtime.clock().clone(), "."),
    ));
    let (mut polls, mut whole) = (0, 0);
    while whole < 3 {
        polls += 1;
        let run = world.start("waiting").await;
        world.bus.idle().await;
        assert_eq!(world.states(run).await, ["sleeping", "pending"]);
        std::fs::write(folder.path().join("ready"), "x").unwrap();
        let key = TaskKey { run, task: TaskIndex(0) };
        let (version, since) = (world.run(run).await.run.version, SystemClock.now());
        let target = PollTarget::Task { key, attempt: 1, version, child: None, since, failed: false };
        let due = PollDue { tenant: TenantId::DEFAULT, queue: "light".into(), target };
        whole = if cut(executor.poll(&due), polls).await { whole + 1 } else { 0 };
        // The next timer polls again, unless the report was written.
        wake(&world, run).await;
        let recheck = engine::Command::Recheck { claim_timeout: TimeDelta::zero(), served: None };
        world.runtime.settle(run, recheck).await.unwrap();
        world.bus.idle().await;
        assert_eq!(world.states(run).await, ["succeeded", "succeeded"], "cut at {polls}");
        let ends = world.events(run).await.into_iter().filter(|event| event.kind == EventKind::TaskSucceeded);
        assert_eq!(ends.count(), 2, "each task has ended once, cut at {polls}");
        std::fs::remove_file(folder.path().join("ready")).unwrap();
        assert!(polls < 5_000, "it never completes");
    }
}

#[tokio::test]
async fn concurrent_sweeps_request_one_poll_and_release_one_event() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a"), "x").unwrap();
    let text = format!(
        "name: watched\ntriggers:\n  - name: files\n    sensor: {{file: {{path: '{}/*'}}, interval_seconds: 3600}}\n  \
         - {{name: calm, event: happened, debounce_seconds: 1}}\ntasks: [{{name: a, type: noop}}]\n",
        folder.path().display()
    );
    world.write(&text).await;
    let key =
        |name: &str| TriggerKey { tenant: TenantId::DEFAULT, workflow: "watched".into(), name: name.into() };
    for id in 0..3 {
        world.runtime.triggers().receive(&happened(id)).await.unwrap();
    }
    let later = SystemClock.now() + TimeDelta::seconds(2);
    let fired = join_all((0..4).map(|_| world.runtime.triggers().fire_due(later, 10))).await;
    assert!(fired.into_iter().all(|fired| fired.is_ok()));
    world.bus.idle().await;
    assert_eq!(runs(&world, "watched").await, 2, "one for the file, one for the last event");
    let noted = "select count(*) from trigger_events where name = 'calm'";
    let mut connection = PgConnection::connect(world.database_url()).await.unwrap();
    let noted: i64 = sqlx::query_scalar(noted).fetch_one(&mut connection).await.unwrap();
    assert_eq!(noted, 3);
    assert!(world.store().trigger(&key("files")).await.unwrap().unwrap().due_at > Some(later));
    Sweep::new(world.runtime.clone()).run().await.unwrap();
    world.bus.idle().await;
    assert_eq!(runs(&world, "watched").await, 2);
}

#[tokio::test]
async fn a_task_with_a_sensor_sleeps_until_the_file_exists() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ready");
    let text = format!(
        "name: waiting\ntasks:\n  - {{name: poll, type: sensor, config: {{file: {{path: {}}}, interval_seconds: 3600}}}}\n  \
         - {{name: after, type: echo, depends_on: [poll], config: {{size: '{{{{ outputs.poll.files[0].size }}}}'}}}}\n",
        path.display()
    );
    world.write(&text).await;
    let run = world.start("waiting").await;
    world.bus.idle().await;
    assert_eq!(world.states(run).await, ["sleeping", "pending"]);
    std::fs::write(&path, "abc").unwrap();
    wake(&world, run).await;
    assert_eq!(world.states(run).await, ["succeeded", "succeeded"]);
    assert_eq!(world.output(run, 1).await, json!({"size": 3}));
    assert_eq!(world.run(run).await.run.state, RunState::Succeeded);
}

/// Fires the timer of the run's first task.
async fn wake(world: &World, run: RunId) {
    let wake =
        engine::Command::Wake { task: Some(model::TaskIndex(0)), attempt: 1, kind: model::TimerKind::Sleep };
    world.runtime.settle(run, wake).await.unwrap();
    world.bus.idle().await;
}

//! Triggers on a real Postgres: of many copies at once one counts, and a process that ends at any step loses and doubles
//! nothing.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use async_trait::async_trait;
use bus::SystemClock;
use chrono::TimeDelta;
use execute::{Executor, Worker};
use futures::future::join_all;
use language::FileKind;
use model::message::{PollDue, RunFinished, Watch};
use model::{
    Clock, CloudEvent, EventKind, Message, RunId, RunState, TaskIndex, TaskKey, TenantId, TriggerKey,
};
use runtime::{Heard, Runtime, StartRun};
use serde_json::json;
use store::RunFilter;
use sweep::Sweep;

use crate::world::{World, request};

const ON_EVENT: &str = "
name: on-event
inputs: {n: {type: integer}}
triggers: [{name: it-happened, event: happened, inputs: {n: '{{ event.data.n }}'}}]
tasks: [{name: a, type: noop}]
";

async fn runs(world: &World, workflow: &str) -> usize {
    let filter = RunFilter { workflow: Some(workflow.into()), limit: 1_000, ..RunFilter::default() };
    world.runtime.store().runs(TenantId::DEFAULT, &filter).await.unwrap().len()
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
async fn of_many_copies_of_an_event_at_once_one_starts_a_run() {
    let world = World::new().await;
    world.write(&[(FileKind::Workflow, ON_EVENT)]).await;
    let copies: Vec<CloudEvent> = (0..40).map(|copy| happened(copy % 5)).collect();
    let received = join_all(copies.iter().map(|event| world.runtime.triggers().receive(event))).await;
    let heard = received.into_iter().flat_map(|received| received.unwrap().heard).map(|(_, heard)| heard);
    let (started, others): (Vec<Heard>, Vec<Heard>) =
        heard.partition(|heard| matches!(heard, Heard::Started(_)));
    assert_eq!((started.len(), others.len()), (5, 35));
    assert!(others.iter().all(|heard| *heard == Heard::Before), "{others:?}");
    assert_eq!(runs(&world, "on-event").await, 5);
}

#[tokio::test]
async fn two_who_hear_of_the_last_upstream_run_at_once_start_one_run() {
    let world = World::new().await;
    let join = "
name: join
triggers: [{name: both, workflows: [left, right]}]
tasks: [{name: a, type: noop}]
";
    let side = |name: &str| format!("name: {name}\ntasks: [{{name: a, type: noop}}]\n");
    let (left, right) = (side("left"), side("right"));
    world
        .write(&[(FileKind::Workflow, join), (FileKind::Workflow, &left), (FileKind::Workflow, &right)])
        .await;
    let now = SystemClock.now();
    let mut finished = Vec::new();
    for workflow in ["left", "right"] {
        let start = StartRun { logical_date: Some(now), ..request(workflow) };
        let run = world.runtime.start(start).await.unwrap().record.run.id;
        assert_eq!(world.state(run).await, RunState::Succeeded);
        let (tenant, workflow, state) = (TenantId::DEFAULT, workflow.to_owned(), RunState::Succeeded);
        finished.push(RunFinished { run, tenant, workflow, state, created_at: None, finished_at: now });
    }
    let told = finished.iter().cycle().take(10).map(|finished| world.runtime.triggers().follow(finished));
    for told in join_all(told).await {
        told.unwrap();
    }
    assert_eq!(runs(&world, "join").await, 1);
}

/// Polls a future so many times at most, and drops it then, as if its process had ended there. Answers whether it came to
/// its end.
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

/// A bus that loses what it is given: whatever is published after a commit never arrives.
struct Void;

#[async_trait]
impl bus::Bus for Void {
    async fn publish(&self, _: &[Message]) -> Result<(), bus::Error> {
        tokio::task::yield_now().await;
        Ok(())
    }

    async fn ping(&self) -> Result<(), bus::Error> {
        Ok(())
    }
}

fn eye() -> PollDue {
    let watch = Watch::Trigger { workflow: "watched".into(), name: "eye".into() };
    PollDue { tenant: TenantId::DEFAULT, queue: "light".into(), watch }
}

#[tokio::test]
async fn a_process_that_ends_at_any_step_between_detection_and_trigger_loses_and_doubles_nothing() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "name: watched\ninputs: {{path: {{type: string}}}}\ntriggers:\n  - name: eye\n    sensor: {{file: {{path: '{}/*'}}, \
         max_events_per_hour: 10000}}\n    inputs: {{path: '{{{{ event.subject }}}}'}}\ntasks: [{{name: a, type: noop}}]\n",
        folder.path().display()
    );
    world.write(&[(FileKind::Workflow, &text)]).await;
    let store = world.runtime.store().clone();
    let runtime = Arc::new(Runtime::new(store, Arc::new(Void), Arc::new(SystemClock)));
    let executor = Arc::new(Executor::new(runtime.clone(), Worker::new(runtime), "."));
    let (mut polls, mut whole) = (0, 0);
    // Once it comes to its end several times in a row, every step before has been cut.
    while whole < 3 {
        polls += 1;
        std::fs::write(folder.path().join(polls.to_string()), "x").unwrap();
        whole = if cut(executor.poll(&eye()), polls).await { whole + 1 } else { 0 };
        assert!(polls < 5_000, "it never comes to its end");
    }
    // What was found and not settled is found again; of two who look at once, one is late.
    for _ in 0..3 {
        let due = eye();
        let (one, other) = tokio::join!(executor.poll(&due), executor.poll(&due));
        one.unwrap();
        other.unwrap();
    }
    assert_eq!(runs(&world, "watched").await, polls, "a run for each file");
}

fn watching(folder: &std::path::Path) -> String {
    format!(
        "name: watched\ninputs: {{path: {{type: string, default: ''}}}}\ntriggers:\n  - name: eye\n    sensor: {{file: {{path: \
         '{}/*'}}, interval_seconds: 60, max_events_per_hour: 10000}}\n    inputs: {{path: '{{{{ event.subject }}}}'}}\n  \
         - {{name: calm, event: happened, debounce_seconds: 1}}\ntasks: [{{name: a, type: noop}}]\n",
        folder.display()
    )
}

#[tokio::test]
async fn a_sweep_that_ends_at_any_step_of_attending_to_triggers_loses_and_doubles_nothing() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    world.write(&[(FileKind::Workflow, &watching(folder.path()))]).await;
    let dying = Runtime::new(world.runtime.store().clone(), Arc::new(Void), Arc::new(SystemClock));
    let (mut polls, mut whole, mut now) = (0, 0, SystemClock.now());
    while whole < 3 {
        polls += 1;
        std::fs::write(folder.path().join(polls.to_string()), "x").unwrap();
        world.runtime.triggers().receive(&happened(polls)).await.unwrap();
        // It dies, or what it publishes is lost: nobody looks, and the event that is held goes or does not.
        now += TimeDelta::minutes(2);
        whole = if cut(dying.triggers().fire_due(now, 10), polls).await { whole + 1 } else { 0 };
        // The next one asks again.
        now += TimeDelta::minutes(2);
        world.runtime.triggers().fire_due(now, 10).await.unwrap();
        world.broker.idle().await;
        assert_eq!(runs(&world, "watched").await, 2 * polls, "for each file and each event, cut at {polls}");
        assert!(polls < 5_000, "it never comes to its end");
    }
}

#[tokio::test]
async fn whoever_looks_for_a_task_and_ends_at_any_step_loses_and_doubles_nothing() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "name: waiting\ntasks:\n  - {{name: look, type: sensor, config: {{file: {{path: '{}/ready'}}, interval_seconds: 3600}}}}\n  \
         - {{name: after, type: noop, depends_on: [look]}}\n",
        folder.path().display()
    );
    world.write(&[(FileKind::Workflow, &text)]).await;
    let store = world.runtime.store().clone();
    let runtime = Arc::new(Runtime::new(store.clone(), Arc::new(Void), Arc::new(SystemClock)));
    let executor = Arc::new(Executor::new(runtime.clone(), Worker::new(runtime), "."));
    let (mut polls, mut whole) = (0, 0);
    while whole < 3 {
        polls += 1;
        let run = world.trigger("waiting").await;
        world.broker.idle().await;
        assert_eq!(world.states(run).await, ["sleeping", "pending"]);
        std::fs::write(folder.path().join("ready"), "x").unwrap();
        let key = TaskKey { run, task: TaskIndex(0) };
        let (version, since) = (world.run(run).await.run.version, SystemClock.now());
        let watch = Watch::Task { key, attempt: 1, version, child: None, since, failed: false };
        let due = PollDue { tenant: TenantId::DEFAULT, queue: "light".into(), watch };
        whole = if cut(executor.poll(&due), polls).await { whole + 1 } else { 0 };
        // The next timer asks again; where the report was written, there is nothing left to look for.
        wake(&world, run).await;
        let recheck = engine::Command::Recheck { patience: TimeDelta::zero() };
        world.runtime.settle(run, recheck).await.unwrap();
        world.broker.idle().await;
        assert_eq!(world.states(run).await, ["succeeded", "succeeded"], "cut at {polls}");
        let ends = world.events(run).await.into_iter().filter(|event| event.kind == EventKind::TaskSucceeded);
        assert_eq!(ends.count(), 2, "each has ended once, cut at {polls}");
        std::fs::remove_file(folder.path().join("ready")).unwrap();
        assert!(polls < 5_000, "it never comes to its end");
    }
}

#[tokio::test]
async fn two_sweeps_at_once_ask_for_one_look_and_let_one_event_go() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a"), "x").unwrap();
    let text = format!(
        "name: watched\ntriggers:\n  - name: eye\n    sensor: {{file: {{path: '{}/*'}}, interval_seconds: 3600}}\n  \
         - {{name: calm, event: happened, debounce_seconds: 1}}\ntasks: [{{name: a, type: noop}}]\n",
        folder.path().display()
    );
    world.write(&[(FileKind::Workflow, &text)]).await;
    let key =
        |name: &str| TriggerKey { tenant: TenantId::DEFAULT, workflow: "watched".into(), name: name.into() };
    for id in 0..3 {
        world.runtime.triggers().receive(&happened(id)).await.unwrap();
    }
    let later = SystemClock.now() + TimeDelta::seconds(2);
    let attended = join_all((0..4).map(|_| world.runtime.triggers().fire_due(later, 10))).await;
    assert!(attended.into_iter().all(|attended| attended.is_ok()));
    world.broker.idle().await;
    assert_eq!(runs(&world, "watched").await, 2, "one for the file, one for the last event");
    let events = world.runtime.store().trigger_events(&key("calm"), 10).await.unwrap();
    assert_eq!(events.len(), 3);
    assert!(world.runtime.store().trigger(&key("eye")).await.unwrap().unwrap().due_at > Some(later));
    Sweep::new(world.runtime.clone()).run().await.unwrap();
    world.broker.idle().await;
    assert_eq!(runs(&world, "watched").await, 2);
}

#[tokio::test]
async fn a_sensor_of_a_task_sleeps_until_what_it_waits_for_is_there() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ready");
    let text = format!(
        "name: waiting\ntasks:\n  - {{name: look, type: sensor, config: {{file: {{path: {}}}, interval_seconds: 3600}}}}\n  \
         - {{name: after, type: echo, depends_on: [look], config: {{size: '{{{{ outputs.look.files[0].size }}}}'}}}}\n",
        path.display()
    );
    world.write(&[(FileKind::Workflow, &text)]).await;
    let run = world.trigger("waiting").await;
    world.broker.idle().await;
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
    world.broker.idle().await;
}

//! Reports about leased attempts: what they cost, and until when they count.

use std::fmt;
use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use engine::Command;
use model::message::TaskResult;
use model::{RunId, TaskIndex, WorkerId};
use runtime::Settled;
use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::span;

use super::{lease, leased, register, remote, start_many};
use crate::world::World;

const TASK: TaskIndex = TaskIndex(0);

/// The statements that are executed while it listens.
#[derive(Clone, Default)]
struct Statements(Arc<Mutex<Vec<String>>>);

impl Statements {
    fn take(&self) -> Vec<String> {
        let mut statements = std::mem::take(&mut *self.0.lock().unwrap());
        statements.sort();
        statements
    }
}

impl Visit for Statements {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "summary" {
            self.0.lock().unwrap().push(format!("{value:?}"));
        }
    }
}

impl tracing::Subscriber for Statements {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "sqlx::query"
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// The only worker that is registered.
async fn only_worker(world: &World) -> WorkerId {
    let workers = world.runtime.store().silent(model::Instant::MAX_UTC, 9).await.unwrap();
    let [silence] = workers.as_slice() else { panic!("{} workers", workers.len()) };
    silence.worker
}

async fn complete(world: &World, run: RunId) -> (StatusCode, Value) {
    let body = json!({"worker": "w", "output": 7}).to_string();
    let answer = world.post(&format!("/execution/{run}/x/1/complete"), body).await;
    (answer.status, answer.body["error_code"].clone())
}

#[tokio::test]
async fn the_first_report_of_a_leased_attempt_reads_nothing_that_settling_it_does_not() {
    let world = World::on_machine_time().await;
    let other = world.another_process().await;
    register(&world, &remote("far", "queue: remote")).await;
    let runs = start_many(&world, "far", 5).await;
    assert_eq!(leased(&world, json!({"limit": 5})).await.len(), 5);
    let worker = only_worker(&world).await;
    let [filling, filling_other, settled, reported, reported_elsewhere]: [RunId; 5] =
        runs.try_into().unwrap();
    for (world, run) in [(&world, filling), (&other, filling_other)] {
        assert_eq!(complete(world, run).await.0, StatusCode::OK, "it fills caches");
    }
    let statements = Statements::default();
    let _subscribed = testkit::subscribe(statements.clone());
    let result = TaskResult::Succeeded(json!(7));
    let report =
        Command::Report { task: TASK, attempt: 1, worker: Some(worker), started_at: world.now(), result };
    assert_eq!(world.runtime.settle(settled, report).await.unwrap(), Settled::Applied);
    world.runtime.workers().count_done(worker).await.unwrap();
    let settling = statements.take();
    assert!(!settling.is_empty());
    assert_eq!(complete(&world, reported).await.0, StatusCode::OK);
    assert_eq!(statements.take(), settling);
    assert_eq!(complete(&other, reported_elsewhere).await.0, StatusCode::OK);
    let elsewhere = statements.take();
    assert!(
        elsewhere.len() > settling.len(),
        "a process that did not lease it reads the task: {elsewhere:?}"
    );
}

#[tokio::test]
async fn a_success_counts_after_a_loss_until_another_worker_has_the_next_attempt() {
    for (is_reassigned, elsewhere) in [(false, false), (false, true), (true, false), (true, true)] {
        let world = World::on_machine_time().await;
        let other = world.another_process().await;
        let process = if elsewhere { &other } else { &world };
        register(&world, &remote("far", "queue: remote, retry_policy: {max_retries: 2}")).await;
        let run = world.start_of("far", json!({})).await;
        assert_eq!(leased(&world, json!({})).await, ["far"]);
        let worker = only_worker(&world).await;
        let lost = Command::Lose { task: TASK, attempt: 1, worker };
        assert_eq!(world.runtime.settle(run, lost).await.unwrap(), Settled::Applied);
        if is_reassigned {
            assert_eq!(lease(&world, json!({"worker": "other"})).await["items"][0]["attempt"], 2);
        }
        let (expected, state) = match is_reassigned {
            false => ((StatusCode::OK, Value::Null), "succeeded"),
            true => ((StatusCode::CONFLICT, json!("attempt_lost")), "running"),
        };
        for _ in 0..2 {
            assert_eq!(complete(process, run).await, expected, "reassigned: {is_reassigned}");
        }
        assert_eq!(world.get(&format!("/runs/{run}/tasks/x")).await.body["state"], state);
        let events = world.get(&format!("/runs/{run}/events?limit=100")).await.body;
        let events = events["items"].as_array().unwrap().iter();
        let succeeded = events.filter(|event| event["type"] == "task.succeeded").count();
        assert_eq!(succeeded, usize::from(!is_reassigned));
        assert_eq!(leased(&world, json!({})).await, [""; 0], "nobody gets it again");
        if !is_reassigned {
            let attempts = world.get(&format!("/runs/{run}/tasks/x/attempts")).await.body;
            let shown = |number: usize, what: &str| attempts["items"][number][what].clone();
            assert_eq!((shown(0, "state"), shown(0, "worker")), (json!("succeeded"), json!(worker)));
            assert_eq!(shown(1, "state"), "cancelled");
        }
    }
}

#[tokio::test]
async fn a_lost_attempt_of_a_task_that_a_person_ended_is_not_completed() {
    let world = World::new().await;
    register(&world, &remote("far", "queue: remote, retry_policy: {max_retries: 2}")).await;
    for (path, body) in [("cancel", "{}"), ("tasks/x/succeed", "{}")] {
        let run = world.start_of("far", json!({})).await;
        assert_eq!(leased(&world, json!({})).await, ["far"]);
        let lost = Command::Lose { task: TASK, attempt: 1, worker: only_worker(&world).await };
        assert_eq!(world.runtime.settle(run, lost).await.unwrap(), Settled::Applied);
        let ended = world.post(&format!("/runs/{run}/{path}"), body).await;
        assert_eq!(ended.status, StatusCode::OK, "{}", ended.body);
        assert_eq!(complete(&world, run).await, (StatusCode::CONFLICT, json!("attempt_lost")), "{path}");
    }
}

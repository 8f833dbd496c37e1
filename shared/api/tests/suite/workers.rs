use axum::http::StatusCode;
use chrono::TimeDelta;
use engine::Command;
use model::{OpenBreaker, TaskIndex, WorkerFacts, WorkerId};
use runtime::{Liveness, Settings, Settled};
use serde_json::json;
use store::Heartbeat;
use uuid::Uuid;

use crate::world::{World, now};

const BUSY: WorkerId = WorkerId(Uuid::from_u128(7));

/// A worker that holds the first task of a run, and one whose last heartbeat is long ago.
async fn world() -> World {
    let world = World::with_hello().await;
    let facts = WorkerFacts {
        function: "execute".into(),
        queue: Some("light".into()),
        host: "machine-1".into(),
        version: "1.2.3".into(),
        since: now() - TimeDelta::hours(1),
        breakers: vec![OpenBreaker { host: "api.example".into(), since: now(), until: now() }],
        remote: None,
    };
    let silent = now() - TimeDelta::seconds(60);
    for (worker, facts, at) in [(BUSY, Some(facts), now()), (WorkerId(Uuid::from_u128(8)), None, silent)] {
        world.runtime.store().beat(&Heartbeat { worker, facts, at }).await.unwrap();
    }
    let run = world.start().await;
    let claim = Command::Claim { task: TaskIndex(0), attempt: 1, worker: BUSY };
    assert_eq!(world.runtime.settle(run, claim).await.unwrap(), Settled::Applied);
    world
}

#[tokio::test]
async fn workers_are_listed_with_facts_and_attempts() {
    let answer = world().await.get("/workers").await;
    assert_eq!(answer.status, StatusCode::OK);
    insta::assert_json_snapshot!(answer.body, {
        ".items[].attempts[].run" => "[run]", ".items[].attempts[].link" => "[link]",
    });
    let held = &answer.body["items"][0]["attempts"][0];
    let link = format!("/api/v1/runs/{}/tasks/greet", held["run"].as_str().unwrap());
    assert_eq!(held["link"], link);
}

#[tokio::test]
async fn a_silent_worker_is_dead_after_the_time_that_the_installation_sets() {
    let liveness = Liveness { dead_after: TimeDelta::seconds(120), ..Liveness::default() };
    let world = World::with_settings(Settings { liveness, ..Settings::default() }).await;
    for (worker, silent_for) in [(1, 119), (2, 120)] {
        let at = now() - TimeDelta::seconds(silent_for);
        let sign = Heartbeat { worker: WorkerId(Uuid::from_u128(worker)), facts: None, at };
        world.runtime.store().beat(&sign).await.unwrap();
    }
    let workers = world.get("/workers").await.body;
    assert_eq!(
        (&workers["items"][0]["state"], &workers["items"][1]["state"]),
        (&json!("idle"), &json!("dead"))
    );
}

#[tokio::test]
async fn a_worker_command_has_an_actor_and_a_reason() {
    let world = world().await;
    for (command, state) in
        [("drain", "draining"), ("drain", "draining"), ("kill", "killed"), ("kill", "killed")]
    {
        let body = json!({"reason": "it hangs"}).to_string();
        let answer = world.post(&format!("/workers/{BUSY}/{command}"), body).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        assert_eq!(answer.body["state"], state);
        let command = json!({"kind": command, "actor": "ada@example.com", "reason": "it hangs", "at": now()});
        assert_eq!(answer.body["command"], command);
    }
}

#[tokio::test]
async fn a_worker_that_is_to_be_killed_cannot_be_drained() {
    let world = world().await;
    world.post(&format!("/workers/{BUSY}/kill"), "").await;
    let answer = world.post(&format!("/workers/{BUSY}/drain"), "").await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert_eq!(answer.body["error_code"], "already_commanded");
    assert_eq!(answer.body["details"]["kind"], "kill");
}

#[tokio::test]
async fn an_unknown_worker_gets_no_command() {
    let world = world().await;
    let answer = world.post(&format!("/workers/{}/kill", Uuid::from_u128(9)), "").await;
    assert_eq!((answer.status, &answer.body["error_code"]), (StatusCode::NOT_FOUND, &json!("not_found")));
    assert_eq!(world.post("/workers/nobody/kill", "").await.status, StatusCode::NOT_FOUND);
    let typo = world.post(&format!("/workers/{BUSY}/kill"), r#"{"because": "x"}"#).await;
    assert_eq!(typo.status, StatusCode::BAD_REQUEST);
}

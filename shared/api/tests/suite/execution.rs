//! The worker protocol: attempts that programs elsewhere carry out.

use axum::http::StatusCode;
use engine::Command;
use model::{RunId, WorkerCommand, WorkerCommandKind, WorkerId};
use runtime::Settled;
use serde_json::{Value, json};

use crate::world::{Answer, World, now};

const REMOTE: &str = "
name: far
inputs: {who: {type: string, default: world}}
tasks:
  - name: greet
    type: echo
    queue: remote-gpu
    config: {value: \"hello {{ inputs.who }}\"}
    retry_policy: {max_retries: 2, initial_delay_seconds: 1, jitter: 0}
  - {name: near, type: noop}
";

struct Far {
    world: World,
    run: RunId,
}

impl Far {
    async fn new() -> Self {
        let world = World::new().await;
        let run = world.play(REMOTE, json!({})).await;
        Self { world, run }
    }

    async fn lease(&self, worker: &str) -> Value {
        let body = json!({"worker": worker, "queue": "remote-gpu", "limit": 5}).to_string();
        let answer = self.world.post("/execution/lease", body).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        answer.body
    }

    async fn report(&self, attempt: u32, what: &str, body: Value) -> Answer {
        self.world.post(&format!("/execution/{}/greet/{attempt}/{what}", self.run), body.to_string()).await
    }

    async fn attempts(&self) -> Vec<Value> {
        let page = self.world.get(&format!("/runs/{}/tasks/greet/attempts", self.run)).await.body;
        page["items"].as_array().unwrap().clone()
    }

    async fn task(&self) -> Value {
        self.world.get(&format!("/runs/{}/tasks/greet", self.run)).await.body
    }
}

#[tokio::test]
async fn a_remote_worker_executes_what_waits_in_its_queue() {
    let far = Far::new().await;
    let leased = far.lease("w1").await;
    let item = &leased["items"][0];
    assert_eq!(leased["items"].as_array().unwrap().len(), 1, "other queues are not its own");
    assert_eq!(
        (&item["task"], &item["attempt"], &item["config"], &item["checkpoint"]),
        (&json!("greet"), &json!(1), &json!({"value": "hello world"}), &json!(null))
    );
    let input = &item["input"];
    assert_eq!(input["inputs"], json!({"who": "world"}));
    assert_eq!(
        (&input["tenant"], &input["workflow"], &input["labels"], &input["checkpoint"]),
        (&json!("default"), &json!("far"), &json!({}), &json!(null))
    );
    assert_eq!(input["data_interval"], json!({"start": input["logical_date"], "end": input["logical_date"]}));
    assert_eq!(far.task().await["state"], "running");
    assert_eq!(far.lease("w2").await["items"], json!([]), "it is taken");
    let held = far.world.post("/execution/heartbeat", r#"{"worker": "w1"}"#).await.body;
    assert_eq!(held, json!({"held": [{"run": far.run, "task": "greet", "attempt": 1}], "command": null}));
    let line = json!({"at": "2027-01-15T08:00:00Z", "stream": "stdout", "level": "info", "line": "hi"});
    let logged = far.report(1, "log", json!({"worker": "w1", "first": 0, "lines": [line]})).await;
    assert_eq!(logged.status, StatusCode::OK, "{}", logged.body);
    assert_eq!(
        far.report(1, "complete", json!({"worker": "w1", "output": {"n": 1}})).await.status,
        StatusCode::OK
    );
    let task = far.task().await;
    assert_eq!((&task["state"], &task["output"]), (&json!("succeeded"), &json!({"n": 1})));
    let log = far.world.get(&format!("/runs/{}/tasks/greet/logs", far.run)).await.body;
    assert_eq!(log["items"], json!([line]));
}

#[tokio::test]
async fn what_is_not_ones_own_is_refused() {
    let far = Far::new().await;
    far.lease("w1").await;
    for (attempt, worker) in [(1, "w2"), (2, "w1"), (0, "w1")] {
        let refused = far.report(attempt, "complete", json!({"worker": worker})).await;
        assert_eq!(
            (refused.status, &refused.body["error_code"]),
            (StatusCode::CONFLICT, &json!("attempt_lost")),
            "{attempt} {worker}"
        );
    }
    assert_eq!(far.report(1, "fail", json!({"worker": "w1", "message": "no"})).await.status, StatusCode::OK);
    assert_eq!(far.report(1, "complete", json!({"worker": "w1"})).await.status, StatusCode::CONFLICT);
    assert_eq!(far.report(1, "release", json!({"worker": "w1"})).await.status, StatusCode::CONFLICT);
    assert_eq!(far.task().await["state"], "up_for_retry");
}

#[tokio::test]
async fn a_new_attempt_does_not_show_the_error_of_the_one_before() {
    let far = Far::new().await;
    far.lease("w1").await;
    far.report(1, "fail", json!({"worker": "w1", "message": "no luck"})).await;
    far.world.post(&format!("/runs/{}/tasks/greet/wake", far.run), "").await;
    let attempts = far.attempts().await;
    assert_eq!(attempts.len(), 2);
    assert_eq!(attempts[0]["error"]["message"], "no luck");
    assert_eq!((&attempts[1]["state"], &attempts[1]["error"]), (&json!("dispatched"), &json!(null)));
}

#[tokio::test]
async fn the_last_attempt_keeps_its_worker_and_the_decision_about_it() {
    let far = Far::new().await;
    far.lease("w1").await;
    let worker = far.attempts().await[0]["worker"].clone();
    assert!(worker.is_string());
    far.report(1, "fail", json!({"worker": "w1", "message": "no luck", "class": "permanent"})).await;
    let last = &far.attempts().await[0];
    assert_eq!((&last["state"], &last["worker"]), (&json!("failed"), &worker));
    assert_eq!(last["decision"], "a permanent error is not retried");
}

#[tokio::test]
async fn a_lost_worker_raises_the_attempts_that_are_allowed_to_an_idempotent_task() {
    let world = World::new().await;
    let run = world
        .play("name: w\ntasks: [{name: a, type: echo, config: {value: 1}, idempotent: true}]", json!({}))
        .await;
    let worker = WorkerId(uuid::Uuid::now_v7());
    let (task, attempt) = (model::TaskIndex(0), 1);
    for command in [Command::Claim { task, attempt, worker }, Command::Lose { task, attempt, worker }] {
        assert_eq!(world.runtime.settle(run, command).await.unwrap(), Settled::Applied);
    }
    let shown = world.get(&format!("/runs/{run}/tasks/a")).await.body;
    assert_eq!((&shown["attempt"], &shown["max_attempts"]), (&json!(2), &json!(4)));
    let explained = world.get(&format!("/runs/{run}/explain")).await.body.to_string();
    assert!(explained.contains("attempt 2 of 4"), "{explained}");
}

#[tokio::test]
async fn the_next_attempt_begins_where_the_last_one_came_to() {
    let far = Far::new().await;
    far.lease("w1").await;
    let said = far.report(1, "checkpoint", json!({"worker": "w1", "checkpoint": {"row": 7}})).await;
    assert_eq!(said.status, StatusCode::OK, "{}", said.body);
    assert_eq!(
        far.report(1, "release", json!({"worker": "w1", "reason": "moving"})).await.status,
        StatusCode::OK
    );
    let next = far.lease("w2").await;
    assert_eq!(
        (&next["items"][0]["attempt"], &next["items"][0]["checkpoint"]),
        (&json!(2), &json!({"row": 7}))
    );
}

#[tokio::test]
async fn a_worker_that_is_to_end_is_given_nothing() {
    let far = Far::new().await;
    far.lease("w1").await;
    far.report(1, "release", json!({"worker": "w1"})).await;
    let store = far.world.runtime.store();
    let workers = store.silent(model::Instant::MAX_UTC, 9).await.unwrap();
    let id: WorkerId = workers[0].worker;
    let command =
        WorkerCommand { kind: WorkerCommandKind::Drain, actor: "ada".into(), reason: None, at: now() };
    store.command_worker(id, &command).await.unwrap();
    let leased = far.lease("w1").await;
    assert_eq!((&leased["items"], &leased["command"]), (&json!([]), &json!("drain")));
    assert_eq!(far.lease("w2").await["items"].as_array().unwrap().len(), 1, "another one is");
}

#[tokio::test]
async fn an_attempt_whose_secret_is_missing_fails_before_it_is_leased() {
    let world = World::new().await;
    let secret = "name: s\ntasks: [{name: a, type: bash, queue: remote, retry_policy: {max_retries: 0}, config: {command: x, env: {KEY: '{{ secrets.KEY }}'}}}]";
    let run = world.play(secret, json!({})).await;
    let leased = world.post("/execution/lease", r#"{"worker": "w", "queue": "remote"}"#).await.body;
    assert_eq!(leased["items"], json!([]));
    let task = world.get(&format!("/runs/{run}/tasks/a")).await.body;
    assert_eq!(task["state"], "failed");
    assert!(task["error"]["message"].as_str().unwrap().contains("`KEY`"), "{task}");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_in_words() {
    let far = Far::new().await;
    for (path, body, code) in [
        ("lease", r#"{"worker": "w", "queue": "light"}"#, "bad_queue"),
        ("lease", r#"{"worker": "w", "queue": "remote", "limit": 33}"#, "bad_limit"),
        ("lease", r#"{"worker": "w", "queue": "remote", "slots": 0}"#, "bad_slots"),
        ("lease", r#"{"worker": "w", "queue": "remote", "wait_seconds": 56}"#, "bad_wait"),
        ("lease", r#"{"worker": "w", "queue": "remote", "usage": {"cpu": 1.5}}"#, "bad_usage"),
        ("heartbeat", r#"{"worker": "w", "usage": {}}"#, "bad_usage"),
        ("heartbeat", r#"{"worker": ""}"#, "bad_worker"),
    ] {
        let refused = far.world.post(&format!("/execution/{path}"), body).await;
        assert_eq!(
            (refused.status, refused.body["error_code"].as_str()),
            (StatusCode::UNPROCESSABLE_ENTITY, Some(code)),
            "{body}"
        );
    }
    far.lease("w1").await;
    let line = json!({"at": "2027-01-15T08:00:00Z", "stream": "elsewhere", "level": "info", "line": "hi"});
    let refused = far.report(1, "log", json!({"worker": "w1", "first": 0, "lines": [line]})).await;
    assert_eq!(refused.body["error_code"], "bad_lines");
}

#[tokio::test]
async fn a_worker_reports_progress_metrics_and_phases() {
    let far = Far::new().await;
    far.lease("w1").await;
    for (body, status) in [
        (json!({"worker": "w1", "progress": {"fraction": 0.25, "message": "loading"}}), StatusCode::OK),
        (json!({"worker": "w1", "metrics": {"rows": 12}}), StatusCode::OK),
        (json!({"worker": "w1", "metrics": {"rows": 20.5}}), StatusCode::OK),
        (json!({"worker": "w1", "progress": {"fraction": 1.5}}), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({"worker": "w1", "metrics": {"": 1}}), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({"worker": "w2", "metrics": {"rows": 1}}), StatusCode::CONFLICT),
    ] {
        let answer = far.report(1, "progress", body.clone()).await;
        assert_eq!(answer.status, status, "{body}: {}", answer.body);
    }
    let saved = json!({"worker": "w1", "checkpoint": {"phase": "load", "state": {"row": 7}}});
    assert_eq!(far.report(1, "checkpoint", saved).await.status, StatusCode::OK);
    let progress = far.task().await["progress"].clone();
    assert_eq!(
        (&progress["attempt"], &progress["fraction"], &progress["message"], &progress["phase"]),
        (&json!(1), &json!(0.25), &json!("loading"), &json!("load"))
    );
    let rows = &progress["metrics"]["rows"];
    assert_eq!((&rows["value"], rows["series"].as_array().unwrap().len()), (&json!(20.5), 2));
    let listed = far.world.get(&format!("/runs/{}/tasks", far.run)).await.body;
    assert_eq!(
        listed["items"][0]["progress"]["metrics"]["rows"],
        json!({"value": 20.5}),
        "without its series"
    );
    assert_eq!(listed["items"][1]["progress"], json!(null));
    far.report(1, "release", json!({"worker": "w1"})).await;
    let task = far.task().await;
    assert_eq!(
        (&task["attempt"], &task["progress"]["phase"], &task["progress"]["fraction"]),
        (&json!(2), &json!("load"), &json!(null)),
        "the next attempt continues from that phase"
    );
    let attempts = far.attempts().await;
    assert_eq!(attempts[0]["progress"]["fraction"], json!(0.25));
}

//! Workflows that pause, how they fare, queues, and what tasks delivered and write.

use axum::http::{Method, StatusCode};
use futures::StreamExt;
use model::{Failure, TaskIndex, TaskKey};
use serde_json::{Value, json};
use store::{LogChunk, LogLine};

use crate::world::{World, now};

const NIGHTLY: &str = "
name: nightly
schedules: [{name: hourly, cron: '0 * * * *', catchup: all}]
triggers: [{name: hook, webhook: {secret: '{{ secrets.KEY }}'}}]
tasks: [{name: a, type: noop}]
";

async fn nightly() -> World {
    let world = World::new().await;
    assert_eq!(world.post("/workflows", NIGHTLY).await.status, StatusCode::CREATED);
    world
}

#[tokio::test]
async fn nothing_of_a_paused_workflow_begins_until_it_goes_on() {
    let world = nightly().await;
    let under_way = world.start_of("nightly", json!({})).await;
    let paused = world.post("/workflows/nightly/pause", r#"{"reason": "moving"}"#).await;
    assert_eq!(paused.status, StatusCode::OK);
    let pause = json!({"at": "2027-01-15T08:00:00Z", "by": "ada@example.com", "reason": "moving"});
    assert_eq!(paused.body["pause"], pause);
    assert_eq!(world.get("/workflows/nightly").await.body["next"], json!([]), "nothing is due");
    assert_eq!(world.get("/workflows").await.body["items"][0]["pause"], pause);
    let refused = world.post("/workflows/nightly/runs", "{}").await;
    assert_eq!(
        (refused.status, refused.body["error_code"].as_str()),
        (StatusCode::CONFLICT, Some("workflow_paused"))
    );
    let hook = world.get("/triggers/nightly/hook").await.body;
    assert_eq!(hook["paused_reason"], "its workflow is paused");
    let refused = world.post("/triggers/nightly/hook/resume", "").await;
    assert_eq!(refused.body["error_code"], "workflow_paused");
    assert_eq!(
        world.get(&format!("/runs/{under_way}")).await.body["state"],
        "running",
        "what is there goes on"
    );
    let resumed = world.post("/workflows/nightly/resume", "{}").await;
    assert_eq!((resumed.status, &resumed.body["pause"]), (StatusCode::OK, &json!(null)));
    world.start_of("nightly", json!({})).await;
    assert_eq!(world.get("/triggers/nightly/hook").await.body["paused_at"], json!(null));
}

#[tokio::test]
async fn what_a_schedule_missed_while_its_workflow_paused_is_made_up_for() {
    let world = nightly().await;
    let later = |hours: i64| now() + chrono::TimeDelta::hours(hours);
    let runs = async || world.get("/runs?workflow=nightly").await.body["items"].as_array().unwrap().len();
    world.post("/workflows/nightly/pause", "{}").await;
    world.runtime.schedules().fire(later(3), 10).await.unwrap();
    assert_eq!(runs().await, 0);
    let agenda = world.runtime.store().agenda(later(3)).await.unwrap();
    assert_eq!(agenda.schedule, None, "nobody looks at it meanwhile");
    world.post("/workflows/nightly/resume", "{}").await;
    world.runtime.schedules().fire(later(3), 10).await.unwrap();
    assert_eq!(runs().await, 3, "as its own rule says");
}

#[tokio::test]
async fn who_resumes_says_what_becomes_of_what_was_missed() {
    let world = nightly().await;
    let later = |hours: i64| now() + chrono::TimeDelta::hours(hours);
    world.runtime.schedules().fire(later(0), 10).await.unwrap();
    world.post("/workflows/nightly/pause", "{}").await;
    assert_eq!(
        world.post("/workflows/nightly/resume", r#"{"missed": "some"}"#).await.status,
        StatusCode::BAD_REQUEST
    );
    let resumed = world.post("/workflows/nightly/resume", r#"{"missed": "none"}"#).await;
    assert_eq!(resumed.status, StatusCode::OK);
    let schedule = world.runtime.store().schedules(model::TenantId::DEFAULT, None, None, 9).await.unwrap();
    assert_eq!(schedule[0].owed, Some((model::Catchup::None, now())));
}

#[tokio::test]
async fn pausing_again_changes_nothing_and_what_is_not_there_is_not_found() {
    let world = nightly().await;
    let first = world.post("/workflows/nightly/pause", r#"{"reason": "one"}"#).await.body;
    assert_eq!(world.post("/workflows/nightly/pause", r#"{"reason": "two"}"#).await.body, first);
    assert_eq!(world.post("/workflows/nightli/pause", "{}").await.status, StatusCode::NOT_FOUND);
    world.post("/workflows/nightly/archive", "{}").await;
    let archived = world.post("/workflows/nightly/resume", "{}").await;
    assert_eq!((archived.status, &archived.body["error_code"]), (StatusCode::CONFLICT, &json!("archived")));
}

#[tokio::test]
async fn a_run_that_a_task_of_another_one_asks_for_begins_all_the_same() {
    let world = World::new().await;
    world.post("/workflows", "name: inner\ntasks: [{name: a, type: noop}]").await;
    world.post("/workflows/inner/pause", "{}").await;
    let outer = "name: outer\ntasks: [{name: call, type: workflow, config: {workflow: inner}}]";
    let run = world.play(outer, json!({})).await;
    let parent =
        model::Parent { key: TaskKey { run, task: TaskIndex(0) }, attempt: 1, waits: true, depth: 1 };
    let origin = runtime::Origin::Child(parent);
    let request = runtime::StartRun::new(parent.child(), model::TenantId::DEFAULT, "inner", origin);
    world.runtime.child_runs().start(request, parent).await.unwrap();
    assert_eq!(world.get("/runs?workflow=inner").await.body["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn the_last_runs_of_a_workflow_say_how_it_fares() {
    let world = World::new().await;
    let one = "name: one\ntasks: [{name: a, type: noop, retry_policy: {max_retries: 0}}]";
    let good = world.play(one, json!({})).await;
    world.report(good, 0, Ok(json!(1))).await;
    let bad = world.start_of("one", json!({})).await;
    world.report(bad, 0, Err(Failure::permanent("no"))).await;
    world.start_of("one", json!({})).await;
    assert_eq!(
        world.get("/workflows/one").await.body["statistics"],
        json!({"runs": 2, "succeeded": 1, "failed": 1, "cancelled": 0, "success_rate": 0.5, "p50_ms": 0, "p95_ms": 0})
    );
}

#[tokio::test]
async fn a_queue_says_how_much_waits_in_it_and_of_whom() {
    let world = World::new().await;
    assert_eq!(world.get("/queues").await.body["items"], json!([]));
    world.post("/limits/queue/light", r#"{"slots": 1}"#).await;
    world.play("name: pair\ntasks: [{name: a, type: noop}, {name: b, type: noop}]", json!({})).await;
    let since = "2027-01-15T08:00:00Z";
    assert_eq!(
        world.get("/queues").await.body["items"],
        json!([{
            "name": "light", "depth": 1, "active": 1, "slots": 1, "oldest": since, "released": 0, "rate": 0,
            "fairness_groups": [{"tenant": "default", "backfill": null, "weight": 1, "depth": 1, "oldest": since, "released": 0,
                "rate": 0}],
        }])
    );
}

#[tokio::test]
async fn a_task_shows_what_it_delivered_once_it_has() {
    let world = World::new().await;
    let run = world.play("name: one\ntasks: [{name: a, type: noop}]", json!({})).await;
    let output = format!("/runs/{run}/tasks/a/output");
    let early = world.get(&output).await;
    assert_eq!(early.status, StatusCode::NOT_FOUND);
    assert_eq!(early.body["message"], "task `a` has no output; it is dispatched");
    world.report(run, 0, Ok(json!({"rows": 3}))).await;
    assert_eq!(world.get(&output).await.body, json!({"attempt": 1, "output": {"rows": 3}}));
}

fn line(text: &str) -> LogLine {
    LogLine { at: now(), stream: "stdout".into(), level: "info".into(), line: text.into() }
}

/// What a follower gets until the task has ended, without keep-alives.
async fn followed(world: &World, path: &str, headers: &[(&str, &str)]) -> Vec<(String, Value)> {
    let response = world.request(Method::GET, path, headers, "").await;
    assert_eq!(response.status(), StatusCode::OK);
    let mut body = response.into_body().into_data_stream();
    let mut text = String::new();
    while let Some(chunk) = body.next().await {
        text.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
    }
    let field = |event: &str, name: &str| {
        let found = event.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        found.map(|value| value.trim().to_owned())
    };
    let event = |event: &str| {
        let data = serde_json::from_str(&field(event, "data")?).unwrap();
        Some((field(event, "id").or(field(event, "event")).unwrap_or_default(), data))
    };
    text.split("\n\n").filter_map(event).collect()
}

#[tokio::test]
async fn a_log_is_followed_to_its_end_and_from_where_one_left_off() {
    let world = World::new().await;
    let run = world.play("name: one\ntasks: [{name: a, type: noop}]", json!({})).await;
    let key = TaskKey { run, task: TaskIndex(0) };
    let chunk = LogChunk { key, attempt: 1, first: 0, lines: vec![line("one"), line("two")] };
    world.runtime.store().append_log(&chunk).await.unwrap();
    world.report(run, 0, Ok(json!(null))).await;
    let follow = format!("/runs/{run}/tasks/a/logs/follow");
    let at = "2027-01-15T08:00:00Z";
    let sent_line =
        |text: &str| json!({"attempt": 1, "at": at, "stream": "stdout", "level": "info", "line": text});
    let end = ("end".to_owned(), json!({"attempt": 1, "state": "succeeded"}));
    assert_eq!(
        followed(&world, &follow, &[]).await,
        [("1.0".to_owned(), sent_line("one")), ("1.1".to_owned(), sent_line("two")), end.clone()]
    );
    let rest = followed(&world, &follow, &[("last-event-id", "1.0")]).await;
    assert_eq!(rest, [("1.1".to_owned(), sent_line("two")), end]);
    let odd = world.send(Method::GET, &follow, &[("last-event-id", "x")], "").await;
    assert_eq!(odd.status, StatusCode::BAD_REQUEST);
    assert_eq!(world.get(&format!("{follow}?attempt=2")).await.status, StatusCode::NOT_FOUND);
}

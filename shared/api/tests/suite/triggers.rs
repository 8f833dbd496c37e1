//! Triggers: their events, pausing and resuming.

use axum::http::StatusCode;
use model::CloudEvent;
use serde_json::json;

use crate::world::World;

const UPLOADS: &str = "
name: uploads
triggers:
  - {name: arrived, event: arrived, filter: event.subject == 'a'}
  - {name: inbox, sensor: {file: {path: /nowhere/*}}}
  - {name: partner, webhook: {secret: '{{ secrets.KEY }}'}}
tasks: [{name: a, type: noop}]
";

async fn world() -> World {
    let world = World::new().await;
    let registered = world.post("/workflows", UPLOADS).await;
    assert!(registered.status.is_success(), "{}", registered.body);
    world
}

fn arrived(id: &str) -> CloudEvent {
    let (id, source, kind, subject) = (id.into(), "/dock".into(), "arrived".into(), Some("a".into()));
    CloudEvent { id, source, kind, subject, ..CloudEvent::default() }
}

#[tokio::test]
async fn triggers_are_listed_with_their_last_events() {
    let world = world().await;
    world.runtime.triggers().receive(&arrived("7")).await.unwrap();
    let list = world.get("/triggers?limit=2").await.body;
    let kinds: Vec<&str> =
        list["items"].as_array().unwrap().iter().map(|item| item["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["event", "sensor"]);
    let last = &list["items"][0]["last_event"];
    assert_eq!(last["what"], "/dock 7");
    assert!(last["run"].is_string());
    assert!(list["items"][1]["next_at"].is_string());
    let cursor = list["next_cursor"].as_str().unwrap();
    let rest = world.get(&format!("/triggers?cursor={cursor}")).await.body;
    assert_eq!(rest["items"][0]["endpoint"], "/api/v1/hooks/uploads/partner");
    assert_eq!(world.get("/triggers?workflow=other").await.body["items"], json!([]));
}

#[tokio::test]
async fn a_trigger_that_pauses_says_why_and_receives_nothing_until_it_is_resumed() {
    let world = world().await;
    let paused = world.post("/triggers/uploads/arrived/pause", r#"{"reason": "moving"}"#).await;
    assert_eq!(paused.status, StatusCode::OK);
    assert!(
        paused.body["paused_reason"].as_str().unwrap().ends_with(" paused it: moving"),
        "{}",
        paused.body
    );
    let received = world.runtime.triggers().receive(&arrived("1")).await.unwrap();
    assert_eq!(received.outcomes, []);
    let resumed = world.post("/triggers/uploads/arrived/resume", "{}").await.body;
    assert_eq!((&resumed["paused_at"], &resumed["paused_reason"]), (&json!(null), &json!(null)));
    let received = world.runtime.triggers().receive(&arrived("1")).await.unwrap();
    assert_eq!(received.outcomes.len(), 1);
    let shown = world.get("/triggers/uploads/arrived").await.body;
    assert_eq!(shown["events"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_trigger_that_does_not_exist_is_not_found() {
    let world = world().await;
    for path in ["/triggers/uploads/none", "/triggers/none/arrived"] {
        let answer = world.get(path).await;
        assert_eq!((answer.status, &answer.body["error_code"]), (StatusCode::NOT_FOUND, &json!("not_found")));
    }
    assert_eq!(world.post("/triggers/uploads/none/pause", "{}").await.status, StatusCode::NOT_FOUND);
}

const POLLS: &str = "
name: looks
tasks:
  - {name: poll, type: sensor, config: {file: {path: /nowhere/x}, interval_seconds: 60, timeout_seconds: 600, soft_fail: true}}
";

#[tokio::test]
async fn a_sensor_explains_when_it_polls_again() {
    let world = World::new().await;
    let run = world.play(POLLS, json!({})).await;
    let explained = world.get(&format!("/runs/{run}/explain?task=poll")).await.body;
    assert_eq!(
        explained["tasks"][0]["because"],
        "It has polled since 2027-01-15 08:00:00Z (now), polls again at 2027-01-15 08:01:00Z \
         (in 1 min) and times out at 2027-01-15 08:10:00Z (in 10 min)."
    );
    let task = &world.get(&format!("/runs/{run}/tasks")).await.body["items"][0];
    assert_eq!((&task["state"], &task["waiting"]["reason"]), (&json!("sleeping"), &json!("sensor")));
    let timers = world.get("/timers").await.body;
    assert_eq!(timers["items"][0]["why"], "`poll` polls again");
    let failure = Some(model::Failure::transient("the folder cannot be read"));
    let polled = engine::Command::Polled { task: model::TaskIndex(0), attempt: 1, failure };
    world.runtime.settle(run, polled).await.unwrap();
    let explained = world.get(&format!("/runs/{run}/explain?task=poll")).await.body;
    let because = explained["tasks"][0]["because"].as_str().unwrap();
    assert!(
        because.ends_with(" Its last poll failed: the folder cannot be read (a transient error)."),
        "{because}"
    );
    let task = &world.get(&format!("/runs/{run}/tasks")).await.body["items"][0];
    assert_eq!(
        (&task["state"], &task["error"]["message"]),
        (&json!("sleeping"), &json!("the folder cannot be read"))
    );
    let wake = engine::Command::Wake {
        task: Some(model::TaskIndex(0)),
        attempt: 1,
        kind: model::TimerKind::Timeout,
    };
    world.runtime.settle(run, wake).await.unwrap();
    let explained = world.get(&format!("/runs/{run}/explain?task=poll")).await.body;
    assert_eq!(
        explained["tasks"][0]["because"],
        "`poll` timed out, and it has `soft_fail`: timed out while waiting; its last poll failed: the \
         folder cannot be read."
    );
}

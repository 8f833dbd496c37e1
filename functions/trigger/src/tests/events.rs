//! External events: which triggers they match, once, and the runs they start.

use chrono::TimeDelta;
use model::message::RunFinished;
use model::{Instant, RunState};
use runtime::Replayed;
use store::{RunFilter, RunRecord};
use testkit::ManualClock;

use super::*;

const UPLOADS: &str = "
name: uploads
inputs: {path: {type: string}, size: {type: integer, default: 0}}
triggers:
  - name: object
    event: {type: storage.finalized, source: '//storage/*'}
    filter: event.data.name is endingwith('.csv')
    inputs: {path: '{{ event.source }}/{{ event.data.name }}', size: '{{ event.data.size | default(1) }}'}
  - name: notified
    event: {type: google.cloud.pubsub.topic.v1.messagePublished, source: '*/subscriptions/uploads'}
    inputs: {path: 'gs://{{ event.attributes.bucketId }}/{{ event.subject }}'}
tasks: [{name: a, type: noop}]
";

const CALM: &str = "
name: calm
inputs: {last: {type: string}}
triggers:
  - {name: settled, event: edited, inputs: {last: '{{ event.id }}'}, debounce_seconds: 30}
tasks: [{name: a, type: noop}]
";

const JOIN: &str = "
name: join
inputs: {left: {type: string}}
triggers:
  - {name: both, workflows: [left, right], inputs: {left: '{{ event.data.runs.left.id }}'}}
tasks: [{name: a, type: noop}]
";
const LEFT: &str = "{name: left, tasks: [{name: a, type: noop}]}";
const RIGHT: &str = "{name: right, tasks: [{name: a, type: noop}]}";
const AFTER: &str = "
name: after
triggers: [{name: left-failed, workflow: left, state: failed}]
tasks: [{name: a, type: noop}]
";

pub(super) fn clock() -> ManualClock {
    ManualClock::at("2027-01-15T08:00:00Z")
}

fn event(id: &str, name: &str) -> Value {
    json!({
        "specversion": "1.0", "id": id, "source": "//storage/b", "type": "storage.finalized",
        "datacontenttype": "application/json", "data": {"name": name, "size": 7},
    })
}

pub(super) async fn send(app: &App, event: &Value) -> StatusCode {
    let request =
        Request::post("/push").header("content-type", "application/cloudevents+json; charset=utf-8");
    let request = request.body(Body::from(event.to_string())).unwrap();
    router(app.clone(), None).oneshot(request).await.unwrap().status()
}

async fn runs(app: &App, workflow: &str) -> Vec<RunRecord> {
    let filter = RunFilter { workflow: Some(workflow.into()), limit: 100, ..RunFilter::default() };
    app.runtime.store().runs(TenantId::DEFAULT, &filter).await.unwrap()
}

#[tokio::test]
async fn an_event_starts_a_run_with_rendered_inputs_and_its_copy_starts_nothing() {
    let app = app_with(clock(), &[UPLOADS]).await;
    for _ in 0..3 {
        assert_eq!(send(&app, &event("1", "a.csv")).await, StatusCode::NO_CONTENT);
    }
    let runs = runs(&app, "uploads").await;
    assert_eq!(runs.len(), 1);
    let facts = &runs[0].facts;
    assert_eq!(Value::from(facts.inputs.clone()), json!({"path": "//storage/b/a.csv", "size": 7}));
    assert_eq!((facts.trigger_kind.as_str(), facts.trigger_by.as_str()), ("event", "object: //storage/b 1"));
    assert_eq!(reasons(&app).await, [""; 0]);
}

#[tokio::test]
async fn the_same_id_of_another_source_is_another_event() {
    let app = app_with(clock(), &[UPLOADS]).await;
    let mut other = event("1", "a.csv");
    other["source"] = json!("//storage/c");
    assert_eq!(send(&app, &event("1", "a.csv")).await, StatusCode::NO_CONTENT);
    assert_eq!(send(&app, &other).await, StatusCode::NO_CONTENT);
    assert_eq!(runs(&app, "uploads").await.len(), 2);
}

#[tokio::test]
async fn an_event_that_matches_no_trigger_is_acknowledged_and_not_stored() {
    let app = app_with(clock(), &[UPLOADS]).await;
    let mut elsewhere = event("2", "a.csv");
    elsewhere["source"] = json!("//elsewhere/b");
    let mut unknown = event("3", "a.csv");
    unknown["type"] = json!("storage.deleted");
    for event in [event("1", "a.txt"), elsewhere, unknown] {
        assert_eq!(send(&app, &event).await, StatusCode::NO_CONTENT);
    }
    assert_eq!(runs(&app, "uploads").await.len(), 0);
    assert_eq!(reasons(&app).await, [""; 0]);
}

#[tokio::test]
async fn an_event_whose_inputs_cannot_be_rendered_is_dead_lettered_with_the_reason() {
    let app = app_with(clock(), &[UPLOADS]).await;
    let mut nameless = event("1", "a.csv");
    nameless["data"] = json!({"size": 7});
    let mut odd = event("2", "b.csv");
    odd["data"]["size"] = json!("many");
    for event in [nameless, odd] {
        assert_eq!(send(&app, &event).await, StatusCode::NO_CONTENT);
    }
    let mut reasons = reasons(&app).await;
    reasons.sort();
    assert!(reasons[0].starts_with("trigger `object` of `uploads`: filter: "), "{reasons:?}");
    assert!(reasons[1].starts_with("trigger `object` of `uploads`: input `size`: "), "{reasons:?}");
    // Once it is corrected, the same event is accepted.
    assert_eq!(send(&app, &event("2", "b.csv")).await, StatusCode::NO_CONTENT);
    assert_eq!(runs(&app, "uploads").await.len(), 1);
}

#[tokio::test]
async fn a_dead_lettered_event_is_replayed_once_its_workflow_accepts_it() {
    let world = World::in_memory(SilentBus, clock());
    let app = app_of(&world, &[UPLOADS]).await;
    let mut odd = event("1", "a.csv");
    odd["data"]["size"] = json!("many");
    assert_eq!(send(&app, &odd).await, StatusCode::NO_CONTENT);
    let letter = async || app.runtime.store().dead_letter("1").await.unwrap();
    let replayed = app.runtime.dead_letters().replay(&letter().await.unwrap()).await.unwrap();
    assert!(
        matches!(&replayed, Replayed::NoMessage(reason) if reason.contains("input `size`")),
        "{replayed:?}"
    );
    world.write(&UPLOADS.replace("type: integer, default: 0", "type: string, default: none")).await;
    let replayed = app.runtime.dead_letters().replay(&letter().await.unwrap()).await.unwrap();
    assert_eq!((replayed, letter().await), (Replayed::Sent, None));
    assert_eq!(runs(&app, "uploads").await.len(), 1);
}

#[tokio::test]
async fn a_bucket_notification_is_an_event_although_it_is_not_a_cloudevent() {
    let app = app_with(clock(), &[UPLOADS]).await;
    let push = json!({
        "message": {
            "attributes": {"eventType": "OBJECT_FINALIZE", "bucketId": "b", "objectId": "in/a.csv"},
            "data": "e30=", "messageId": "77", "publishTime": "2027-01-15T08:00:00Z",
        },
        "subscription": "projects/p/subscriptions/uploads",
    });
    for _ in 0..2 {
        let request = Request::post("/push").body(Body::from(push.to_string())).unwrap();
        assert_eq!(
            router(app.clone(), None).oneshot(request).await.unwrap().status(),
            StatusCode::NO_CONTENT
        );
    }
    let runs = runs(&app, "uploads").await;
    assert_eq!((runs.len(), &runs[0].facts.inputs["path"]), (1, &json!("gs://b/in/a.csv")));
}

#[tokio::test]
async fn of_debounced_events_the_last_one_starts_a_run() {
    let clock = clock();
    let app = app_with(clock.clone(), &[CALM]).await;
    let edited = |id: &str| json!({"specversion": "1.0", "id": id, "source": "/editor", "type": "edited"});
    let fire = async || app.runtime.triggers().fire_due(app.now(), 10).await.unwrap();
    for id in ["1", "2", "3"] {
        assert_eq!(send(&app, &edited(id)).await, StatusCode::NO_CONTENT);
        clock.advance(chrono::Duration::seconds(20));
        assert_eq!(fire().await, 0, "only the time since the last event counts");
    }
    clock.advance(chrono::Duration::seconds(5));
    assert_eq!(send(&app, &edited("2")).await, StatusCode::NO_CONTENT);
    clock.advance(chrono::Duration::seconds(4));
    assert_eq!(fire().await, 0);
    // A copy of an earlier event does not postpone it.
    clock.advance(chrono::Duration::seconds(1));
    assert_eq!(fire().await, 1);
    assert_eq!(fire().await, 0);
    let runs = runs(&app, "calm").await;
    assert_eq!((runs.len(), &runs[0].facts.inputs["last"]), (1, &json!("3")));
    assert_eq!(send(&app, &edited("4")).await, StatusCode::NO_CONTENT);
    clock.advance(chrono::Duration::seconds(30));
    assert_eq!(fire().await, 1);
}

/// Ends a run of `workflow` for a date. Returns the message about it.
async fn ended(app: &App, workflow: &str, date: Option<Instant>, state: RunState) -> Message {
    let start = StartRun {
        logical_date: date,
        id: RunId(Uuid::now_v7()),
        ..StartRun::from(request(workflow, json!({})))
    };
    let run = app.runtime.start(start).await.unwrap().record.run.id;
    let result = match state {
        RunState::Succeeded => model::message::TaskResult::Succeeded(Value::Null),
        _ => model::message::TaskResult::Failed(model::Failure::permanent("no")),
    };
    let report = engine::Command::Report {
        task: model::TaskIndex(0),
        attempt: 1,
        worker: None,
        started_at: app.now(),
        result,
    };
    app.runtime.settle(run, report).await.unwrap();
    let (tenant, workflow, finished_at) = (TenantId::DEFAULT, workflow.to_owned(), app.now());
    Message::RunFinished(RunFinished { run, tenant, workflow, state, created_at: None, finished_at })
}

#[tokio::test]
async fn two_upstream_workflows_start_one_run_in_either_order_whatever_is_delivered_twice() {
    for flip in [false, true] {
        let clock = clock();
        let app = app_with(clock.clone(), &[JOIN, LEFT, RIGHT]).await;
        let (monday, tuesday) = (app.now(), app.now() + TimeDelta::days(1));
        let mut upstream = ["left", "right"];
        if flip {
            upstream.reverse();
        }
        let first = ended(&app, upstream[0], Some(monday), RunState::Succeeded).await;
        let other_day = ended(&app, upstream[1], Some(tuesday), RunState::Succeeded).await;
        for message in [&first, &other_day, &first] {
            assert_eq!(push(&app, message).await, StatusCode::NO_CONTENT);
        }
        assert_eq!(runs(&app, "join").await.len(), 0, "the other workflow has no run for that date");
        let second = ended(&app, upstream[1], Some(monday), RunState::Succeeded).await;
        for message in [&second, &first, &second] {
            assert_eq!(push(&app, message).await, StatusCode::NO_CONTENT);
        }
        let joined = runs(&app, "join").await;
        assert_eq!(joined.len(), 1);
        assert_eq!(
            (joined[0].facts.logical_date, joined[0].facts.trigger_kind.as_str()),
            (Some(monday), "workflow")
        );
        assert_eq!(reasons(&app).await, [""; 0]);
    }
}

#[tokio::test]
async fn a_trigger_requires_the_configured_state_of_the_upstream_run() {
    let app = app_with(clock(), &[AFTER, JOIN, LEFT, RIGHT]).await;
    let well = ended(&app, "left", None, RunState::Succeeded).await;
    assert_eq!(push(&app, &well).await, StatusCode::NO_CONTENT);
    assert_eq!(runs(&app, "after").await.len(), 0);
    let badly = ended(&app, "left", None, RunState::Failed).await;
    for _ in 0..2 {
        assert_eq!(push(&app, &badly).await, StatusCode::NO_CONTENT);
    }
    assert_eq!(runs(&app, "after").await.len(), 1);
    assert_eq!(runs(&app, "join").await.len(), 0, "runs without a logical date are not joined");
}

//! Triggers: where they come from, what they remember, and who is first.

use chrono::TimeDelta;
use model::{CloudEvent, Completion, Pacing, RunState, Trigger, TriggerKey, TriggerOn};
use serde_json::json;
use store::{Pause, PollRecord, Store, TriggerEvent, TriggerFilter, TriggerPause};

use crate::Subject;
use crate::example::{TENANT, at, create, definition, new_run, run_id, version};

fn trigger(name: &str, on: TriggerOn) -> Trigger {
    Trigger { name: name.into(), on, filter: None, inputs: Default::default(), debounce_seconds: None }
}

fn event(kind: &str) -> TriggerOn {
    TriggerOn::Event { types: vec![kind.into()], source: None }
}

fn sensor(path: &str) -> TriggerOn {
    let pacing = Pacing {
        interval_seconds: 60,
        factor: 1.0,
        max_interval_seconds: 60,
        timeout_seconds: None,
        soft_fail: false,
        max_failures: 3,
        max_events_per_hour: 10,
    };
    TriggerOn::Sensor { config: json!({"file": {"path": path}}), pacing }
}

fn key(name: &str) -> TriggerKey {
    TriggerKey { tenant: TENANT, workflow: "example".into(), name: name.into() }
}

async fn register(store: &dyn Store, hash: &str, triggers: &[Trigger]) {
    let mut new = definition("example", hash);
    new.workflow.triggers = triggers.to_vec();
    store.register(&new).await.unwrap();
}

async fn names(store: &dyn Store) -> Vec<String> {
    let filter = TriggerFilter { limit: 100, ..TriggerFilter::default() };
    store.triggers(TENANT, &filter).await.unwrap().into_iter().map(|record| record.key.name).collect()
}

fn cloud_event(id: &str) -> CloudEvent {
    CloudEvent { id: id.into(), source: "/here".into(), kind: "t".into(), ..CloudEvent::default() }
}

async fn note(store: &dyn Store, name: &str, event: &TriggerEvent) -> bool {
    let mut unit = store.begin().await.unwrap();
    let first = unit.note_event(&key(name), event).await.unwrap();
    unit.commit().await.unwrap();
    first
}

pub(crate) async fn a_version_brings_its_triggers_and_takes_them_along(store: Subject) {
    register(&*store, "h1", &[trigger("a", event("x")), trigger("b", event("x"))]).await;
    assert_eq!(names(&*store).await, ["a", "b"]);
    register(&*store, "h2", &[trigger("b", event("y")), trigger("c", sensor("/in"))]).await;
    assert_eq!(names(&*store).await, ["b", "c"]);
    let sensor = store.trigger(&key("c")).await.unwrap().unwrap();
    assert_eq!((sensor.due_at, sensor.watermark), (Some(at(0)), json!(null)));
    store.activate(TENANT, "example", 1, at(1)).await.unwrap();
    assert_eq!(names(&*store).await, ["a", "b"]);
    assert!(store.archive(TENANT, "example", at(2)).await.unwrap());
    assert_eq!(names(&*store).await, [""; 0]);
}

pub(crate) async fn a_trigger_is_found_by_its_key(store: Subject) {
    let workflows =
        TriggerOn::Workflows { workflows: vec!["x".into(), "y".into()], state: Completion::Succeeded };
    register(&*store, "h1", &[trigger("a", event("x")), trigger("b", event("y")), trigger("c", workflows)])
        .await;
    let on = async |kind: &str, by: &str| {
        let found = store.triggers_on(TENANT, kind, by).await.unwrap();
        found.into_iter().map(|record| record.key.name).collect::<Vec<_>>()
    };
    assert_eq!(on("event", "x").await, ["a"]);
    assert_eq!(on("workflow", "x").await, ["c"]);
    assert_eq!(on("workflow", "y").await, ["c"]);
    assert_eq!(on("event", "z").await, [""; 0]);
    let pause = TriggerPause { at: at(1), reason: "a person said so".into() };
    assert!(store.pause_trigger(&key("a"), Some(&pause), at(1)).await.unwrap());
    assert_eq!(on("event", "x").await, [""; 0]);
}

pub(crate) async fn a_trigger_that_waits_for_the_same_keeps_what_it_has_seen(store: Subject) {
    register(&*store, "h1", &[trigger("a", sensor("/in"))]).await;
    let poll_record =
        PollRecord { watermark: json!({"n": 1}), due_at: Some(at(60)), failures: 1, paused: None };
    let before = store.trigger(&key("a")).await.unwrap().unwrap();
    let mut unit = store.begin().await.unwrap();
    assert!(unit.record_poll(&key("a"), before.revision, &poll_record).await.unwrap());
    unit.commit().await.unwrap();
    let other_inputs =
        Trigger { inputs: [("a".into(), json!(1))].into_iter().collect(), ..trigger("a", sensor("/in")) };
    register(&*store, "h2", &[other_inputs]).await;
    let kept = store.trigger(&key("a")).await.unwrap().unwrap();
    assert_eq!((kept.watermark, kept.due_at, kept.failures), (json!({"n": 1}), Some(at(60)), 1));
    assert!(kept.revision > before.revision + 1, "a poll that began before must not count");
    register(&*store, "h3", &[trigger("a", sensor("/out"))]).await;
    let reset = store.trigger(&key("a")).await.unwrap().unwrap();
    assert_eq!((reset.watermark, reset.due_at, reset.failures), (json!(null), Some(at(0)), 0));
}

pub(crate) async fn an_event_is_noted_once_by_each_trigger(store: Subject) {
    let one = TriggerEvent { run: Some(run_id(1)), ..TriggerEvent::new("one", "first", at(0)) };
    assert!(note(&*store, "a", &one).await);
    assert!(!note(&*store, "a", &TriggerEvent::new("one", "again", at(1))).await);
    assert!(note(&*store, "b", &one).await);
    let two = TriggerEvent::new("two", "later", at(5));
    assert!(note(&*store, "a", &two).await);
    assert_eq!(store.runs_triggered(&key("a"), at(0)).await.unwrap(), 1);
    assert_eq!(store.runs_triggered(&key("a"), at(1)).await.unwrap(), 0);
}

pub(crate) async fn of_many_who_note_an_event_at_once_one_is_the_first(store: Subject) {
    let event = TriggerEvent::new("one", "first", at(0));
    let note = || note(&*store, "a", &event);
    let (a, b, c, d, e) = tokio::join!(note(), note(), note(), note(), note());
    assert_eq!([a, b, c, d, e].iter().filter(|first| **first).count(), 1);
}

pub(crate) async fn an_event_that_is_not_committed_was_never_received(store: Subject) {
    let event = TriggerEvent::new("one", "first", at(0));
    let mut unit = store.begin().await.unwrap();
    assert!(unit.note_event(&key("a"), &event).await.unwrap());
    assert!(!unit.note_event(&key("a"), &event).await.unwrap());
    drop(unit);
    assert!(note(&*store, "a", &event).await);
}

pub(crate) async fn only_the_last_event_that_is_held_back_is_taken_and_once(store: Subject) {
    register(&*store, "h1", &[trigger("a", event("x"))]).await;
    assert_eq!(store.agenda(at(0)).await.unwrap().trigger, None);
    for (id, due_at) in [("one", at(10)), ("two", at(15))] {
        let mut unit = store.begin().await.unwrap();
        assert!(unit.hold_event(&key("a"), &cloud_event(id), due_at).await.unwrap());
        assert!(!unit.hold_event(&key("gone"), &cloud_event(id), due_at).await.unwrap());
        unit.commit().await.unwrap();
    }
    assert_eq!(store.agenda(at(0)).await.unwrap().trigger, Some(at(15)));
    assert_eq!(store.due_triggers(at(14), 10).await.unwrap().len(), 0);
    assert_eq!(store.due_triggers(at(15), 10).await.unwrap()[0].held, Some(cloud_event("two")));
    for (now, taken) in [(at(14), None), (at(15), Some(cloud_event("two"))), (at(15), None)] {
        let mut unit = store.begin().await.unwrap();
        assert_eq!(unit.take_held(&key("a"), now).await.unwrap(), taken);
        unit.commit().await.unwrap();
    }
    assert_eq!(store.agenda(at(0)).await.unwrap().trigger, None);
}

pub(crate) async fn a_poll_is_recorded_over_the_revision_it_was_based_on(store: Subject) {
    register(&*store, "h1", &[trigger("a", sensor("/in"))]).await;
    let revision = store.trigger(&key("a")).await.unwrap().unwrap().revision;
    let poll_record = PollRecord { watermark: json!([1]), due_at: Some(at(60)), failures: 0, paused: None };
    for written in [true, false] {
        let mut unit = store.begin().await.unwrap();
        assert_eq!(unit.record_poll(&key("a"), revision, &poll_record).await.unwrap(), written);
        unit.commit().await.unwrap();
    }
    let found = store.trigger(&key("a")).await.unwrap().unwrap();
    assert_eq!((found.watermark, found.revision), (json!([1]), revision + 1));
}

pub(crate) async fn a_trigger_that_pauses_is_not_due_until_it_goes_on(store: Subject) {
    register(&*store, "h1", &[trigger("a", sensor("/in"))]).await;
    let revision = store.trigger(&key("a")).await.unwrap().unwrap().revision;
    let pause = TriggerPause { at: at(5), reason: "its source is down".into() };
    let poll_record =
        PollRecord { watermark: json!(null), due_at: Some(at(60)), failures: 3, paused: Some(pause.clone()) };
    let mut unit = store.begin().await.unwrap();
    assert!(unit.record_poll(&key("a"), revision, &poll_record).await.unwrap());
    unit.commit().await.unwrap();
    assert_eq!(store.trigger(&key("a")).await.unwrap().unwrap().paused, Some(pause));
    assert_eq!(store.agenda(at(99)).await.unwrap().trigger, None);
    assert_eq!(store.due_triggers(at(99), 10).await.unwrap().len(), 0);
    assert!(store.pause_trigger(&key("a"), None, at(100)).await.unwrap());
    let found = store.trigger(&key("a")).await.unwrap().unwrap();
    assert_eq!((found.paused, found.failures, found.due_at), (None, 0, Some(at(100))));
    assert!(!store.pause_trigger(&key("gone"), None, at(100)).await.unwrap());
}

pub(crate) async fn a_trigger_is_put_off_once(store: Subject) {
    register(&*store, "h1", &[trigger("a", sensor("/in"))]).await;
    assert!(store.put_off(&key("a"), at(0), at(60)).await.unwrap());
    assert!(!store.put_off(&key("a"), at(0), at(90)).await.unwrap());
    assert_eq!(store.agenda(at(0)).await.unwrap().trigger, Some(at(60)));
}

pub(crate) async fn triggers_are_listed_by_workflow_and_name(store: Subject) {
    for workflow in ["one", "two"] {
        let mut new = definition(workflow, "h");
        new.workflow.triggers = vec![trigger("b", event("x")), trigger("a", event("x"))];
        store.register(&new).await.unwrap();
    }
    let list = async |filter: TriggerFilter| {
        let found = store.triggers(TENANT, &filter).await.unwrap();
        found
            .into_iter()
            .map(|record| format!("{}/{}", record.key.workflow, record.key.name))
            .collect::<Vec<_>>()
    };
    let first = TriggerFilter { limit: 3, ..TriggerFilter::default() };
    assert_eq!(list(first.clone()).await, ["one/a", "one/b", "two/a"]);
    let next = TriggerFilter { after: Some(("two".into(), "a".into())), ..first.clone() };
    assert_eq!(list(next).await, ["two/b"]);
    let one = TriggerFilter { workflow: Some("two".into()), ..first };
    assert_eq!(list(one).await, ["two/a", "two/b"]);
}

pub(crate) async fn old_trigger_events_are_deleted(store: Subject) {
    assert!(note(&*store, "a", &TriggerEvent::new("old", "old", at(0))).await);
    let later = at(0) + TimeDelta::days(50);
    for (id, new) in [("new", true), ("new", false), ("old", true)] {
        assert_eq!(note(&*store, "a", &TriggerEvent::new(id, "again", later)).await, new, "{id}");
    }
}

pub(crate) async fn events_of_deleted_triggers_are_deleted_too(store: Subject) {
    for (name, second) in [("a", 0), ("gone", 0), ("gone", 9)] {
        let event = TriggerEvent::new(&format!("{name} {second}"), "something", at(second));
        assert!(note(&*store, name, &event).await);
    }
    let later = at(5) + TimeDelta::days(40);
    assert_eq!(store.forget_trigger_events(at(10)).await.unwrap(), 0, "all of it is remembered");
    assert_eq!(store.forget_trigger_events(later).await.unwrap(), 2);
    assert_eq!(store.forget_trigger_events(later).await.unwrap(), 0);
    for (name, id, new) in [("a", "a 0", true), ("gone", "gone 9", false)] {
        assert_eq!(note(&*store, name, &TriggerEvent::new(id, "again", later)).await, new, "{id}");
    }
}

pub(crate) async fn a_run_is_found_by_its_logical_date(store: Subject) {
    let mut new_run = new_run(run_id(1), version(&*store).await, 1);
    new_run.facts.logical_date = Some(at(0));
    create(&*store, &new_run).await.unwrap();
    let found = store.run_on(TENANT, "example", at(0)).await.unwrap();
    assert_eq!(found, Some((run_id(1), RunState::Queued)));
    assert_eq!(store.run_on(TENANT, "example", at(1)).await.unwrap(), None);
}

pub(crate) async fn triggers_pause_and_go_on_with_their_workflow(store: Subject) {
    register(
        &*store,
        "h1",
        &[trigger("a", event("x")), trigger("b", event("x")), trigger("c", sensor("/in"))],
    )
    .await;
    let own = TriggerPause { at: at(1), reason: "its source is down".into() };
    assert!(store.pause_trigger(&key("b"), Some(&own), at(1)).await.unwrap());
    let pause = Pause { at: at(5), by: "ada".into(), reason: None };
    store.pause_workflow(TENANT, "example", Some(&pause), at(5)).await.unwrap();
    let paused = async |name: &str| store.trigger(&key(name)).await.unwrap().unwrap().paused;
    assert_eq!(paused("a").await.map(|pause| pause.at), Some(at(5)));
    assert_eq!(paused("b").await, Some(own.clone()), "it has a reason of its own");
    assert_eq!(store.triggers_on(TENANT, "event", "x").await.unwrap().len(), 0);
    assert_eq!(store.agenda(at(99)).await.unwrap().trigger, None, "no sensor looks");
    register(
        &*store,
        "h2",
        &[trigger("b", event("x")), trigger("c", sensor("/in")), trigger("d", event("x"))],
    )
    .await;
    assert!(paused("d").await.is_some(), "a new one pauses, too");
    store.pause_workflow(TENANT, "example", None, at(50)).await.unwrap();
    assert_eq!((paused("b").await, paused("c").await, paused("d").await), (Some(own), None, None));
    assert_eq!(store.trigger(&key("c")).await.unwrap().unwrap().due_at, Some(at(50)), "it looks at once");
}

//! Claims about what has expired.

use model::{RunId, RunState, TaskIndex};
use serde_json::json;
use store::{LogChunk, LogLine, Part};

use crate::Subject;
use crate::example::{TENANT, at, event, example, finish, key, record, run, step};

async fn ended(store: &Subject, number: u128) -> RunId {
    let id = example(&**store, number).await;
    step(&**store, id, |changes| {
        changes.outputs = vec![(TaskIndex(0), json!({"rows": number as u64}))];
        record(changes, &[event(1)]);
    })
    .await
    .unwrap();
    let line = LogLine { at: at(1), stream: "stdout".into(), level: "info".into(), line: "hello".into() };
    let chunk = LogChunk { key: key(id, 0), attempt: 1, first: 0, lines: vec![line] };
    store.append_log(&chunk).await.unwrap();
    finish(&**store, id).await;
    id
}

async fn expired(store: &Subject, part: Part, id: RunId) -> Vec<RunId> {
    let end = run(&**store, id).await.finished_at.unwrap();
    store.expired(part, run(&**store, id).await.state, end).await.unwrap()
}

pub(crate) async fn a_turn_is_taken_once(store: Subject) {
    assert!(store.take_retention(at(0), at(60)).await.unwrap());
    assert!(!store.take_retention(at(59), at(99)).await.unwrap());
    assert!(store.take_retention(at(60), at(70)).await.unwrap());
    store.rest_retention(at(1_000)).await.unwrap();
    assert!(!store.take_retention(at(999), at(9_999)).await.unwrap());
    assert_eq!(store.agenda(at(0)).await.unwrap().retention, Some(at(1_000)));
}

pub(crate) async fn runs_that_ended_long_ago_come_in_the_order_of_their_ends(store: Subject) {
    let (one, two) = (ended(&store, 1).await, ended(&store, 2).await);
    example(&*store, 3).await;
    let state = run(&*store, one).await.state;
    let end = run(&*store, one).await.finished_at.unwrap();
    for part in [Part::Outputs, Part::Logs, Part::Whole] {
        assert_eq!(store.expired(part, state, end).await.unwrap(), [one, two]);
        assert_eq!(store.expired(part, state, end - chrono::TimeDelta::seconds(1)).await.unwrap(), []);
        assert_eq!(store.expired(part, RunState::Succeeded, end).await.unwrap(), []);
    }
}

pub(crate) async fn parts_are_forgotten_once_and_the_rest_stays(store: Subject) {
    let (one, two) = (ended(&store, 1).await, ended(&store, 2).await);
    assert_eq!(
        store.documents(Part::Outputs, &[one]).await.unwrap(),
        [json!({"run": one, "task": 0, "output": {"rows": 1}})]
    );
    let logs = store.documents(Part::Logs, &[one]).await.unwrap();
    assert_eq!((logs.len(), &logs[0]["lines"][0]["line"]), (1, &json!("hello")));
    store.forget(Part::Outputs, &[one]).await.unwrap();
    assert_eq!(expired(&store, Part::Outputs, one).await, [two]);
    assert_eq!(expired(&store, Part::Logs, one).await, [one, two]);
    assert!(store.outputs(one, &[TaskIndex(0)]).await.unwrap().is_empty());
    assert_eq!(store.outputs(two, &[TaskIndex(0)]).await.unwrap().len(), 1);
    assert_eq!(store.log(key(one, 0), 1, 0, 9).await.unwrap().len(), 1);
    store.forget(Part::Logs, &[one, two]).await.unwrap();
    assert_eq!(expired(&store, Part::Logs, one).await, []);
    assert!(store.log(key(one, 0), 1, 0, 9).await.unwrap().is_empty());
    store.forget(Part::Outputs, &[]).await.unwrap();
    assert!(store.run(TENANT, one).await.unwrap().is_some());
}

pub(crate) async fn a_run_tells_whether_its_outputs_are_forgotten(store: Subject) {
    let (one, two) = (ended(&store, 1).await, ended(&store, 2).await);
    store.forget(Part::Outputs, &[one]).await.unwrap();
    let mut unit = store.begin().await.unwrap();
    let runs = unit.lock(&[one, two]).await.unwrap();
    assert!(unit.has_forgotten_outputs(&runs[0]).await.unwrap());
    assert!(!unit.has_forgotten_outputs(&runs[1]).await.unwrap());
    let open = model::Run { finished_at: None, ..runs[0].clone() };
    assert!(!unit.has_forgotten_outputs(&open).await.unwrap());
}

pub(crate) async fn a_run_is_forgotten_with_all_its_rows(store: Subject) {
    let (one, two) = (ended(&store, 1).await, ended(&store, 2).await);
    let document = store.documents(Part::Whole, &[one]).await.unwrap().remove(0);
    assert_eq!(
        (&document["run"]["id"], &document["facts"]["inputs"]["day"]),
        (&json!(one), &json!("2026-01-31"))
    );
    for part in ["tasks", "outputs", "logs", "events"] {
        assert!(!document[part].as_array().unwrap().is_empty(), "{part} in {document}");
    }
    for _ in 0..2 {
        store.forget(Part::Whole, &[one]).await.unwrap();
        assert!(store.run(TENANT, one).await.unwrap().is_none());
        assert!(store.events(one, 0, 9).await.unwrap().is_empty());
        assert!(store.run_tasks(one, None, None, 9).await.unwrap().is_empty());
    }
    assert_eq!(expired(&store, Part::Whole, two).await, [two]);
    assert_eq!(store.run_tasks(two, None, None, 9).await.unwrap().len(), 3);
}

pub(crate) async fn a_run_that_has_not_ended_is_not_forgotten(store: Subject) {
    let id = example(&*store, 1).await;
    store.forget(Part::Whole, &[id]).await.unwrap();
    assert_eq!(store.run_tasks(id, None, None, 9).await.unwrap().len(), 3);
}

//! Claims about how far attempts have come.

use std::collections::BTreeMap;

use model::{Done, ProgressReport};
use serde_json::json;
use store::{Checkpoint, Part};

use crate::Subject;
use crate::example::{at, example, finish, key, run_id};

pub(crate) async fn the_last_word_of_the_latest_attempt_stands(store: Subject) {
    let run = example(&*store, 1).await;
    let said = |attempt, second, data| Checkpoint { attempt, at: at(second), data };
    assert_eq!(store.checkpoint(key(run, 0)).await.unwrap(), None);
    for (checkpoint, kept) in [
        (said(1, 1, json!({"rows": 10})), true),
        (said(1, 2, json!({"phase": "load", "state": {"rows": 20}})), true),
        (said(2, 3, json!("a\u{0}b")), true),
        (said(1, 4, json!({"rows": 30})), false),
    ] {
        assert_eq!(store.keep_checkpoint(key(run, 0), &checkpoint).await.unwrap(), kept, "{checkpoint:?}");
    }
    assert_eq!(store.checkpoint(key(run, 0)).await.unwrap(), Some(said(2, 3, json!("a\u{0}b"))));
    assert_eq!(store.checkpoint(key(run, 1)).await.unwrap(), None);
    let phases = store.progress(key(run, 0)).await.unwrap();
    let phases: Vec<_> = phases.iter().map(|one| (one.attempt, one.at, one.phase.as_deref())).collect();
    assert_eq!(phases, [(1, at(2), Some("load"))], "its phase is part of the attempt's progress");
    finish(&*store, run).await;
    store.forget(Part::Whole, &[run]).await.unwrap();
    assert_eq!(store.checkpoint(key(run, 0)).await.unwrap(), None, "it is gone with its run");
}

pub(crate) async fn each_attempt_has_the_progress_that_it_reported(store: Subject) {
    let run = example(&*store, 1).await;
    let report = |attempt, second| ProgressReport::new(attempt, at(second));
    let done = |fraction, message: Option<&str>| Some(Done { fraction, message: message.map(str::to_owned) });
    let rows = |value| BTreeMap::from([("rows".to_owned(), value)]);
    for report in [
        ProgressReport { done: done(0.25, Some("loading")), metrics: rows(1.5), ..report(1, 1) },
        ProgressReport { metrics: rows(2.5), phase: Some("load".to_owned()), ..report(1, 2) },
        ProgressReport { done: done(0.5, None), ..report(2, 3) },
    ] {
        store.report_progress(key(run, 0), &report).await.unwrap();
    }
    let found = store.progress(key(run, 0)).await.unwrap();
    let facts: Vec<_> = found.iter().map(|one| (one.attempt, one.at, one.phase.as_deref())).collect();
    assert_eq!(facts, [(1, at(2), Some("load")), (2, at(3), None)]);
    assert_eq!((&found[0].done, &found[1].done), (&done(0.25, Some("loading")), &done(0.5, None)));
    let points = [(at(1).timestamp_millis(), 1.5), (at(2).timestamp_millis(), 2.5)];
    assert_eq!(found[0].metrics["rows"].0, points);
    assert_eq!(store.progress(key(run, 1)).await.unwrap(), []);
    store.report_progress(key(run_id(99), 0), &report(1, 1)).await.unwrap();
    assert_eq!(store.progress(key(run_id(99), 0)).await.unwrap(), [], "there is no such run");
    finish(&*store, run).await;
    store.forget(Part::Whole, &[run]).await.unwrap();
    assert_eq!(store.progress(key(run, 0)).await.unwrap(), [], "it is gone with its run");
}

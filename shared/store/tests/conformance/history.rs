//! Claims about what is appended and never changed: events, attempts, logs.

use model::{AttemptRecord, Changes, Failure, RunId, TaskIndex, TaskState};
use store::{LogChunk, LogLine, MAX_LOG_LINES};

use crate::Subject;
use crate::example::{at, event, example, key, record, step, worker};

async fn write_events(store: &Subject, id: RunId) {
    step(&**store, id, |changes| record(changes, &[event(0), event(1), event(2)])).await.unwrap();
    step(&**store, id, |_| {}).await.unwrap();
    step(&**store, id, |changes| record(changes, &[event(3), event(4)])).await.unwrap();
}

pub(crate) async fn events_are_numbered_across_saves(store: Subject) {
    let id = example(&*store, 1).await;
    write_events(&store, id).await;
    let all: Vec<_> = (0..5).map(|number| (number, event(number))).collect();
    assert_eq!(store.events(id, 0, 100).await.unwrap(), all);
    assert_eq!(store.events(id, 5, 100).await.unwrap(), []);
}

pub(crate) async fn events_can_be_read_from_the_middle_of_a_save(store: Subject) {
    let id = example(&*store, 1).await;
    write_events(&store, id).await;
    assert_eq!(store.events(id, 2, 2).await.unwrap(), [(2, event(2)), (3, event(3))]);
    assert_eq!(store.events(id, 4, 2).await.unwrap(), [(4, event(4))]);
    assert_eq!(store.events(id, 1, 0).await.unwrap(), []);
}

pub(crate) async fn an_event_number_is_used_once(store: Subject) {
    let id = example(&*store, 1).await;
    let forgetful = |changes: &mut Changes| {
        changes.run.events = 1;
        changes.events = vec![event(0)];
    };
    step(&*store, id, forgetful).await.unwrap();
    assert!(step(&*store, id, forgetful).await.is_err());
}

fn over(attempt: u32, state: TaskState, decision: &str) -> AttemptRecord {
    AttemptRecord {
        task: TaskIndex(1),
        attempt,
        state,
        worker: Some(worker(3)),
        started_at: Some(at(1)),
        finished_at: at(2),
        failure: (state == TaskState::Failed).then(|| Failure {
            signal: Some(9),
            detail: Some(serde_json::json!({"rows": [1, 2]})),
            ..Failure::transient("lost \0 it")
        }),
        decision: decision.to_owned(),
        next_attempt_at: (state == TaskState::Failed).then(|| at(32)),
    }
}

pub(crate) async fn attempts_are_kept_oldest_first(store: Subject) {
    let id = example(&*store, 1).await;
    let (first, second) = (over(1, TaskState::Failed, "again in 30 s"), over(2, TaskState::Cancelled, "no"));
    step(&*store, id, |changes| changes.attempts = vec![second.clone()]).await.unwrap();
    step(&*store, id, |changes| changes.attempts = vec![first.clone()]).await.unwrap();
    assert_eq!(store.attempts(key(id, 1)).await.unwrap(), [first, second]);
    assert_eq!(store.attempts(key(id, 0)).await.unwrap(), []);
}

pub(crate) async fn the_later_word_about_an_attempt_stands(store: Subject) {
    let id = example(&*store, 1).await;
    let (given_up, delivered) =
        (over(1, TaskState::Failed, "too late"), over(1, TaskState::Succeeded, "after all"));
    step(&*store, id, |changes| changes.attempts = vec![given_up]).await.unwrap();
    step(&*store, id, |changes| changes.attempts = vec![delivered.clone()]).await.unwrap();
    assert_eq!(store.attempts(key(id, 1)).await.unwrap(), [delivered]);
}

fn line(text: &str) -> LogLine {
    LogLine { at: at(1), stream: "stdout".to_owned(), level: "info".to_owned(), line: text.to_owned() }
}

fn chunk(id: RunId, attempt: u32, first: u32, lines: &[&str]) -> LogChunk {
    LogChunk { key: key(id, 1), attempt, first, lines: lines.iter().map(|text| line(text)).collect() }
}

pub(crate) async fn log_lines_are_numbered_across_chunks(store: Subject) {
    let id = example(&*store, 1).await;
    store.append_log(&chunk(id, 1, 2, &["c \0", "d"])).await.unwrap();
    store.append_log(&chunk(id, 1, 0, &["a", "b"])).await.unwrap();
    store.append_log(&chunk(id, 1, 4, &[])).await.unwrap();
    let all = [(0, line("a")), (1, line("b")), (2, line("c \0")), (3, line("d"))];
    assert_eq!(store.log(key(id, 1), 1, 0, 100).await.unwrap(), all);
    assert_eq!(store.log(key(id, 1), 1, 1, 2).await.unwrap(), all[1..3]);
    assert_eq!(store.log(key(id, 1), 1, 3, 100).await.unwrap(), all[3..]);
    assert_eq!(store.log(key(id, 1), 1, 4, 100).await.unwrap(), []);
}

pub(crate) async fn the_same_chunk_again_changes_nothing(store: Subject) {
    let id = example(&*store, 1).await;
    store.append_log(&chunk(id, 1, 0, &["a", "b"])).await.unwrap();
    store.append_log(&chunk(id, 1, 0, &["x"])).await.unwrap();
    assert_eq!(store.log(key(id, 1), 1, 0, 100).await.unwrap(), [(0, line("a")), (1, line("b"))]);
}

pub(crate) async fn a_log_is_cut_where_it_becomes_too_long(store: Subject) {
    let id = example(&*store, 1).await;
    let long = "x".repeat(1_000_000);
    for number in 0..20 {
        store.append_log(&chunk(id, 1, number, &[&long])).await.unwrap();
    }
    let kept = store.log(key(id, 1), 1, 0, 100).await.unwrap();
    let (last, lines) = kept.split_last().unwrap();
    assert!(lines.iter().all(|(_, line)| line.line == long) && lines.len() == 10, "{} lines", lines.len());
    assert_eq!((last.0, &last.1.line, last.1.stream.as_str()), (10, &store::log_cut(), "system"));
    // Many short lines, and then no more of them.
    let end = MAX_LOG_LINES as u32;
    store.append_log(&chunk(id, 2, end - 1, &["a", "b", "c", "d"])).await.unwrap();
    store.append_log(&chunk(id, 2, end + 3, &["e"])).await.unwrap();
    let kept = store.log(key(id, 1), 2, 0, 100).await.unwrap();
    assert_eq!(
        kept.iter().map(|(_, line)| line.line.clone()).collect::<Vec<_>>(),
        ["a", "b", &store::log_cut()]
    );
    // A chunk that begins before the last one was received before.
    for first in [0, 5, 3] {
        store.append_log(&chunk(id, 3, first, &["f"])).await.unwrap();
    }
    let kept = store.log(key(id, 1), 3, 0, 100).await.unwrap();
    assert_eq!(kept.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 5]);
}

pub(crate) async fn logs_of_attempts_are_kept_apart(store: Subject) {
    let id = example(&*store, 1).await;
    store.append_log(&chunk(id, 1, 0, &["a"])).await.unwrap();
    store.append_log(&chunk(id, 2, 0, &["b"])).await.unwrap();
    assert_eq!(store.log(key(id, 1), 2, 0, 100).await.unwrap(), [(0, line("b"))]);
    assert_eq!(store.log(key(id, 0), 1, 0, 100).await.unwrap(), []);
}

//! Claims about what is appended and never changed: events, attempts, logs.

use model::{AttemptRecord, Changes, Failure, RunId, TaskIndex, TaskState};
use store::{LogChunk, LogLine};

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
        failure: (state == TaskState::Failed).then(|| Failure::transient("lost \0 it")),
        decision: decision.to_owned(),
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

pub(crate) async fn logs_of_attempts_are_kept_apart(store: Subject) {
    let id = example(&*store, 1).await;
    store.append_log(&chunk(id, 1, 0, &["a"])).await.unwrap();
    store.append_log(&chunk(id, 2, 0, &["b"])).await.unwrap();
    assert_eq!(store.log(key(id, 1), 2, 0, 100).await.unwrap(), [(0, line("b"))]);
    assert_eq!(store.log(key(id, 0), 1, 0, 100).await.unwrap(), []);
}

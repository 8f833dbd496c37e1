//! Sensors: looks by timer, giving up, and what a report means.

use chrono::TimeDelta;
use ebbflow_engine::{By, Command, Directive, Graph, Operation, Outcome};
use model::message::{PollTarget, TaskResult};
use model::{ErrorClass, Failure, Instant, Message, Pacing, TaskIndex, TaskKind, TimerKind, Workflow};
use serde_json::json;

use crate::rows::Rows;

const SENSOR: TaskIndex = TaskIndex(0);

fn sensor(change: impl Fn(&mut Pacing)) -> Workflow {
    let mut workflow = testkit::workflow("poll -> after");
    let mut pacing = Pacing {
        interval_seconds: 10,
        factor: 2.0,
        max_interval_seconds: 60,
        timeout_seconds: Some(100),
        soft_fail: false,
        max_failures: 3,
        max_events_per_hour: 10,
    };
    change(&mut pacing);
    workflow.tasks[0].kind = TaskKind::Sensor;
    workflow.tasks[0].pacing = Some(pacing);
    workflow
}

fn sensing(change: impl Fn(&mut Pacing)) -> Rows {
    Rows::directed(sensor(change), |_: &Graph, _| Directive::Poll)
}

fn wake(rows: &mut Rows, kind: TimerKind) -> Outcome {
    rows.decide(&Command::Wake { task: Some(SENSOR), attempt: 1, kind })
}

fn report(rows: &mut Rows, attempt: u32, result: TaskResult) -> Outcome {
    let started_at = rows.now;
    rows.decide(&Command::Report { task: SENSOR, attempt, worker: None, started_at, result })
}

/// The attempts for which a poll was requested.
fn asked(rows: &Rows) -> Vec<u32> {
    let looks = rows.announced.iter().filter_map(|message| match message {
        Message::PollDue(due) => match &due.target {
            PollTarget::Task { attempt, .. } => Some(*attempt),
            PollTarget::Trigger { .. } => None,
        },
        _ => None,
    });
    looks.collect()
}

/// When the next poll is due, in seconds from the beginning.
fn next_poll(rows: &Rows, began: Instant) -> i64 {
    // Of two of one kind, the later one stands.
    let timer = rows.timers.iter().rfind(|timer| timer.kind == TimerKind::Sleep).unwrap();
    (timer.wake_at - began).num_seconds()
}

#[test]
fn a_sensor_sleeps_between_polls_that_grow_apart_and_holds_no_slot() {
    let mut rows = sensing(|_| {});
    let began = rows.now;
    assert_eq!(rows.stand(), "poll=sleeping after=pending run=running");
    assert_eq!((asked(&rows), next_poll(&rows, began)), (vec![1], 10));
    for (second, next) in [(10, 30), (30, 70), (70, 130)] {
        rows.now = began + TimeDelta::seconds(second);
        rows.announced.clear();
        assert_eq!(wake(&mut rows, TimerKind::Sleep), Outcome::Applied);
        assert_eq!((asked(&rows), next_poll(&rows, began)), (vec![1], next));
    }
    assert_eq!(rows.stand(), "poll=sleeping after=pending run=running");
}

fn polled(rows: &mut Rows, attempt: u32, failure: Option<&str>) -> Outcome {
    let failure = failure.map(Failure::transient);
    rows.decide(&Command::Polled { task: SENSOR, attempt, failure })
}

#[test]
fn why_a_poll_failed_is_noted_once_until_it_is_otherwise() {
    let mut rows = sensing(|_| {});
    assert_eq!(polled(&mut rows, 1, None), Outcome::Stale, "there was nothing to see, as ever");
    assert_eq!(polled(&mut rows, 2, Some("refused")), Outcome::Stale, "another attempt");
    assert_eq!(polled(&mut rows, 1, Some("refused")), Outcome::Applied);
    assert_eq!(polled(&mut rows, 1, Some("refused")), Outcome::Stale, "nothing changed");
    assert_eq!(polled(&mut rows, 1, Some("reset")), Outcome::Applied);
    assert_eq!(rows.stand(), "poll=sleeping after=pending run=running");
    // The next poll knows that this one failed, so it reports when the source is back.
    rows.announced.clear();
    wake(&mut rows, TimerKind::Sleep);
    let notes_failure = |message: &Message| matches!(message, Message::PollDue(due) if matches!(due.target, PollTarget::Task { failed: true, .. }));
    assert!(rows.announced.iter().any(notes_failure));
    assert_eq!(polled(&mut rows, 1, None), Outcome::Applied);
    assert_eq!(polled(&mut rows, 1, Some("refused")), Outcome::Applied);
    wake(&mut rows, TimerKind::Timeout);
    let failure = rows.tasks[&SENSOR].failure.clone().unwrap();
    assert_eq!(failure.message, "timed out while waiting; its last poll failed: refused");
    assert_eq!(polled(&mut rows, 1, None), Outcome::Stale, "it has ended");
}

#[test]
fn what_a_sensor_saw_is_its_output_and_ends_its_timers() {
    let mut rows = sensing(|_| {});
    assert_eq!(report(&mut rows, 1, TaskResult::Succeeded(json!({"rows": 3}))), Outcome::Applied);
    assert_eq!(rows.stand(), "poll=succeeded after=dispatched run=running");
    assert_eq!((rows.outputs.clone(), rows.timers.len()), (vec![(SENSOR, json!({"rows": 3}))], 0));
    // The report of another poll at the same time is stale.
    assert_eq!(report(&mut rows, 1, TaskResult::Succeeded(json!({"rows": 4}))), Outcome::Stale);
    assert_eq!(wake(&mut rows, TimerKind::Sleep), Outcome::Stale);
}

#[test]
fn a_sensor_that_sees_nothing_in_time_fails_or_is_skipped() {
    let mut rows = sensing(|_| {});
    assert_eq!(wake(&mut rows, TimerKind::Timeout), Outcome::Applied);
    assert_eq!(rows.stand(), "poll=failed after=upstream_failed run=failed");
    assert_eq!(rows.tasks[&SENSOR].failure.as_ref().unwrap().class, ErrorClass::Timeout);
    let mut rows = sensing(|pacing| pacing.soft_fail = true);
    assert_eq!(wake(&mut rows, TimerKind::Timeout), Outcome::Applied);
    assert_eq!(rows.stand(), "poll=skipped after=skipped run=succeeded");
    assert_eq!(rows.timers.len(), 0);
}

#[test]
fn a_poll_that_can_never_succeed_fails_the_task_or_skips_it() {
    let failure = || TaskResult::Failed(Failure::permanent("no such table"));
    let mut rows = sensing(|_| {});
    assert_eq!(report(&mut rows, 1, failure()), Outcome::Applied);
    assert_eq!(rows.stand(), "poll=failed after=upstream_failed run=failed");
    let mut rows = sensing(|pacing| pacing.soft_fail = true);
    assert_eq!(report(&mut rows, 1, failure()), Outcome::Applied);
    assert_eq!(rows.stand(), "poll=skipped after=skipped run=succeeded");
}

#[test]
fn a_person_can_have_a_sensor_poll_now() {
    let mut rows = sensing(|_| {});
    rows.announced.clear();
    let by = By { actor: "ada".into(), reason: None };
    assert_eq!(rows.decide(&Command::Operate { operation: Operation::Wake(SENSOR), by }), Outcome::Applied);
    assert_eq!(asked(&rows), [1]);
    assert_eq!(rows.stand(), "poll=sleeping after=pending run=running");
}

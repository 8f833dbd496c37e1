//! Attempts that a worker hands back because it has to end.

use model::{ErrorClass, EventKind, TaskIndex, WorkerId};
use uuid::Uuid;

use ebbflow_engine::{Command, Outcome};

use crate::rows::Happened::{Cancel, Claim, Fail, HandBack, Ok as Done};
use crate::rows::Rows;

fn held() -> Rows {
    let mut rows = Rows::of(testkit::workflow("a -> b"));
    rows.play(&Claim("a", 1));
    rows
}

#[test]
fn what_is_handed_back_is_released_at_once_as_the_next_attempt() {
    let mut rows = held();
    rows.play(&HandBack("a", 1));
    assert_eq!(rows.stand(), "a=dispatched b=pending run=running");
    assert_eq!((rows.tasks[&TaskIndex(0)].attempt, rows.dispatches("a")), (2, 2));
    assert!(rows.timers.is_empty(), "nobody waits for it");
    let event = rows.events.iter().find(|event| event.kind == EventKind::TaskHandedBack).unwrap();
    assert_eq!((event.attempt, event.data["reason"].as_str()), (1, Some("asked to stop")));
    let over: Vec<_> = rows.attempts.iter().map(|over| (over.attempt, over.decision.as_str())).collect();
    assert_eq!(over, [(1, "handed back: asked to stop")]);
}

#[test]
fn handing_back_uses_up_no_retry() {
    let mut rows = held().retrying(1);
    for attempt in 1..=3 {
        rows.play(&Claim("a", attempt));
        rows.play(&HandBack("a", attempt));
    }
    rows.play(&Claim("a", 4));
    rows.play(&Fail("a", 4, ErrorClass::Transient));
    assert_eq!(rows.stand(), "a=up_for_retry b=pending run=running", "the one retry is still there");
    let delay = rows.timers[0].wake_at - rows.now;
    assert!(delay.num_milliseconds() <= 1_100, "it is the first retry, whatever its number: {delay}");
    rows.play(&crate::rows::Happened::Wake("a"));
    rows.play(&Fail("a", 5, ErrorClass::Transient));
    assert_eq!(rows.stand(), "a=failed b=upstream_failed run=failed");
}

#[test]
fn handing_back_twice_changes_nothing() {
    let mut rows = held();
    rows.play(&HandBack("a", 1));
    let before = (rows.tasks.clone(), rows.events.len());
    rows.play(&HandBack("a", 1));
    assert_eq!((rows.tasks.clone(), rows.events.len()), before);
}

#[test]
fn only_the_worker_that_holds_an_attempt_hands_it_back() {
    let mut rows = held();
    let worker = WorkerId(Uuid::from_u128(8));
    let stranger =
        Command::HandBack { task: TaskIndex(0), attempt: 1, worker, reason: "x".into(), saved: false };
    assert_eq!(rows.decide(&stranger), Outcome::Stale);
    assert_eq!(rows.stand(), "a=running b=pending run=running");
}

#[test]
fn what_has_ended_is_not_handed_back() {
    for end in [Done("a", 1), Cancel] {
        let mut rows = held();
        rows.play(&end);
        let before = rows.stand();
        rows.play(&HandBack("a", 1));
        assert_eq!(rows.stand(), before, "after {end:?}");
    }
}

#[test]
fn a_late_success_of_an_attempt_that_was_handed_back_counts() {
    let mut rows = held();
    rows.play(&HandBack("a", 1));
    rows.play(&Claim("a", 2));
    rows.play(&Done("a", 1));
    assert_eq!(rows.stand(), "a=succeeded b=dispatched run=running");
    rows.play(&Done("a", 2));
    assert_eq!(rows.dispatches("b"), 1);
}

#[test]
fn a_late_failure_of_an_attempt_that_was_handed_back_does_not_count() {
    let mut rows = held();
    rows.play(&HandBack("a", 1));
    rows.play(&Claim("a", 2));
    rows.play(&Fail("a", 1, ErrorClass::Permanent));
    assert_eq!(rows.stand(), "a=running b=pending run=running");
}

//! Reports of remote workers: which count, which were recorded before, and which come too late.

use ebbflow_engine::reports::{End, ReportedAttempt, Standing};
use ebbflow_engine::{By, Command, ExpectedTask, Operation, Outcome};
use model::message::TaskResult;
use model::{ErrorClass, Failure, TaskIndex, TaskState, WorkerId};
use serde_json::json;
use uuid::Uuid;

use crate::rows::Happened::{Cancel, Claim, Fail, HandBack, Lose, Ok as Done, Wake};
use crate::rows::{Happened, Rows};

const TASK: TaskIndex = TaskIndex(0);
const WORKER: WorkerId = WorkerId(Uuid::from_u128(9));
const OTHER: WorkerId = WorkerId(Uuid::from_u128(8));
const REPORTED: ReportedAttempt = ReportedAttempt { task: TASK, attempt: 1, worker: WORKER };

/// Rows whose first task was leased to a worker.
fn leased() -> Rows {
    let mut workflow = testkit::workflow("a -> b");
    for task in &mut workflow.tasks {
        (task.queue, task.leased) = ("gpu".to_owned(), true);
    }
    let mut rows = Rows::of(workflow).retrying(3);
    rows.play(&Claim("a", 1));
    rows
}

fn success(expected: ExpectedTask, worker: WorkerId, started_at: model::Instant) -> Command {
    let result = TaskResult::Succeeded(json!({"rows": 7}));
    let report =
        Command::Report { task: TASK, attempt: REPORTED.attempt, worker: Some(worker), started_at, result };
    Command::Expecting { task: expected, then: Box::new(report) }
}

fn claim(attempt: u32) -> Command {
    Command::Claim { task: TASK, attempt, worker: OTHER }
}

fn standing(rows: &Rows, end: &End) -> Standing {
    let history: Vec<_> = rows.events.iter().filter(|event| REPORTED.concerns(event)).cloned().collect();
    REPORTED.standing(end, &rows.tasks[&TASK], &history)
}

/// Settles a success as its standing says.
fn complete(rows: &mut Rows) -> Option<Outcome> {
    match standing(rows, &End::Succeeded) {
        Standing::Counts { expected, started_at } => {
            Some(rows.decide(&success(expected, WORKER, started_at)))
        }
        Standing::Recorded | Standing::Lost => None,
    }
}

#[test]
fn a_success_counts_while_its_worker_holds_the_attempt() {
    let mut rows = leased();
    let stranger = ReportedAttempt { worker: OTHER, ..REPORTED };
    assert_eq!(rows.decide(&success(stranger.held(), OTHER, rows.now)), Outcome::Stale);
    let next = ReportedAttempt { attempt: 2, ..REPORTED };
    assert_eq!(rows.decide(&success(next.held(), WORKER, rows.now)), Outcome::Stale);
    assert_eq!(rows.stand(), "a=running b=pending run=running");
    assert_eq!(rows.decide(&success(REPORTED.held(), WORKER, rows.now)), Outcome::Applied);
    assert_eq!(rows.stand(), "a=succeeded b=dispatched run=running");
    assert_eq!(rows.decide(&success(REPORTED.held(), WORKER, rows.now)), Outcome::Stale);
    assert_eq!(standing(&rows, &End::Succeeded), Standing::Recorded);
}

#[test]
fn a_success_counts_after_its_attempt_was_taken_away_until_another_worker_starts_the_next() {
    for taken in [Lose("a", 1), HandBack("a", 1)] {
        let mut rows = leased();
        rows.play(&taken);
        assert_eq!(rows.decide(&success(REPORTED.held(), WORKER, rows.now)), Outcome::Stale, "{taken:?}");
        assert_eq!(complete(&mut rows), Some(Outcome::Applied), "{taken:?}");
        assert_eq!(rows.stand(), "a=succeeded b=dispatched run=running", "{taken:?}");
        assert_eq!(standing(&rows, &End::Succeeded), Standing::Recorded, "{taken:?}");
        assert_eq!(rows.decide(&claim(2)), Outcome::Stale, "nobody needs to do it again");
        let over: Vec<_> = rows.attempts.iter().map(|over| (over.attempt, over.state, over.worker)).collect();
        let expected = [(1, TaskState::Succeeded, Some(WORKER)), (2, TaskState::Cancelled, None)];
        assert_eq!(over[over.len() - 2..], expected, "{taken:?}");

        let mut rows = leased();
        rows.play(&taken);
        rows.decide(&claim(2));
        assert_eq!(standing(&rows, &End::Succeeded), Standing::Lost, "{taken:?}");
        // The other worker lost it, too.
        rows.decide(&Command::Lose { task: TASK, attempt: 2, worker: OTHER });
        assert_eq!(standing(&rows, &End::Succeeded), Standing::Lost, "{taken:?}");
    }
}

#[test]
fn a_claim_that_comes_between_the_read_and_the_report_wins() {
    let mut rows = leased();
    rows.play(&Lose("a", 1));
    let Standing::Counts { expected, started_at } = standing(&rows, &End::Succeeded) else { panic!() };
    let late = success(expected, WORKER, started_at);
    assert_eq!(rows.decide_all(&[claim(2), late.clone()]), [Outcome::Applied, Outcome::Stale]);
    assert_eq!(rows.stand(), "a=running b=pending run=running");
    let fail = TaskResult::Failed(Failure::transient("no"));
    rows.decide(&Command::Report { task: TASK, attempt: 2, worker: Some(OTHER), started_at, result: fail });
    assert_eq!(rows.decide(&late), Outcome::Stale, "the next attempt was begun, and has failed");
    assert_eq!(rows.stand(), "a=up_for_retry b=pending run=running");
}

#[test]
fn a_success_counts_while_the_next_attempt_waits_for_its_delay() {
    let mut rows = leased();
    rows.play(&Fail("a", 1, ErrorClass::Timeout));
    assert_eq!(rows.stand(), "a=up_for_retry b=pending run=running");
    assert_eq!(complete(&mut rows), Some(Outcome::Applied));
    assert_eq!(rows.stand(), "a=succeeded b=dispatched run=running");
    assert!(rows.timers.is_empty());
    let last = rows.attempts.last().unwrap();
    assert_eq!((last.attempt, last.state, last.worker), (1, TaskState::Succeeded, Some(WORKER)));
}

#[test]
fn what_its_worker_or_a_person_ended_is_not_completed_late() {
    let endings: [&[Happened]; 3] = [
        &[Fail("a", 1, ErrorClass::Transient)],
        &[Fail("a", 1, ErrorClass::ProgramFailed), Wake("a")],
        &[Lose("a", 1), Cancel],
    ];
    for ending in endings {
        let mut rows = leased();
        ending.iter().for_each(|happened| rows.play(happened));
        assert_eq!(standing(&rows, &End::Succeeded), Standing::Lost, "after {ending:?}");
    }
    let mut rows = leased();
    let by = By { actor: "ada".into(), reason: None };
    rows.play(&Lose("a", 1));
    rows.decide(&Command::Operate { operation: Operation::Clear(TASK), by });
    assert_eq!(standing(&rows, &End::Succeeded), Standing::Lost, "its attempts are void");
}

#[test]
fn only_the_worker_that_started_an_attempt_may_complete_it_late() {
    let mut rows = leased();
    rows.play(&Lose("a", 1));
    let stranger = ReportedAttempt { worker: OTHER, ..REPORTED };
    assert_eq!(stranger.standing(&End::Succeeded, &rows.tasks[&TASK], &rows.events), Standing::Lost);
    let never_started = ReportedAttempt { attempt: 2, ..REPORTED };
    assert_eq!(never_started.standing(&End::Succeeded, &rows.tasks[&TASK], &rows.events), Standing::Lost);
}

#[test]
fn failures_and_hand_backs_count_only_while_the_attempt_is_held() {
    let mut rows = leased();
    let failed = End::Failed(Failure::transient("trouble"));
    for end in [&failed, &End::HandedBack] {
        assert!(matches!(standing(&rows, end), Standing::Counts { .. }), "{end:?}");
    }
    rows.play(&Lose("a", 1));
    for end in [&failed, &End::HandedBack] {
        assert_eq!(standing(&rows, end), Standing::Lost, "{end:?}");
    }
    for (happened, end) in [
        (HandBack("a", 1), &End::HandedBack),
        (Fail("a", 1, ErrorClass::Transient), &failed),
        (Done("a", 1), &End::Succeeded),
    ] {
        let mut rows = leased();
        rows.play(&happened);
        assert_eq!(standing(&rows, end), Standing::Recorded, "{end:?}");
        assert!(REPORTED.was_ended_by_worker(&rows.events), "{end:?}");
    }
    assert!(!REPORTED.was_ended_by_worker(&rows.events), "it was lost");
}

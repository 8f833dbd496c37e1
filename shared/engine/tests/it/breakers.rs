//! Claims of attempts that had their slot before their breaker opened.

use ebbflow_engine::{Command, Outcome};
use model::{BreakerGate, BreakerKey, BreakerSpec, EventKind, TaskIndex, TaskState, WorkerId};
use uuid::Uuid;

use crate::rows::Happened::{Claim, Fail};
use crate::rows::Rows;

const TASK: TaskIndex = TaskIndex(0);

/// Rows whose first task is dispatched, leased and has a breaker.
fn rows() -> Rows {
    let mut workflow = testkit::workflow("a -> b");
    let task = &mut workflow.tasks[0];
    (task.breaker, task.leased, task.idempotent) = (Some(BreakerSpec::default()), true, Some(false));
    Rows::of(workflow)
}

fn claim(rows: &mut Rows, attempt: u32) -> Outcome {
    rows.decide(&Command::Claim { task: TASK, attempt, worker: WorkerId(Uuid::from_u128(9)) })
}

/// The breaker of the first task opens, or lets a probe through, while this many attempts have its slots.
fn open(rows: &mut Rows, probing: bool, used: u32) {
    let key = BreakerKey::of_task(rows.run.tenant, &rows.run.workflow, "a");
    rows.gates = vec![BreakerGate { key, probing, used }];
}

#[test]
fn an_open_breaker_takes_back_an_attempt_that_nobody_has_claimed() {
    let mut rows = rows();
    open(&mut rows, false, 1);
    rows.full = true;
    assert_eq!(claim(&mut rows, 1), Outcome::Stale);
    assert_eq!(rows.stand(), "a=queued b=pending run=running");
    let released: Vec<(TaskIndex, bool)> =
        rows.left.iter().map(|release| (release.key.task, release.holds_slots)).collect();
    assert_eq!(released, [(TASK, true)], "it gives its slots back once");
    assert!(rows.offers.is_empty(), "no worker is offered it");
    let task = &rows.tasks[&TASK];
    assert_eq!((task.attempt, task.tries(), task.worker), (2, 1, None), "no retry is used");
    let event = rows.events.iter().find(|event| event.kind == EventKind::TaskHandedBack).unwrap();
    let name = format!("{}/a", rows.run.workflow);
    assert_eq!(event.data["reason"], format!("the circuit breaker of `{name}` is open"));
    assert_eq!((rows.attempts[0].attempt, rows.attempts[0].started_at), (1, None));
    assert_eq!(claim(&mut rows, 1), Outcome::Stale, "a duplicate of the message changes nothing");
    assert_eq!(rows.tasks[&TASK].attempt, 2);
}

#[test]
fn while_it_probes_only_the_attempt_that_has_the_slot_alone_begins() {
    for (used, outcome, state) in
        [(1, Outcome::Applied, TaskState::Running), (2, Outcome::Stale, TaskState::Queued)]
    {
        let mut rows = rows();
        open(&mut rows, true, used);
        rows.full = true;
        assert_eq!(claim(&mut rows, 1), outcome, "{used}");
        assert_eq!(rows.tasks[&TASK].state, state, "{used}");
    }
}

#[test]
fn an_attempt_that_was_taken_back_is_dispatched_again_if_it_finds_its_slots() {
    let mut rows = rows();
    open(&mut rows, true, 2);
    assert_eq!(claim(&mut rows, 1), Outcome::Stale);
    assert_eq!(rows.stand(), "a=dispatched b=pending run=running");
    assert_eq!(rows.offers[&TASK].attempt, 2, "it is offered as the next attempt");
    open(&mut rows, true, 1);
    assert_eq!(claim(&mut rows, 2), Outcome::Applied);
}

#[test]
fn what_runs_already_goes_on_while_its_breaker_is_open() {
    let mut rows = rows();
    rows.play(&Claim("a", 1));
    open(&mut rows, false, 1);
    assert_eq!(claim(&mut rows, 1), Outcome::Applied, "the response to the first claim was lost");
    assert_eq!(rows.stand(), "a=running b=pending run=running");
    rows.play(&Fail("a", 1, model::ErrorClass::Permanent));
    assert_eq!(rows.stand(), "a=failed b=upstream_failed run=failed");
}

#[test]
fn the_breaker_of_another_task_refuses_nothing() {
    let mut rows = rows();
    open(&mut rows, false, 1);
    rows.gates[0].key.name = "other/a".into();
    assert_eq!(claim(&mut rows, 1), Outcome::Applied);
}

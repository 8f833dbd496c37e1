//! What each command does to a run, told in a short notation: a graph, what happened, and how things stand.

use crate::rows::{Happened, Rows};
use model::{ErrorClass, RunState};

/// Runs a graph through what happened and compares how its tasks stand.
fn check(graph: &str, happened: &[Happened], expected: &str) {
    let mut rows = Rows::of(testkit::workflow(graph));
    happened.iter().for_each(|what| rows.play(what));
    assert_eq!(rows.stand(), expected, "`{graph}` after {happened:?}");
}

use Happened::{Cancel, Claim, Fail, Lose, Ok as Done, Permanent, Wake};

#[test]
fn tasks_without_parents_start_with_the_run() {
    check("a, b, a -> c", &[], "a=dispatched b=dispatched c=pending run=running");
}

#[test]
fn a_join_waits_for_every_parent() {
    let graph = "a -> c, b -> c";
    check(graph, &[Done("a", 1)], "a=succeeded c=pending b=dispatched run=running");
    check(graph, &[Done("a", 1), Done("b", 1)], "a=succeeded c=dispatched b=succeeded run=running");
}

#[test]
fn a_report_that_comes_twice_releases_nothing_twice() {
    let mut rows = Rows::of(testkit::workflow("a -> c, b -> c"));
    rows.play(&Done("a", 1));
    rows.play(&Done("a", 1));
    assert_eq!(rows.stand(), "a=succeeded c=pending b=dispatched run=running");
    assert_eq!(rows.dispatches("c"), 0);
    rows.play(&Done("b", 1));
    rows.play(&Done("b", 1));
    assert_eq!(rows.dispatches("c"), 1);
}

#[test]
fn a_failure_reaches_everything_behind_it_and_nothing_else() {
    check(
        "a -> b, b -> c, a -> d",
        &[Done("a", 1), Permanent("b", 1)],
        "a=succeeded b=failed c=upstream_failed d=dispatched run=running",
    );
    check(
        "a -> b, b -> c, a -> d",
        &[Done("a", 1), Permanent("b", 1), Done("d", 1)],
        "a=succeeded b=failed c=upstream_failed d=succeeded run=failed",
    );
}

#[test]
fn a_transient_failure_waits_for_its_timer_and_comes_again() {
    let mut rows = Rows::of(testkit::workflow("a")).retrying(1);
    rows.play(&Fail("a", 1, ErrorClass::Transient));
    assert_eq!(rows.stand(), "a=up_for_retry run=running");
    assert_eq!(rows.timers.len(), 1);
    rows.play(&Wake("a"));
    assert_eq!(rows.stand(), "a=dispatched run=running");
    assert!(rows.timers.is_empty(), "a fired timer is gone");
    rows.play(&Fail("a", 2, ErrorClass::Transient));
    assert_eq!(rows.stand(), "a=failed run=failed");
    assert_eq!(rows.run.error.as_deref(), Some("task `a` failed: trouble"));
}

#[test]
fn a_late_failure_of_an_earlier_attempt_is_refused() {
    let mut rows = Rows::of(testkit::workflow("a")).retrying(3);
    rows.play(&Fail("a", 1, ErrorClass::Transient));
    rows.play(&Wake("a"));
    rows.play(&Fail("a", 1, ErrorClass::Permanent));
    assert_eq!(rows.stand(), "a=dispatched run=running");
}

#[test]
fn a_late_success_of_an_attempt_given_up_on_counts_once() {
    let mut rows = Rows::of(testkit::workflow("a -> b")).retrying(3);
    rows.play(&Claim("a", 1));
    rows.play(&Lose("a", 1));
    assert_eq!(rows.stand(), "a=dispatched b=pending run=running", "a lost attempt is tried again at once");
    rows.play(&Done("a", 1));
    assert_eq!(rows.stand(), "a=succeeded b=dispatched run=running");
    rows.play(&Done("a", 2));
    rows.play(&Fail("a", 2, ErrorClass::Permanent));
    assert_eq!(rows.stand(), "a=succeeded b=dispatched run=running");
    assert_eq!(rows.dispatches("b"), 1);
}

#[test]
fn an_attempt_is_claimed_once() {
    let mut rows = Rows::of(testkit::workflow("a"));
    rows.play(&Claim("a", 1));
    let before = rows.tasks.clone();
    rows.play(&Claim("a", 1));
    assert_eq!(rows.tasks, before);
}

#[test]
fn cancelling_ends_what_has_not_ended_and_keeps_what_succeeded() {
    check("a -> b, b -> c", &[Done("a", 1), Cancel], "a=succeeded b=cancelled c=cancelled run=cancelled");
    check("a -> b", &[Done("a", 1), Cancel, Done("b", 1)], "a=succeeded b=cancelled run=cancelled");
}

#[test]
fn a_permitted_failure_lets_the_run_succeed() {
    let mut workflow = testkit::workflow("a, b");
    workflow.tasks[0].allow_failure = true;
    let mut rows = Rows::of(workflow);
    rows.play(&Permanent("a", 1));
    rows.play(&Done("b", 1));
    assert_eq!(rows.run.state, RunState::Succeeded);
}

#[test]
fn a_checkup_sends_again_what_nobody_took_and_changes_nothing_else() {
    let mut rows = Rows::of(testkit::workflow("a -> b"));
    let before = rows.tasks.clone();
    rows.play(&Happened::Checkup);
    assert_eq!(rows.dispatches("a"), 2);
    assert_eq!(rows.tasks, before);
}

#[test]
fn completing_a_task_touches_its_neighbours_only() {
    let wide: Vec<String> = (0..1_000).map(|index| format!("p{index} -> join")).collect();
    let mut rows = Rows::of(testkit::workflow(&wide.join(", ")));
    rows.play(&Done("p7", 1));
    assert_eq!(rows.last_written, 2, "the task and the join");
}

#[test]
fn a_late_success_is_told_of_the_attempt_that_it_was() {
    let mut rows = Rows::of(testkit::workflow("a")).retrying(3);
    rows.play(&Claim("a", 1));
    rows.play(&Lose("a", 1));
    rows.play(&Done("a", 1));
    let told: Vec<(u32, &str)> =
        rows.attempts.iter().map(|record| (record.attempt, record.state.name())).collect();
    assert_eq!(told, [(1, "failed"), (1, "succeeded"), (2, "cancelled")]);
    assert_eq!(rows.events.iter().rfind(|event| event.task.is_some()).unwrap().attempt, 1);
}

#[test]
fn a_failure_told_by_someone_who_does_not_hold_the_attempt_is_refused() {
    let mut rows = Rows::of(testkit::workflow("a"));
    rows.play(&Claim("a", 1));
    rows.play(&Happened::FailElsewhere("a", 1));
    assert_eq!(rows.stand(), "a=running run=running");
}

#[test]
fn a_run_that_waited_is_looked_at_soon_after_it_woke() {
    let mut rows = Rows::of(testkit::workflow("a")).retrying(1);
    rows.play(&Fail("a", 1, ErrorClass::Transient));
    rows.play(&Happened::Checkup);
    let asleep = rows.checkup.unwrap() - rows.now;
    rows.play(&Wake("a"));
    let awake = rows.checkup.unwrap() - rows.now;
    assert!(awake.num_seconds() < 60 && asleep > awake, "asleep {asleep}, awake {awake}");
}

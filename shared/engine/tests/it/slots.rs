//! Places: who asks for one, who waits, and who gives one back.

use chrono::TimeDelta;
use ebbflow_engine::{Command, Outcome};
use model::{EventKind, Limit, TaskIndex, TenantId};

use crate::operators::clear;
use crate::rows::{Happened, Rows};

const FIRST: TaskIndex = TaskIndex(0);
const SECOND: TaskIndex = TaskIndex(1);

#[test]
fn a_task_that_finds_no_slot_stays_queued_until_it_is_granted_one() {
    let mut rows = Rows::of(testkit::workflow("a -> b"));
    rows.full = true;
    rows.play(&Happened::Ok("a", 1));
    assert_eq!(rows.stand(), "a=succeeded b=queued run=running");
    let queued = rows.events.iter().find(|event| event.kind == EventKind::TaskQueued).unwrap();
    assert_eq!(queued.data, serde_json::json!({"limit": "queue", "name": "light"}));
    assert_eq!(rows.dispatches("b"), 0);
    rows.full = false;
    assert_eq!(rows.decide(&Command::Release { task: SECOND, attempt: 1 }), Outcome::Applied);
    assert_eq!(rows.stand(), "a=succeeded b=dispatched run=running");
    assert_eq!(rows.dispatches("b"), 1);
    assert_eq!(rows.decide(&Command::Release { task: SECOND, attempt: 1 }), Outcome::Stale);
    assert_eq!(rows.dispatches("b"), 1);
}

#[test]
fn a_grant_for_another_attempt_changes_nothing() {
    let mut rows = Rows::of(testkit::workflow("a -> b"));
    rows.full = true;
    rows.play(&Happened::Ok("a", 1));
    assert_eq!(rows.decide(&Command::Release { task: SECOND, attempt: 2 }), Outcome::Stale);
    assert_eq!(rows.decide(&Command::Release { task: FIRST, attempt: 1 }), Outcome::Stale);
}

#[test]
fn a_task_that_ends_gives_its_slots_back() {
    let mut rows = Rows::of(testkit::workflow("a -> b"));
    rows.play(&Happened::Ok("a", 1));
    let left: Vec<(TaskIndex, bool)> =
        rows.left.iter().map(|leave| (leave.key.task, leave.holds_slots)).collect();
    assert_eq!(left, [(FIRST, true)]);
    let needs: Vec<&Limit> = rows.left[0].needs.iter().map(|need| &need.limit).collect();
    assert_eq!(needs, [&Limit::Tenant(TenantId(1)), &Limit::Queue("light".into())]);
}

#[test]
fn a_claim_keeps_the_slots_and_a_delayed_retry_gives_them_back() {
    let mut rows = Rows::of(testkit::workflow("a")).retrying(3);
    rows.play(&Happened::Claim("a", 1));
    assert!(rows.left.is_empty());
    rows.play(&Happened::Fail("a", 1, model::ErrorClass::Transient));
    assert_eq!(rows.stand(), "a=up_for_retry run=running");
    assert_eq!(rows.left.len(), 1);
}

#[test]
fn a_queued_task_that_is_cancelled_leaves_its_line() {
    let mut rows = Rows::of(testkit::workflow("a -> b"));
    rows.full = true;
    rows.play(&Happened::Ok("a", 1));
    rows.play(&Happened::Cancel);
    let left: Vec<(TaskIndex, bool)> =
        rows.left.iter().map(|leave| (leave.key.task, leave.holds_slots)).collect();
    assert_eq!(left, [(SECOND, false)]);
}

#[test]
fn pools_and_the_workflow_itself_are_asked_before_the_queue() {
    let mut workflow = testkit::workflow("a -> b");
    workflow.max_active_tasks = Some(3);
    workflow.tasks[0].pool = Some("warehouse".into());
    let mut rows = Rows::of(workflow);
    rows.play(&Happened::Ok("a", 1));
    let needs: Vec<(&str, Option<u32>)> =
        rows.left[0].needs.iter().map(|need| (need.limit.kind(), need.slots)).collect();
    assert_eq!(needs, [("pool", None), ("workflow", Some(3)), ("tenant", None), ("queue", None)]);
}

#[test]
fn a_recheck_asks_again_for_those_who_wait() {
    let mut rows = Rows::of(testkit::workflow("a -> b"));
    rows.full = true;
    rows.play(&Happened::Ok("a", 1));
    rows.play(&Happened::Recheck);
    assert_eq!(rows.stand(), "a=succeeded b=queued run=running");
    rows.full = false;
    rows.play(&Happened::Recheck);
    assert_eq!(rows.stand(), "a=succeeded b=dispatched run=running");
}

#[test]
fn a_task_that_is_cleared_gives_back_its_slot_or_leaves_its_wait_queue() {
    let mut rows = Rows::of(testkit::workflow("a"));
    rows.play(&Happened::Claim("a", 1));
    assert_eq!(clear(&mut rows, "a"), Outcome::Applied);
    let left: Vec<(TaskIndex, bool)> =
        rows.left.iter().map(|leave| (leave.key.task, leave.holds_slots)).collect();
    assert_eq!(left, [(FIRST, true)], "and asks again for its next attempt");
    assert_eq!(rows.stand(), "a=dispatched run=running");
    let mut rows = Rows::of(testkit::workflow("a -> b"));
    rows.full = true;
    rows.play(&Happened::Ok("a", 1));
    clear(&mut rows, "a");
    let left: Vec<(TaskIndex, bool)> =
        rows.left.iter().map(|leave| (leave.key.task, leave.holds_slots)).collect();
    assert_eq!(left, [(SECOND, false)]);
    assert_eq!(rows.stand(), "a=queued b=pending run=running");
}

#[test]
fn a_held_run_is_looked_at_soon_again_however_long_it_has_waited() {
    let mut rows = Rows::waiting(testkit::workflow("a"));
    rows.now += TimeDelta::hours(5);
    rows.play(&Happened::Recheck);
    assert!(rows.recheck.unwrap() <= rows.now + TimeDelta::seconds(60));
}

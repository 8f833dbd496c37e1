//! What people do to runs and tasks: pause, resume, retry, clear, mark, wake, evaluate.

use chrono::TimeDelta;
use ebbflow_engine::{By, Command, Directive, Mark, Operation, Outcome};
use model::message::TaskResult;
use model::{ErrorClass, EventKind, Message, RunState, TaskIndex, TaskKind, TaskState, Workflow};
use serde_json::{Value, json};

use crate::rows::{Happened, Rows};

pub(crate) fn by() -> By {
    By { actor: "ana".into(), reason: Some("the disk was full".into()) }
}

pub(crate) fn operate(rows: &mut Rows, operation: Operation) -> Outcome {
    rows.decide(&Command::Operate { operation, by: by() })
}

pub(crate) fn with(graph: &str, change: impl Fn(&mut Workflow)) -> Workflow {
    let mut workflow = testkit::workflow(graph);
    change(&mut workflow);
    workflow
}

fn task(rows: &Rows, name: &str) -> TaskIndex {
    rows.graph.index_of(name).unwrap()
}

pub(crate) fn clear(rows: &mut Rows, name: &str) -> Outcome {
    let task = task(rows, name);
    operate(rows, Operation::Clear(task))
}

pub(crate) fn mark(rows: &mut Rows, name: &str, mark: Mark) -> Outcome {
    let task = task(rows, name);
    operate(rows, Operation::Mark(task, mark))
}

fn kinds(rows: &Rows) -> Vec<EventKind> {
    rows.events.iter().map(|event| event.kind).collect()
}

#[test]
fn a_paused_run_begins_nothing_and_lets_what_runs_finish() {
    let mut rows = Rows::of(testkit::workflow("a -> b, c"));
    rows.play(&Happened::Claim("a", 1));
    assert_eq!(operate(&mut rows, Operation::Pause), Outcome::Applied);
    assert_eq!(operate(&mut rows, Operation::Pause), Outcome::Stale);
    rows.play(&Happened::Ok("a", 1));
    assert_eq!(rows.stand(), "a=succeeded b=pending c=dispatched run=paused");
    rows.play(&Happened::Recheck);
    assert_eq!(rows.stand(), "a=succeeded b=pending c=dispatched run=paused");
    assert_eq!(rows.dispatches("c"), 1, "nothing is dispatched, not even again");
    assert_eq!(rows.recheck, Some(rows.now + TimeDelta::minutes(10)));
    assert_eq!(operate(&mut rows, Operation::Resume), Outcome::Applied);
    assert_eq!(rows.stand(), "a=succeeded b=dispatched c=dispatched run=running");
    assert_eq!(operate(&mut rows, Operation::Resume), Outcome::Stale);
    let paused = rows.events.iter().find(|event| event.kind == EventKind::RunPaused).unwrap();
    assert_eq!((paused.actor.as_deref(), &paused.data["reason"]), (Some("ana"), &json!("the disk was full")));
    assert!(kinds(&rows).contains(&EventKind::RunResumed));
}

#[test]
fn a_timer_that_fires_in_a_paused_run_leads_to_a_place_in_the_queue_and_no_further() {
    let mut rows = Rows::of(testkit::workflow("a")).retrying(1);
    rows.play(&Happened::Fail("a", 1, ErrorClass::Transient));
    operate(&mut rows, Operation::Pause);
    rows.play(&Happened::Wake("a"));
    assert_eq!(rows.stand(), "a=queued run=paused");
    operate(&mut rows, Operation::Resume);
    assert_eq!(rows.stand(), "a=dispatched run=running");
}

#[test]
fn the_last_attempt_of_a_paused_run_ends_it() {
    let mut rows = Rows::of(testkit::workflow("a"));
    operate(&mut rows, Operation::Pause);
    rows.play(&Happened::Ok("a", 1));
    assert_eq!(rows.stand(), "a=succeeded run=succeeded");
    assert_eq!(operate(&mut rows, Operation::Resume), Outcome::Stale);
    assert_eq!(operate(&mut rows, Operation::Pause), Outcome::Stale);
}

#[test]
fn a_held_run_that_is_paused_and_admitted_begins_when_it_is_resumed() {
    let mut rows = Rows::waiting(testkit::workflow("a"));
    operate(&mut rows, Operation::Pause);
    rows.decide(&Command::Admit);
    assert_eq!(rows.stand(), "a=pending run=paused");
    operate(&mut rows, Operation::Resume);
    assert_eq!(rows.stand(), "a=dispatched run=running");
    assert!(rows.run.started_at.is_some());
    let mut rows = Rows::waiting(testkit::workflow("a"));
    operate(&mut rows, Operation::Pause);
    operate(&mut rows, Operation::Resume);
    assert_eq!(rows.stand(), "a=pending run=queued", "it still waits for its turn");
}

#[test]
fn a_retried_run_does_only_what_failed_and_what_comes_after() {
    let mut rows = Rows::of(testkit::workflow("a -> b, b -> c, d"));
    rows.play(&Happened::Ok("a", 1));
    rows.play(&Happened::Ok("d", 1));
    rows.play(&Happened::Permanent("b", 1));
    assert_eq!(rows.stand(), "a=succeeded b=failed c=upstream_failed d=succeeded run=failed");
    rows.now += TimeDelta::hours(1);
    assert_eq!(operate(&mut rows, Operation::Retry), Outcome::Applied);
    assert_eq!(rows.stand(), "a=succeeded b=dispatched c=pending d=succeeded run=running");
    assert_eq!((rows.run.error.clone(), rows.run.failures, rows.run.finished_at), (None, 0, None));
    assert_eq!(rows.run.started_at, Some(rows.now), "its time counts from here");
    assert!(rows.recheck.is_some(), "the sweep looks at it again");
    rows.play(&Happened::Ok("b", 2));
    rows.play(&Happened::Ok("c", 1));
    assert_eq!(rows.stand(), "a=succeeded b=succeeded c=succeeded d=succeeded run=succeeded");
    let ends = kinds(&rows).into_iter().filter(|kind| *kind == EventKind::RunSucceeded).count();
    assert_eq!((ends, rows.dispatches("a"), rows.dispatches("d")), (1, 1, 1));
    assert_eq!(operate(&mut rows, Operation::Retry), Outcome::Stale, "nothing of it failed");
}

#[test]
fn a_cleared_task_has_all_its_retries_again() {
    let mut rows = Rows::of(testkit::workflow("a")).retrying(1);
    rows.play(&Happened::Fail("a", 1, ErrorClass::Transient));
    rows.play(&Happened::Wake("a"));
    rows.play(&Happened::Fail("a", 2, ErrorClass::Transient));
    assert_eq!(rows.stand(), "a=failed run=failed");
    operate(&mut rows, Operation::Retry);
    rows.play(&Happened::Fail("a", 3, ErrorClass::Transient));
    assert_eq!(rows.stand(), "a=up_for_retry run=running");
    rows.play(&Happened::Wake("a"));
    rows.play(&Happened::Ok("a", 4));
    assert_eq!(rows.stand(), "a=succeeded run=succeeded");
    let history: Vec<(u32, TaskState)> =
        rows.attempts.iter().map(|over| (over.attempt, over.state)).collect();
    let failed = TaskState::Failed;
    assert_eq!(history, [(1, failed), (2, failed), (3, failed)], "what was tried before is kept");
}

#[test]
fn a_report_of_a_cleared_attempt_changes_nothing() {
    let mut rows = Rows::of(testkit::workflow("a -> b"));
    rows.play(&Happened::Claim("a", 1));
    clear(&mut rows, "a");
    assert_eq!(rows.stand(), "a=dispatched b=pending run=running");
    assert_eq!(
        rows.tasks[&TaskIndex(0)].worker,
        None,
        "the worker that held it learns so at its next heartbeat"
    );
    rows.play(&Happened::Ok("a", 1));
    rows.play(&Happened::FailElsewhere("a", 1));
    assert_eq!(rows.stand(), "a=dispatched b=pending run=running");
    rows.play(&Happened::Ok("a", 2));
    assert_eq!(rows.stand(), "a=succeeded b=dispatched run=running");
}

#[test]
fn clearing_in_the_middle_does_what_comes_after_and_nothing_else() {
    let mut rows = Rows::of(testkit::workflow("a -> b, b -> c, a -> d"));
    for name in ["a", "b", "c", "d"] {
        rows.play(&Happened::Ok(name, 1));
    }
    assert_eq!(clear(&mut rows, "b"), Outcome::Applied);
    assert_eq!(rows.stand(), "a=succeeded b=dispatched c=pending d=succeeded run=running");
    let cleared = rows.events.iter().filter(|event| event.kind == EventKind::TaskCleared);
    let who: Vec<_> =
        cleared.map(|event| (event.task.unwrap().0, event.data["was"].as_str().unwrap())).collect();
    assert_eq!(who, [(1, "succeeded"), (2, "succeeded")]);
    rows.play(&Happened::Ok("b", 2));
    rows.play(&Happened::Ok("c", 2));
    assert_eq!(rows.run.state, RunState::Succeeded);
}

#[test]
fn what_has_not_begun_has_nothing_to_clear() {
    let mut rows = Rows::of(testkit::workflow("a -> b"));
    assert_eq!(clear(&mut rows, "b"), Outcome::Stale);
    assert_eq!(operate(&mut rows, Operation::Clear(TaskIndex(9))), Outcome::Stale);
}

#[test]
fn the_output_of_a_cleared_task_is_gone_until_it_delivers_again() {
    let mut rows = Rows::of(testkit::workflow("a"));
    let deliver = |rows: &mut Rows, attempt, output| {
        let (task, started_at) = (TaskIndex(0), rows.now);
        let result = TaskResult::Succeeded(output);
        rows.decide(&Command::Report { task, attempt, worker: None, started_at, result });
    };
    deliver(&mut rows, 1, json!(1));
    clear(&mut rows, "a");
    assert_eq!(rows.outputs, []);
    deliver(&mut rows, 2, json!(2));
    assert_eq!(rows.outputs, [(TaskIndex(0), json!(2))]);
}

#[test]
fn a_cancelled_run_can_be_retried() {
    let mut rows = Rows::of(testkit::workflow("a -> b, c"));
    rows.play(&Happened::Ok("c", 1));
    rows.play(&Happened::Cancel);
    assert_eq!(rows.stand(), "a=cancelled b=cancelled c=succeeded run=cancelled");
    operate(&mut rows, Operation::Retry);
    assert_eq!(rows.stand(), "a=dispatched b=pending c=succeeded run=running");
}

#[test]
fn a_retried_run_of_a_concurrency_group_waits_for_its_turn_again() {
    let mut rows = Rows::waiting(testkit::workflow("a -> b"));
    rows.decide(&Command::Admit);
    rows.play(&Happened::Permanent("a", 1));
    rows.announced.clear();
    operate(&mut rows, Operation::Retry);
    assert_eq!(rows.stand(), "a=pending b=pending run=queued");
    assert!(rows.run.waiting && matches!(rows.announced[..], [Message::ConcurrencyGroupFreed(_)]));
    mark(&mut rows, "a", Mark::Succeeded(Value::Null));
    assert_eq!(rows.stand(), "a=succeeded b=pending run=queued", "not even what was marked lets it begin");
    rows.decide(&Command::Admit);
    assert_eq!(rows.stand(), "a=succeeded b=dispatched run=running");
}

#[test]
fn marking_a_failed_task_succeeded_lets_the_run_go_on() {
    let mut rows = Rows::of(testkit::workflow("a -> b"));
    rows.play(&Happened::Permanent("a", 1));
    assert_eq!(mark(&mut rows, "a", Mark::Succeeded(json!({"rows": 3}))), Outcome::Applied);
    assert_eq!(rows.stand(), "a=succeeded b=dispatched run=running");
    assert_eq!(rows.outputs, [(TaskIndex(0), json!({"rows": 3}))]);
    assert_eq!((rows.run.error.clone(), rows.run.failures), (None, 0));
    let marked = rows.events.iter().find(|event| event.kind == EventKind::TaskMarked).unwrap();
    assert_eq!(marked.data, json!({"as": "succeeded", "reason": "the disk was full"}));
    assert_eq!(mark(&mut rows, "a", Mark::Succeeded(Value::Null)), Outcome::Stale, "it is already");
}

#[test]
fn marking_a_running_task_ends_it_and_its_report_changes_nothing() {
    let mut rows = Rows::of(testkit::workflow("a -> b"));
    rows.play(&Happened::Claim("a", 1));
    mark(&mut rows, "a", Mark::Failed);
    assert_eq!(rows.stand(), "a=failed b=upstream_failed run=failed");
    let said = "task `a` failed: ana marked it as failed: the disk was full";
    assert_eq!(rows.run.error.as_deref(), Some(said));
    rows.play(&Happened::Ok("a", 1));
    assert_eq!(rows.stand(), "a=failed b=upstream_failed run=failed");
}

#[test]
fn waking_ends_a_sleep_or_the_delay_before_an_attempt_and_no_other_wait() {
    let workflow = with("nap -> ask", |workflow| {
        workflow.tasks[0].kind = TaskKind::Sleep;
        workflow.tasks[1].kind = TaskKind::Approval;
    });
    let mut rows = Rows::directed(workflow, |graph, task| match graph.spec(task).kind {
        TaskKind::Sleep => Directive::SleepUntil(model::Instant::UNIX_EPOCH + TimeDelta::days(1)),
        _ => Directive::Await { signal: None, until: None },
    });
    assert_eq!(operate(&mut rows, Operation::Wake(TaskIndex(0))), Outcome::Applied);
    assert_eq!(rows.stand(), "nap=succeeded ask=sleeping run=running");
    assert!(rows.timers.is_empty());
    assert_eq!(operate(&mut rows, Operation::Wake(TaskIndex(1))), Outcome::Stale);
    let mut rows = Rows::of(testkit::workflow("a")).retrying(1);
    assert_eq!(operate(&mut rows, Operation::Wake(TaskIndex(0))), Outcome::Stale);
    rows.play(&Happened::Fail("a", 1, ErrorClass::Transient));
    assert_eq!(operate(&mut rows, Operation::Wake(TaskIndex(0))), Outcome::Applied);
    assert_eq!(rows.stand(), "a=dispatched run=running");
    let woken = rows.events.iter().find(|event| event.kind == EventKind::TaskWoken).unwrap();
    assert_eq!(woken.actor.as_deref(), Some("ana"));
}

#[test]
fn an_evaluation_announces_again_what_may_be_lost() {
    let mut rows = Rows::of(testkit::workflow("a"));
    assert_eq!(operate(&mut rows, Operation::Evaluate), Outcome::Applied);
    assert_eq!(rows.dispatches("a"), 2);
    rows.play(&Happened::Ok("a", 1));
    assert_eq!(operate(&mut rows, Operation::Evaluate), Outcome::Stale);
}

#[test]
fn a_cancelled_run_says_who_ended_it_and_why() {
    let mut rows = Rows::of(testkit::workflow("a -> b"));
    rows.decide(&Command::Cancel { actor: "ana".into(), reason: Some("wrong day".into()) });
    let ended = rows.events.iter().find(|event| event.kind == EventKind::RunCancelled).unwrap();
    assert_eq!(ended.actor.as_deref(), Some("ana"));
    assert_eq!(ended.data, json!({"reason": "wrong day"}));
}

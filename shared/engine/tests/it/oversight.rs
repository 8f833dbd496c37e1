//! What concerns a run as a whole, and what it has to do with other runs.

use chrono::TimeDelta;
use ebbflow_engine::{Command, Directive, Outcome};
use model::message::TaskResult;
use model::{
    Call, Callback, ErrorClass, Failure, Global, Message, Occasion, RunId, RunState, TaskIndex, TaskKey,
    TaskKind, TaskState, TimerKind, Workflow,
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::operators::clear;
use crate::rows::{Happened, Rows};

fn with(graph: &str, change: impl Fn(&mut Workflow)) -> Workflow {
    let mut workflow = testkit::workflow(graph);
    change(&mut workflow);
    workflow
}

/// `call` starts a run of another workflow and waits for it; `after` follows.
fn parent(max_retries: u32) -> Rows {
    let workflow = with("call -> after", |workflow| {
        workflow.tasks[0].kind = TaskKind::Workflow;
        workflow.tasks[0].retry.max_retries = max_retries;
    });
    Rows::directed(workflow, |_, _| start(true))
}

fn start(wait: bool) -> Directive {
    Directive::StartChild { workflow: "other".into(), inputs: Map::new(), wait }
}

fn report(rows: &mut Rows, attempt: u32, result: TaskResult) -> Outcome {
    let started_at = rows.now;
    rows.decide(&Command::Report { task: TaskIndex(0), attempt, worker: None, started_at, result })
}

fn requested(rows: &Rows) -> Vec<RunId> {
    let asked = |message: &Message| match message {
        Message::RunRequested(request) => Some(request.run),
        _ => None,
    };
    rows.outbox.iter().filter_map(asked).collect()
}

#[test]
fn a_task_sleeps_until_the_run_it_started_has_ended() {
    let mut rows = parent(0);
    assert_eq!(rows.stand(), "call=sleeping after=pending run=running");
    let key = TaskKey { run: rows.run.id, task: TaskIndex(0) };
    assert_eq!(requested(&rows), [RunId::of_task(key, 1)]);
    report(&mut rows, 1, TaskResult::Succeeded(json!({"state": "succeeded"})));
    assert_eq!(rows.stand(), "call=succeeded after=dispatched run=running");
}

#[test]
fn a_run_that_failed_fails_the_task_that_started_it() {
    let mut rows = parent(0);
    report(&mut rows, 1, TaskResult::Failed(Failure::transient("run failed")));
    assert_eq!(rows.stand(), "call=failed after=upstream_failed run=failed");
}

#[test]
fn a_retry_starts_another_run() {
    let mut rows = parent(1);
    report(&mut rows, 1, TaskResult::Failed(Failure::transient("run failed")));
    rows.play(&Happened::Wake("call"));
    assert_eq!(rows.tasks[&TaskIndex(0)].state, TaskState::Sleeping);
    let asked = requested(&rows);
    assert!(asked.len() == 2 && asked[0] != asked[1], "{asked:?}");
    assert_eq!(report(&mut rows, 1, TaskResult::Failed(Failure::transient("again"))), Outcome::Stale);
    report(&mut rows, 2, TaskResult::Succeeded(Value::Null));
    assert_eq!(rows.tasks[&TaskIndex(0)].state, TaskState::Succeeded);
}

#[test]
fn a_run_that_nobody_waits_for_is_asked_for_and_let_go() {
    let workflow = with("call -> after", |workflow| workflow.tasks[0].kind = TaskKind::Workflow);
    let rows = Rows::directed(workflow, |_, _| start(false));
    assert_eq!(rows.stand(), "call=succeeded after=dispatched run=running");
    assert_eq!(rows.outputs[0].1, json!({"run_id": requested(&rows)[0]}));
}

#[test]
fn cancelling_passes_down_to_the_runs_that_are_waited_for() {
    let mut rows = parent(0);
    rows.decide(&Command::Cancel { actor: "ana".into(), reason: None });
    let cancelled = |message: &Message| match message {
        Message::CancelRequested(asked) => Some(asked.run),
        _ => None,
    };
    assert_eq!(rows.outbox.iter().filter_map(cancelled).collect::<Vec<_>>(), requested(&rows));
}

#[test]
fn a_run_that_takes_too_long_fails_with_all_that_is_open() {
    let mut rows = Rows::of(with("a -> b, c", |workflow| {
        workflow.timeout_seconds = Some(60);
        workflow.tasks.iter_mut().for_each(|task| task.allow_failure = true);
    }));
    assert_eq!((rows.timers[0].task, rows.timers[0].kind), (None, TimerKind::Timeout));
    assert_eq!(rows.timers[0].wake_at, rows.now + TimeDelta::seconds(60));
    rows.play(&Happened::Ok("c", 1));
    rows.now += TimeDelta::seconds(60);
    rows.decide(&Command::Wake { task: None, attempt: 0, kind: TimerKind::Timeout });
    assert_eq!(rows.stand(), "a=failed b=upstream_failed c=succeeded run=failed");
    let said = "the run took longer than its timeout_seconds of 60";
    assert_eq!(rows.run.error.as_deref(), Some(said));
    assert!(rows.timers.is_empty(), "an ended run has no timer");
    assert_eq!(
        rows.decide(&Command::Wake { task: None, attempt: 0, kind: TimerKind::Timeout }),
        Outcome::Stale
    );
}

#[test]
fn a_missed_deadline_calls_back_and_stops_nothing() {
    let call = Call::Workflow { workflow: "alarm".into(), inputs: Map::new() };
    let mut rows = Rows::of(with("a", |workflow| {
        workflow.deadline_seconds = Some(60);
        workflow.timeout_seconds = Some(90);
        workflow.callbacks = vec![Callback { on: Occasion::MissedDeadline, call: call.clone() }];
    }));
    rows.now += TimeDelta::seconds(60);
    rows.decide(&Command::Wake { task: None, attempt: 0, kind: TimerKind::Deadline });
    assert_eq!(rows.stand(), "a=dispatched run=running");
    assert_eq!(called(&rows), ["missed_deadline"]);
    let left: Vec<TimerKind> = rows.timers.iter().map(|timer| timer.kind).collect();
    assert_eq!(left, [TimerKind::Timeout], "the other timer stays");
}

fn called(rows: &Rows) -> Vec<String> {
    let due = |message: &Message| match message {
        Message::CallbackDue(due) => due.event["on"].as_str().map(str::to_owned),
        _ => None,
    };
    rows.outbox.iter().filter_map(due).collect()
}

#[test]
fn callbacks_follow_on_retry_failure_and_success() {
    let on = |on| Callback { on, call: Call::Message { topic: "t".into(), body: None } };
    let all = vec![on(Occasion::Success), on(Occasion::Failure), on(Occasion::Retry)];
    let mut rows = Rows::of(with("a", |workflow| {
        workflow.callbacks = all.clone();
        workflow.tasks[0].callbacks = all.clone();
        workflow.tasks[0].retry.max_retries = 1;
    }));
    rows.play(&Happened::Fail("a", 1, ErrorClass::Transient));
    assert_eq!(called(&rows), ["retry", "retry"], "the task's and the workflow's");
    rows.play(&Happened::Wake("a"));
    rows.play(&Happened::Ok("a", 2));
    assert_eq!(called(&rows)[2..], ["success", "success"]);
    let mut rows = Rows::of(with("a", |workflow| workflow.callbacks = all.clone()));
    rows.play(&Happened::Permanent("a", 1));
    assert_eq!(called(&rows), ["failure"]);
}

#[test]
fn attempts_together_take_no_longer_than_they_may() {
    let mut rows = Rows::of(with("a", |workflow| {
        workflow.tasks[0].retry.max_retries = 9;
        workflow.tasks[0].retry.initial_delay_seconds = 30.0;
        workflow.tasks[0].retry_timeout_seconds = Some(60);
    }));
    rows.play(&Happened::Fail("a", 1, ErrorClass::Transient));
    rows.play(&Happened::Wake("a"));
    assert_eq!(rows.tasks[&TaskIndex(0)].state, TaskState::Dispatched);
    rows.play(&Happened::Fail("a", 2, ErrorClass::Transient));
    assert_eq!(rows.run.state, RunState::Failed, "the next delay would end after the limit");
    let reason = &rows.events[rows.events.len() - 2].data["reason"];
    assert_eq!(reason, "its retry_timeout_seconds of 60 would be over");
}

#[test]
fn a_held_run_begins_when_it_is_admitted_and_not_before() {
    let mut rows = Rows::waiting(testkit::workflow("a -> b"));
    assert_eq!(rows.stand(), "a=pending b=pending run=queued");
    rows.play(&Happened::Recheck);
    assert!(
        matches!(rows.announced[..], [Message::ConcurrencyGroupFreed(_)]),
        "it asks whether it is its turn"
    );
    assert_eq!(rows.stand(), "a=pending b=pending run=queued");
    assert_eq!(rows.decide(&Command::Admit), Outcome::Applied);
    assert_eq!(rows.stand(), "a=dispatched b=pending run=running");
    assert_eq!(rows.decide(&Command::Admit), Outcome::Stale);
    rows.play(&Happened::Ok("a", 1));
    rows.play(&Happened::Ok("b", 1));
    assert!(
        rows.outbox.iter().any(|message| matches!(message, Message::ConcurrencyGroupFreed(_))),
        "the next has its turn"
    );
}

/// A run whose only task is shared and carried out by another run, until that one gives it up.
fn waiter() -> Rows {
    let workflow = with("load", |workflow| {
        workflow.tasks[0].global = Some(Global { name: "load".into(), reuse_for_seconds: 0 });
    });
    let owner = TaskKey { run: RunId(Uuid::from_u128(7)), task: TaskIndex(3) };
    let asked = std::cell::Cell::new(0);
    Rows::directed(workflow, move |_, _| match asked.replace(asked.get() + 1) {
        0 => Directive::AwaitShared(owner),
        _ => Directive::Go,
    })
}

#[test]
fn a_shared_task_is_waited_for_and_its_end_is_the_end_of_all() {
    let mut rows = waiter();
    assert_eq!(rows.stand(), "load=sleeping run=running");
    report(&mut rows, 1, TaskResult::Succeeded(json!(7)));
    assert_eq!(rows.stand(), "load=succeeded run=succeeded");
    let mut rows = waiter();
    report(&mut rows, 1, TaskResult::Failed(Failure::permanent("no")));
    assert_eq!(rows.stand(), "load=failed run=failed");
}

#[test]
fn who_waited_for_a_shared_task_that_was_given_up_carries_it_out_itself() {
    let mut rows = waiter();
    assert_eq!(rows.decide(&Command::Rejoin { task: TaskIndex(0), attempt: 1 }), Outcome::Applied);
    assert_eq!(rows.stand(), "load=dispatched run=running");
    assert_eq!(rows.decide(&Command::Rejoin { task: TaskIndex(0), attempt: 1 }), Outcome::Stale);
}

#[test]
fn a_run_that_executes_a_shared_task_and_is_cleared_still_executes_it() {
    let mut rows = waiter();
    rows.decide(&Command::Rejoin { task: TaskIndex(0), attempt: 1 });
    assert_eq!(clear(&mut rows, "load"), Outcome::Applied);
    assert_eq!(rows.stand(), "load=dispatched run=running");
    assert_eq!(rows.shares_ended, [], "it executes the task again: no other run does");
}

#[test]
fn a_cancelled_run_does_not_cancel_the_task_that_it_shares() {
    let mut rows = waiter();
    rows.decide(&Command::Rejoin { task: TaskIndex(0), attempt: 1 });
    rows.decide(&Command::Cancel { actor: "ana".into(), reason: None });
    let published = rows.outbox.iter().find_map(|message| match message {
        Message::SharedFinished(finished) => Some(finished.state),
        _ => None,
    });
    assert_eq!(published, Some(TaskState::Cancelled), "the runs that wait execute it themselves");
}

#[test]
fn who_waits_for_another_run_asks_again_at_a_recheck() {
    let mut rows = parent(0);
    rows.play(&Happened::Recheck);
    let asked = rows.announced.iter().find_map(|message| match message {
        Message::RunRequested(request) => Some(request.run),
        _ => None,
    });
    assert_eq!(asked, Some(requested(&rows)[0]), "the same run, so that nothing is started twice");
    assert_eq!(rows.tasks[&TaskIndex(0)].state, TaskState::Sleeping);
    assert!(rows.recheck.unwrap() <= rows.now + TimeDelta::seconds(60), "and soon again");
}

#[test]
fn who_waited_for_a_shared_task_in_vain_carries_it_out_itself_after_a_recheck() {
    let mut rows = waiter();
    rows.play(&Happened::Recheck);
    assert_eq!(rows.stand(), "load=dispatched run=running");
}

#[test]
fn what_comes_together_with_a_cancellation_comes_to_nothing() {
    let cancel = Command::Cancel { actor: "ana".into(), reason: None };
    let mut rows = waiter();
    rows.decide_all(&[Command::Rejoin { task: TaskIndex(0), attempt: 1 }, cancel.clone()]);
    assert_eq!(rows.stand(), "load=cancelled run=cancelled");
    let mut rows = parent(1);
    report(&mut rows, 1, TaskResult::Failed(Failure::transient("run failed")));
    let wake = Command::Wake { task: Some(TaskIndex(0)), attempt: 1, kind: TimerKind::Retry };
    rows.decide_all(&[wake, cancel]);
    assert_eq!(rows.stand(), "call=cancelled after=cancelled run=cancelled");
}

#[test]
fn a_recheck_that_comes_together_with_the_last_report_finds_no_stall() {
    let mut rows = Rows::of(testkit::workflow("a -> b"));
    let done = |task, started_at| {
        let result = TaskResult::Succeeded(Value::Null);
        Command::Report { task: TaskIndex(task), attempt: 1, worker: None, started_at, result }
    };
    let recheck = Command::Recheck { claim_timeout: TimeDelta::seconds(30), served: None };
    rows.decide_all(&[done(0, rows.now), recheck.clone()]);
    assert_eq!(rows.stand(), "a=succeeded b=dispatched run=running");
    rows.decide_all(&[done(1, rows.now), recheck]);
    assert_eq!(rows.stand(), "a=succeeded b=succeeded run=succeeded");
    assert!(rows.events.iter().all(|event| event.kind != model::EventKind::RunStalled));
    assert_eq!(rows.recheck, None);
}

#[test]
fn a_task_whose_child_run_reports_right_after_a_recheck_asks_for_nothing_more() {
    let mut rows = parent(0);
    let recheck = Command::Recheck { claim_timeout: TimeDelta::zero(), served: None };
    let (task, started_at) = (TaskIndex(0), rows.now);
    let result = TaskResult::Succeeded(Value::Null);
    let report = Command::Report { task, attempt: 1, worker: None, started_at, result };
    rows.decide_all(&[recheck.clone(), report.clone()]);
    assert_eq!(rows.stand(), "call=succeeded after=dispatched run=running");
    let mut rows = waiter();
    rows.decide_all(&[recheck, report]);
    assert_eq!(rows.stand(), "load=succeeded run=succeeded");
}

#[test]
fn a_run_whose_last_task_ends_together_with_its_time_out_is_in_time() {
    let mut rows = Rows::of(with("a", |workflow| workflow.timeout_seconds = Some(60)));
    let (task, started_at) = (TaskIndex(0), rows.now);
    let result = TaskResult::Succeeded(Value::Null);
    let report = Command::Report { task, attempt: 1, worker: None, started_at, result };
    rows.decide_all(&[report, Command::Wake { task: None, attempt: 0, kind: TimerKind::Timeout }]);
    assert_eq!(rows.stand(), "a=succeeded run=succeeded");
}

#[test]
fn a_signal_that_comes_together_with_what_lets_its_waiter_begin_is_received() {
    let workflow = with("a -> wait", |workflow| {
        workflow.tasks[1].kind = TaskKind::WaitForSignal;
        workflow.tasks[1].config = json!({"signal": "go"});
    });
    let mut rows =
        Rows::directed(workflow, |_, _| Directive::Await { signal: Some("go".into()), until: None });
    let (task, started_at) = (TaskIndex(0), rows.now);
    let result = TaskResult::Succeeded(Value::Null);
    let report = Command::Report { task, attempt: 1, worker: None, started_at, result };
    let signal = Command::Signal { name: "go".into(), payload: json!(7), actor: "ana".into() };
    rows.decide_all(&[report, signal]);
    assert_eq!(rows.stand(), "a=succeeded wait=succeeded run=succeeded");
    assert_eq!(rows.outputs, [(TaskIndex(1), json!(7))]);
    assert!(rows.kept.is_empty(), "no task receives it a second time");
}

#[test]
fn a_worker_that_asks_again_for_what_it_holds_is_not_refused() {
    let mut rows = Rows::of(testkit::workflow("a"));
    let worker = model::WorkerId(Uuid::from_u128(3));
    let claim = Command::Claim { task: TaskIndex(0), attempt: 1, worker };
    assert_eq!(rows.decide(&claim), Outcome::Applied);
    assert_eq!(rows.decide(&claim), Outcome::Applied, "its first answer may have got lost");
    let other =
        Command::Claim { task: TaskIndex(0), attempt: 1, worker: model::WorkerId(Uuid::from_u128(4)) };
    assert_eq!(rows.decide(&other), Outcome::Stale);
}

#[test]
fn what_is_noted_about_a_run_is_made_to_fit_its_tasks_once() {
    let mut rows = Rows::of(testkit::workflow("a -> b"));
    let counts = rows.run.counts;
    rows.run.counts = model::Counts::all_pending(9);
    let audit = model::Audit { counts, ..Default::default() };
    assert_eq!(rows.decide(&Command::Recount { audit: audit.clone() }), Outcome::Applied);
    assert_eq!(rows.run.counts, counts);
    let event = rows.events.last().unwrap();
    assert_eq!(event.kind, model::EventKind::RunRepaired);
    let is = json!({"dispatched": 1, "pending": 1});
    assert_eq!(event.data, json!({"counts": {"was": {"pending": 9}, "is": is}}));
    assert_eq!(rows.decide(&Command::Recount { audit }), Outcome::Stale);
}

#[test]
fn a_run_whose_tasks_have_all_ended_ends_once_its_counts_are_right() {
    let mut rows = Rows::of(testkit::workflow("a"));
    let task = rows.tasks.get_mut(&TaskIndex(0)).unwrap();
    task.on(model::TaskEvent::Succeeded { attempt: 1 }, rows.now).unwrap();
    let mut counts = rows.run.counts;
    counts.moved(TaskState::Dispatched, TaskState::Succeeded);
    let audit = model::Audit { counts, ..Default::default() };
    assert_eq!(rows.decide(&Command::Recount { audit }), Outcome::Applied);
    assert_eq!(rows.stand(), "a=succeeded run=succeeded");
}

#[test]
fn a_run_that_ended_stays_as_it_ended_and_loses_its_orphaned_timers() {
    let mut rows = Rows::of(testkit::workflow("a"));
    rows.play(&Happened::Ok("a", 1));
    rows.timers.push(model::Timer {
        task: Some(TaskIndex(0)),
        attempt: 1,
        kind: TimerKind::Retry,
        wake_at: rows.now,
    });
    let orphaned_timers = vec![Some(TaskIndex(0))];
    let audit = model::Audit { counts: model::Counts::all_pending(3), orphaned_timers, ..Default::default() };
    assert_eq!(rows.decide(&Command::Recount { audit }), Outcome::Applied);
    assert_eq!((rows.stand(), rows.timers.len()), ("a=succeeded run=succeeded".into(), 0));
    assert_eq!(rows.run.counts.of(TaskState::Succeeded), 1);
}

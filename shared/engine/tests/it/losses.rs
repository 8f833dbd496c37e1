//! Attempts whose end nobody reports, of tasks that may be repeated and of tasks that may not; and attempts that nobody takes.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use model::{
    Abilities, ErrorClass, EventKind, Label, Labels, ServedQueues, TaskIndex, TaskState, TenantId, WorkerId,
};
use proptest::prelude::*;
use uuid::Uuid;

use ebbflow_engine::{Command, Outcome};

use crate::rows::Happened::{Claim, Fail, HandBack, Lose, Ok as Done, Recheck, Wake};
use crate::rows::{Happened, Rows};

const TASK: TaskIndex = TaskIndex(0);

fn rows(idempotent: Option<bool>, max_retries: u32) -> Rows {
    let mut workflow = testkit::workflow("a -> b");
    let task = &mut workflow.tasks[0];
    (task.idempotent, task.retry.max_retries, task.timeout_seconds) = (idempotent, max_retries, 60);
    Rows::of(workflow)
}

fn claimed(idempotent: Option<bool>, max_retries: u32) -> Rows {
    let mut rows = rows(idempotent, max_retries);
    rows.play(&Claim("a", 1));
    rows
}

fn class(rows: &Rows) -> Option<ErrorClass> {
    rows.tasks[&TASK].failure.as_ref().map(|failure| failure.class)
}

#[test]
fn a_loss_counts_against_max_retries() {
    let mut rows = claimed(None, 0);
    rows.play(&Lose("a", 1));
    assert_eq!(rows.stand(), "a=failed b=upstream_failed run=failed");
    assert_eq!(class(&rows), Some(ErrorClass::WorkerLost));
    let mut rows = claimed(None, 1);
    rows.play(&Lose("a", 1));
    assert_eq!(rows.stand(), "a=dispatched b=pending run=running");
    let over = &rows.attempts[0];
    assert_eq!((&*over.decision, over.next_attempt_at), ("attempt 2 of 2 follows", Some(rows.now)));
    rows.play(&Claim("a", 2));
    rows.play(&Lose("a", 2));
    assert_eq!(rows.stand(), "a=failed b=upstream_failed run=failed");
}

#[test]
fn an_idempotent_task_is_tried_again_after_losses_that_its_policy_does_not_allow() {
    let mut rows = claimed(Some(true), 0);
    for attempt in 1..=3 {
        rows.play(&Claim("a", attempt));
        rows.play(&Lose("a", attempt));
        assert_eq!(rows.stand(), "a=dispatched b=pending run=running");
    }
    rows.play(&Claim("a", 4));
    rows.play(&Lose("a", 4));
    assert_eq!(rows.stand(), "a=failed b=upstream_failed run=failed");
}

#[test]
fn the_outcome_of_a_lost_attempt_that_must_not_be_repeated_is_unknown() {
    let endings: [&dyn Fn(&mut Rows); 4] = [
        &|rows| rows.play(&Lose("a", 1)),
        &|rows| rows.play(&Fail("a", 1, ErrorClass::Killed)),
        &|rows| rows.play(&HandBack("a", 1)),
        &|rows| {
            // Its worker neither ended it in time nor reported.
            rows.now += TimeDelta::minutes(3);
            rows.play(&Recheck);
        },
    ];
    for (case, end) in endings.into_iter().enumerate() {
        let mut rows = claimed(Some(false), 5);
        end(&mut rows);
        assert_eq!(rows.stand(), "a=failed b=upstream_failed run=failed", "case {case}");
        assert_eq!(class(&rows), Some(ErrorClass::OutcomeUnknown), "case {case}");
        let event = rows.events.iter().find(|event| event.kind == EventKind::TaskFailed).unwrap();
        let reason = "the task is not idempotent: a person decides whether it runs again";
        assert_eq!(event.data["reason"], reason, "case {case}");
    }
}

#[test]
fn a_failure_that_its_program_reports_is_retried_whether_it_is_idempotent_or_not() {
    let mut rows = claimed(Some(false), 1);
    rows.play(&Fail("a", 1, ErrorClass::ProgramFailed));
    assert_eq!(rows.stand(), "a=up_for_retry b=pending run=running");
    let over = &rows.attempts[0];
    assert_eq!(over.next_attempt_at, Some(rows.timers[0].wake_at));
}

#[test]
fn a_hand_back_with_a_checkpoint_goes_on_even_if_it_must_not_be_repeated() {
    let mut rows = claimed(Some(false), 0);
    let worker = rows.tasks[&TASK].worker.unwrap();
    let reason = "asked to stop".to_owned();
    rows.decide(&Command::HandBack { task: TASK, attempt: 1, worker, reason, saved: true });
    assert_eq!(rows.stand(), "a=dispatched b=pending run=running");
    assert_eq!(rows.tasks[&TASK].tries(), 1, "no retry is used");
}

#[test]
fn a_stranger_hands_nothing_back() {
    let mut rows = claimed(Some(false), 0);
    let (worker, reason) = (WorkerId(Uuid::from_u128(8)), "x".to_owned());
    let stranger = Command::HandBack { task: TASK, attempt: 1, worker, reason, saved: false };
    assert_eq!(rows.decide(&stranger), Outcome::Stale);
    assert_eq!(rows.stand(), "a=running b=pending run=running");
}

fn recheck(rows: &mut Rows, after: i64, served: &[&str]) {
    let workers: Vec<_> = served.iter().map(|queue| (*queue, Abilities::default())).collect();
    recheck_among(rows, after, &workers);
}

/// The same among workers that can run only some tasks of their queues.
fn recheck_among(rows: &mut Rows, after: i64, workers: &[(&str, Abilities)]) {
    rows.now += TimeDelta::seconds(after);
    let tenant = rows.run.tenant;
    let served = workers.iter().map(|(queue, abilities)| (tenant, (*queue).to_owned(), abilities.clone()));
    rows.decide(&Command::Recheck { claim_timeout: TimeDelta::seconds(30), served: Some(served.collect()) });
}

/// Rows whose first task waits for a worker of the queue `gpu`.
fn offered() -> Rows {
    let mut workflow = testkit::workflow("a -> b");
    (workflow.tasks[0].queue, workflow.tasks[0].leased) = ("gpu".to_owned(), true);
    workflow.tasks[0].retry.max_retries = 3;
    Rows::of(workflow)
}

#[test]
fn what_nobody_takes_fails_after_its_dispatch_timeout() {
    let mut rows = offered();
    recheck(&mut rows, 599, &[]);
    assert_eq!(rows.stand(), "a=dispatched b=pending run=running");
    assert_eq!(rows.recheck, Some(rows.now + TimeDelta::seconds(1)), "it is rechecked when it is due");
    recheck(&mut rows, 1, &[]);
    assert_eq!(rows.stand(), "a=failed b=upstream_failed run=failed");
    let failure = rows.tasks[&TASK].failure.clone().unwrap();
    assert_eq!(failure.class, ErrorClass::NotTaken);
    let message = "no worker of the queue `gpu` took it within its dispatch_timeout_seconds of 600: \
                   none is at work";
    assert_eq!(failure.message, message);
}

#[test]
fn what_no_worker_of_its_queue_can_run_does_not_wait_for_the_others() {
    let gpu = Labels(BTreeMap::from([("gpu".to_owned(), Label::Flag(true))]));
    let labelled = Abilities { labels: gpu.clone(), types: None };
    let typed = |name: &str| Abilities { types: Some(BTreeSet::from([name.to_owned()])), ..labelled.clone() };
    for (others, one_that_can, why) in [
        (vec![("gpu", Abilities::default())], labelled.clone(), "none has the label `gpu: true`"),
        (
            vec![("gpu", typed("python")), ("other", labelled.clone())],
            typed("noop"),
            "none runs the type `noop`",
        ),
    ] {
        let mut workflow = testkit::workflow("a");
        let task = &mut workflow.tasks[0];
        (task.queue, task.leased, task.requires) = ("gpu".to_owned(), true, gpu.clone());
        let mut rows = Rows::of(workflow);
        recheck_among(&mut rows, 599, &others);
        assert_eq!(rows.stand(), "a=dispatched run=running");
        let all: Vec<_> = others.iter().cloned().chain([("gpu", one_that_can)]).collect();
        recheck_among(&mut rows, 6_000, &all);
        assert_eq!(rows.stand(), "a=dispatched run=running", "one of them can run it: a backlog waits");
        recheck_among(&mut rows, 60, &others);
        assert_eq!(rows.stand(), "a=failed run=failed");
        let failure = rows.tasks[&TASK].failure.clone().unwrap();
        assert_eq!(failure.class, ErrorClass::NotTaken);
        assert!(failure.message.ends_with(&format!("of 600: {why}")), "{}", failure.message);
    }
}

#[test]
fn by_default_a_task_waits_for_the_workers_that_serve_its_queue() {
    let mut rows = offered();
    recheck(&mut rows, 6_000, &["gpu"]);
    rows.now += TimeDelta::seconds(60);
    rows.play(&Recheck);
    assert_eq!(rows.stand(), "a=dispatched b=pending run=running", "without knowing, nothing fails");
    recheck(&mut rows, 60, &["other"]);
    assert_eq!(rows.stand(), "a=failed b=upstream_failed run=failed");
}

#[test]
fn the_workers_of_another_tenant_serve_no_queue_of_this_one() {
    let mut rows = offered();
    rows.now += TimeDelta::seconds(600);
    let served =
        ServedQueues::from_iter([(TenantId(rows.run.tenant.0 + 1), "gpu".to_owned(), Abilities::default())]);
    rows.decide(&Command::Recheck { claim_timeout: TimeDelta::seconds(30), served: Some(served) });
    assert_eq!(class(&rows), Some(ErrorClass::NotTaken));
}

#[test]
fn what_is_pushed_is_pushed_again_after_an_outage_and_does_not_fail() {
    let mut rows = rows(None, 0);
    recheck(&mut rows, 6_000, &[]);
    assert_eq!(rows.stand(), "a=dispatched b=pending run=running");
}

#[test]
fn a_dispatch_timeout_that_is_set_holds_on_a_queue_that_is_served() {
    for (queue, leased) in [("light", false), ("gpu", true)] {
        let mut workflow = testkit::workflow("a");
        let task = &mut workflow.tasks[0];
        (task.queue, task.leased, task.dispatch_timeout_seconds) = (queue.to_owned(), leased, Some(45));
        let mut rows = Rows::of(workflow);
        recheck(&mut rows, 44, &[queue]);
        assert_eq!(rows.stand(), "a=dispatched run=running");
        recheck(&mut rows, 1, &[queue]);
        assert_eq!(class(&rows), Some(ErrorClass::NotTaken));
    }
}

/// One step of a worker, of the sweep or of time.
fn step() -> impl Strategy<Value = u8> {
    0..8u8
}

proptest! {
    /// Whatever happens, a task that is not idempotent begins again only after its program reported a failure.
    #[test]
    fn what_is_not_idempotent_never_begins_twice_unreported(steps in prop::collection::vec(step(), 1..40), max_retries in 0..4u32) {
        let mut rows = rows(Some(false), max_retries);
        let mut open = false;
        for step in steps {
            let attempt = rows.tasks[&TASK].attempt;
            let before = rows.tasks[&TASK].state;
            let what = match step {
                0 | 1 => Claim("a", attempt),
                2 => Lose("a", attempt),
                3 => HandBack("a", attempt),
                4 => Fail("a", attempt, ErrorClass::Killed),
                5 => Fail("a", attempt, ErrorClass::ProgramFailed),
                6 if before == TaskState::UpForRetry => Wake("a"),
                6 => Done("a", attempt),
                _ => {
                    rows.now += TimeDelta::seconds(50);
                    Recheck
                }
            };
            let reports = before == TaskState::Running && matches!(what, Happened::Fail(_, _, ErrorClass::ProgramFailed));
            rows.play(&what);
            let after = rows.tasks[&TASK].state;
            if before != TaskState::Running && after == TaskState::Running {
                prop_assert!(!open, "attempt {} began although the end of the one before is unknown", attempt);
                open = true;
            }
            open &= !reports;
        }
    }
}

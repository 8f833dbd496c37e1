//! What each command does to a run, in a short notation: a graph, what happened, and the states that follow.

use crate::rows::{Happened, Rows};
use chrono::TimeDelta;
use ebbflow_engine::{Command, Directive, Graph, Outcome};
use model::message::TaskResult;
use model::{Case, ErrorClass, EventKind, Instant, RunState, TaskIndex, TaskKind, TriggerRule, Workflow};
use serde_json::json;

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
fn a_recheck_sends_unclaimed_work_again_and_changes_nothing_else() {
    let mut rows = Rows::of(testkit::workflow("a -> b"));
    let before = rows.tasks.clone();
    rows.play(&Happened::Recheck);
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
fn a_late_success_is_recorded_for_its_own_attempt() {
    let mut rows = Rows::of(testkit::workflow("a")).retrying(3);
    rows.play(&Claim("a", 1));
    rows.play(&Lose("a", 1));
    rows.play(&Done("a", 1));
    let ends: Vec<(u32, &str)> =
        rows.attempts.iter().map(|record| (record.attempt, record.state.name())).collect();
    assert_eq!(ends, [(1, "failed"), (1, "succeeded"), (2, "cancelled")]);
    assert_eq!(rows.events.iter().rfind(|event| event.task.is_some()).unwrap().attempt, 1);
}

#[test]
fn a_failure_reported_by_someone_who_does_not_hold_the_attempt_is_refused() {
    let mut rows = Rows::of(testkit::workflow("a"));
    rows.play(&Claim("a", 1));
    rows.play(&Happened::FailElsewhere("a", 1));
    assert_eq!(rows.stand(), "a=running run=running");
}

#[test]
fn a_run_that_waited_is_looked_at_soon_after_it_woke() {
    let mut rows = Rows::of(testkit::workflow("a")).retrying(1);
    rows.play(&Fail("a", 1, ErrorClass::Transient));
    rows.play(&Happened::Recheck);
    assert_eq!(rows.recheck, None, "nobody looks at what only sleeps");
    rows.play(&Wake("a"));
    let awake = rows.recheck.unwrap() - rows.now;
    assert!(awake.num_seconds() < 60, "awake {awake}");
}

/// `a` leads to `b` and `c`, of which the switch `a` chooses some, and both lead to `d`.
fn switch(rule: TriggerRule) -> Rows {
    let mut workflow = testkit::workflow("a, b, c, b -> d, c -> d");
    workflow.tasks[0].kind = TaskKind::Switch;
    let case =
        |when: Option<&str>, next: &str| Case { when: when.map(str::to_owned), next: vec![next.into()] };
    workflow.tasks[0].cases = vec![case(Some("x"), "b"), case(None, "c")];
    workflow.tasks[3].trigger_rule = rule;
    Rows::directed(workflow, |graph, _| {
        let next = vec![graph.index_of("b").unwrap()];
        Directive::Choose { next, why: json!({"condition": "x"}) }
    })
}

#[test]
fn a_branch_that_was_not_chosen_is_skipped_and_the_join_goes_on() {
    let mut rows = switch(TriggerRule::AllSuccess);
    assert_eq!(rows.stand(), "a=succeeded b=dispatched c=skipped d=pending run=running");
    rows.play(&Done("b", 1));
    assert_eq!(rows.stand(), "a=succeeded b=succeeded c=skipped d=dispatched run=running");
}

#[test]
fn a_branch_that_was_not_chosen_is_skipped_whatever_its_rule() {
    let mut workflow = testkit::workflow("a, x, b, x -> c");
    workflow.tasks[0].kind = TaskKind::Switch;
    let case =
        |when: Option<&str>, next: &str| Case { when: when.map(str::to_owned), next: vec![next.into()] };
    workflow.tasks[0].cases = vec![case(Some("x"), "b"), case(None, "c")];
    workflow.tasks[3].trigger_rule = TriggerRule::AllDone;
    let rows = Rows::directed(workflow, |graph, _| Directive::Choose {
        next: vec![graph.index_of("b").unwrap()],
        why: json!({}),
    });
    assert_eq!(rows.stand(), "a=succeeded x=dispatched b=dispatched c=skipped run=running");
}

#[test]
fn a_join_that_wants_every_branch_is_skipped_with_the_one_not_chosen() {
    let rows = switch(TriggerRule::NoneSkipped);
    assert_eq!(rows.stand(), "a=succeeded b=dispatched c=skipped d=skipped run=running");
}

#[test]
fn a_condition_that_does_not_hold_skips_the_task_and_says_what_it_saw() {
    let mut workflow = testkit::workflow("a -> b");
    workflow.tasks[0].when = Some("inputs.x > 1".into());
    let rows = Rows::directed(workflow, |_, _| Directive::Skip {
        condition: "inputs.x > 1".into(),
        seen: json!({"inputs.x": 1}),
    });
    assert_eq!(rows.stand(), "a=skipped b=skipped run=succeeded");
    let skipped = rows.events.iter().find(|event| event.kind == EventKind::TaskSkipped).unwrap();
    assert_eq!(skipped.data, json!({"condition": "inputs.x > 1", "seen": {"inputs.x": 1}}));
}

/// One task that waits for the signal `go`, and one behind it.
fn waiting() -> Workflow {
    let mut workflow = testkit::workflow("first -> wait, wait -> after");
    workflow.tasks[1].kind = TaskKind::WaitForSignal;
    workflow.tasks[1].config = json!({"signal": "go"});
    workflow
}

fn signal(name: &str) -> Command {
    Command::Signal { name: name.into(), payload: json!({"n": 1}), actor: "ada".into() }
}

#[test]
fn a_signal_wakes_who_waits_for_it_and_nobody_else() {
    let await_go = |_: &Graph, _| Directive::Await { signal: Some("go".into()), until: None };
    let mut rows = Rows::directed(waiting(), await_go);
    rows.play(&Done("first", 1));
    rows.decide(&signal("stop"));
    assert_eq!(rows.stand(), "first=succeeded wait=sleeping after=pending run=running");
    rows.decide(&signal("go"));
    assert_eq!(rows.stand(), "first=succeeded wait=succeeded after=dispatched run=running");
    assert_eq!(rows.outputs, [(TaskIndex(1), json!({"n": 1}))]);
    let last = rows.kept.iter().map(|signal| signal.name.as_str()).collect::<Vec<_>>();
    assert_eq!(last, ["stop"], "only what nobody waited for is kept");
}

#[test]
fn a_wait_that_took_too_long_fails() {
    let until = Instant::UNIX_EPOCH + TimeDelta::hours(1);
    let mut rows = Rows::directed(waiting(), move |_: &Graph, _| Directive::Await {
        signal: Some("go".into()),
        until: Some(until),
    })
    .retrying(3);
    rows.play(&Done("first", 1));
    rows.play(&Wake("wait"));
    assert_eq!(rows.stand(), "first=succeeded wait=failed after=upstream_failed run=failed");
}

#[test]
fn an_approval_is_answered_once() {
    let mut workflow = testkit::workflow("ask -> after");
    workflow.tasks[0].kind = TaskKind::Approval;
    let ask = |_: &Graph, _| Directive::Await { signal: None, until: None };
    let answer = |approved| Command::Answer {
        task: TaskIndex(0),
        approved,
        payload: json!("not today"),
        actor: "ada".into(),
    };
    let mut rows = Rows::directed(workflow.clone(), ask);
    assert_eq!(rows.decide(&answer(true)), Outcome::Applied);
    assert_eq!(rows.decide(&answer(false)), Outcome::Stale);
    assert_eq!(rows.stand(), "ask=succeeded after=dispatched run=running");
    let mut rows = Rows::directed(workflow, ask);
    rows.decide(&answer(false));
    assert_eq!(rows.stand(), "ask=failed after=upstream_failed run=failed");
    assert_eq!(rows.run.error.as_deref(), Some("task `ask` failed: ada did not approve: not today"));
}

#[test]
fn a_branch_begins_only_after_its_switch_has_chosen_it() {
    let mut workflow = testkit::workflow("x -> c, wait -> a, b");
    let index =
        |workflow: &Workflow, name: &str| workflow.tasks.iter().position(|task| task.name == name).unwrap();
    let (a, c) = (index(&workflow, "a"), index(&workflow, "c"));
    workflow.tasks[a].kind = TaskKind::Switch;
    let case =
        |when: Option<&str>, next: &str| Case { when: when.map(str::to_owned), next: vec![next.into()] };
    workflow.tasks[a].cases = vec![case(Some("x"), "b"), case(None, "c")];
    workflow.tasks[c].trigger_rule = TriggerRule::OneSuccess;
    let mut rows = Rows::directed(workflow, |graph, _| Directive::Choose {
        next: vec![graph.index_of("b").unwrap()],
        why: json!({}),
    });
    rows.play(&Done("x", 1));
    assert!(rows.stand().contains("c=pending"), "{}", rows.stand());
    rows.play(&Done("wait", 1));
    assert!(rows.stand().contains("c=skipped"), "{}", rows.stand());
}

#[test]
fn a_run_that_keeps_waking_does_not_keep_postponing_its_recheck() {
    let mut rows = Rows::of(testkit::workflow("a")).retrying(9);
    rows.play(&Happened::Recheck);
    let due = rows.recheck.unwrap();
    for attempt in 1..5 {
        rows.play(&Fail("a", attempt, ErrorClass::Transient));
        rows.play(&Wake("a"));
    }
    assert!(rows.recheck.unwrap() <= due);
}

#[test]
fn a_branch_waits_for_its_switch_though_not_all_that_follow_it_are_known_yet() {
    let mut workflow = testkit::workflow("first -> bad, first -> route, bad -> branch, route -> other");
    let task = |workflow: &mut Workflow, name: &str, rule| {
        workflow.tasks.iter_mut().find(|task| task.name == name).unwrap().trigger_rule = rule;
    };
    task(&mut workflow, "bad", TriggerRule::OneSuccess);
    task(&mut workflow, "route", TriggerRule::AllFailed);
    task(&mut workflow, "branch", TriggerRule::OneFailed);
    let route = workflow.tasks.iter_mut().find(|task| task.name == "route").unwrap();
    route.kind = TaskKind::Switch;
    route.cases = vec![Case { when: None, next: vec!["branch".into()] }];
    let mut rows = Rows::directed(workflow, |_, _| Directive::Choose { next: vec![], why: json!(null) });
    rows.play(&Permanent("first", 1));
    assert_eq!(
        rows.stand(),
        "first=failed bad=upstream_failed route=succeeded branch=skipped other=dispatched run=running"
    );
}

#[test]
fn work_began_when_its_report_says_and_not_before_it_was_claimed() {
    for (said, began) in [(2, 2), (-5, 0), (99, 3)] {
        let mut rows = Rows::of(testkit::workflow("a"));
        let (task, claimed) = (TaskIndex(0), rows.now);
        rows.play(&Claim("a", 1));
        rows.now += TimeDelta::seconds(3);
        let (worker, started_at) = (rows.tasks[&task].worker, claimed + TimeDelta::seconds(said));
        let result = TaskResult::Succeeded(json!(null));
        rows.decide(&Command::Report { task, attempt: 1, worker, started_at, result });
        assert_eq!(rows.tasks[&task].started_at, Some(claimed + TimeDelta::seconds(began)), "{said}");
    }
}

//! Fan-outs: children, turns, tolerated failures.

use ebbflow_engine::{Command, Directive};
use model::message::TaskResult;
use model::{
    EventKind, Failure, FanOut, Message, RunState, TaskIndex, TaskKind, TaskSpec, TaskState, Tolerance,
    Workflow,
};
use serde_json::{Value, json};

use crate::rows::Rows;

/// `split` fans out over `items` items, and `after` follows.
fn fan(items: u64, max_parallel: Option<u32>, tolerated_failures: Tolerance) -> Rows {
    let mut workflow: Workflow = testkit::workflow("split -> after");
    let task = Box::new(TaskSpec { name: String::new(), ..workflow.tasks[0].clone() });
    workflow.tasks[0].kind = TaskKind::FanOut;
    workflow.tasks[0].fan_out =
        Some(FanOut { for_each: "inputs.list".into(), max_parallel, tolerated_failures, task });
    Rows::directed(workflow, move |_, _| Directive::FanOut((0..items).map(Value::from).collect()))
}

fn all_or_nothing(items: u64, max_parallel: Option<u32>) -> Rows {
    fan(items, max_parallel, Tolerance::Count(0))
}

/// Children whose work was announced and not yet answered, by place.
fn under_way(rows: &Rows) -> Vec<u32> {
    let dispatched = rows.tasks.values().filter(|task| task.state == TaskState::Dispatched);
    dispatched.filter_map(|task| Some(task.child?.item)).collect()
}

fn answer(rows: &mut Rows, item: u32, well: bool) {
    let child = TaskIndex(2 + item);
    let result = match well {
        true => TaskResult::Succeeded(json!(item)),
        false => TaskResult::Failed(Failure::permanent(format!("no {item}"))),
    };
    let attempt = rows.tasks[&child].attempt;
    let started_at = rows.now;
    rows.decide(&Command::Report { task: child, attempt, worker: None, started_at, result });
}

#[test]
fn a_fan_out_over_nothing_succeeds_at_once() {
    let rows = all_or_nothing(0, None);
    assert_eq!(rows.stand(), "split=succeeded after=dispatched run=running");
    assert_eq!(rows.outputs, [(TaskIndex(0), json!({"count": 0, "succeeded": 0, "failed": 0}))]);
}

#[test]
fn each_item_is_a_task_of_its_own_and_what_follows_waits_for_all() {
    let mut rows = all_or_nothing(2, None);
    assert_eq!(
        rows.stand(),
        "split=sleeping after=pending split__0=dispatched split__1=dispatched run=running"
    );
    assert_eq!(rows.items.values().collect::<Vec<_>>(), [&json!(0), &json!(1)]);
    answer(&mut rows, 1, true);
    assert_eq!(rows.tasks[&TaskIndex(1)].state, TaskState::Pending);
    answer(&mut rows, 0, true);
    assert_eq!(
        rows.stand(),
        "split=succeeded after=dispatched split__0=succeeded split__1=succeeded run=running"
    );
}

#[test]
fn no_more_children_than_allowed_are_under_way_and_each_has_its_turn() {
    let mut rows = all_or_nothing(5, Some(2));
    assert_eq!(under_way(&rows), [0, 1]);
    for (done, expected) in [(1, vec![0, 2]), (0, vec![2, 3]), (3, vec![2, 4]), (2, vec![4]), (4, vec![])] {
        answer(&mut rows, done, true);
        assert_eq!(under_way(&rows), expected, "after child {done}");
    }
    assert_eq!(rows.tasks[&TaskIndex(0)].state, TaskState::Succeeded);
}

#[test]
fn one_failure_too_many_ends_it_once_what_runs_has_ended() {
    let mut rows = all_or_nothing(5, Some(2));
    answer(&mut rows, 0, false);
    assert_eq!(under_way(&rows), [1], "no other child begins");
    assert_eq!(rows.tasks[&TaskIndex(0)].state, TaskState::Sleeping, "one is still running");
    answer(&mut rows, 1, true);
    assert_eq!(
        rows.stand(),
        "split=failed after=upstream_failed split__0=failed split__1=succeeded split__2=skipped split__3=skipped \
         split__4=skipped run=failed"
    );
    let said = "task `split` failed: 1 of 5 children failed, 0 tolerated; split__0: no 0";
    assert_eq!(rows.run.error.as_deref(), Some(said));
}

#[test]
fn tolerated_failures_do_not_fail_the_run() {
    for (tolerated, failing, expected) in [
        (Tolerance::Count(1), 1, RunState::Succeeded),
        (Tolerance::Count(1), 2, RunState::Failed),
        (Tolerance::Percent(50), 2, RunState::Succeeded),
        (Tolerance::Percent(50), 3, RunState::Failed),
        (Tolerance::Percent(100), 4, RunState::Succeeded),
    ] {
        let mut rows = fan(4, None, tolerated);
        (0..4).for_each(|item| answer(&mut rows, item, item >= failing));
        if rows.tasks[&TaskIndex(1)].state == TaskState::Dispatched {
            let result = TaskResult::Succeeded(Value::Null);
            let started_at = rows.now;
            rows.decide(&Command::Report {
                task: TaskIndex(1),
                attempt: 1,
                worker: None,
                started_at,
                result,
            });
        }
        assert_eq!(rows.run.state, expected, "{failing} of 4 failed, {tolerated:?}");
    }
}

#[test]
fn a_child_is_retried_like_any_task() {
    let mut rows = all_or_nothing(2, None).retrying(1);
    rows.decide(&Command::Report {
        task: TaskIndex(2),
        attempt: 1,
        worker: None,
        started_at: rows.now,
        result: TaskResult::Failed(Failure::new(model::ErrorClass::Killed, "killed")),
    });
    assert_eq!(rows.tasks[&TaskIndex(2)].state, TaskState::UpForRetry);
    assert_eq!(rows.timers[0].task, Some(TaskIndex(2)));
}

#[test]
fn cancelling_ends_the_children_too() {
    let mut rows = all_or_nothing(3, Some(1));
    rows.decide(&Command::Cancel { actor: "ana".into(), reason: None });
    assert!(rows.states().iter().all(|state| *state == TaskState::Cancelled), "{}", rows.stand());
    assert_eq!(rows.run.state, RunState::Cancelled);
}

#[test]
fn a_turn_that_got_lost_is_taken_at_the_next_recheck() {
    let mut rows = all_or_nothing(3, Some(2));
    let split = rows.tasks.get_mut(&TaskIndex(0)).unwrap();
    split.fan.as_mut().unwrap().released = 1;
    let second = rows.tasks.get_mut(&TaskIndex(3)).unwrap();
    (second.state, second.attempt) = (TaskState::Pending, 0);
    rows.run.counts.moved(TaskState::Dispatched, TaskState::Pending);
    rows.decide(&Command::Recheck { claim_timeout: chrono::TimeDelta::seconds(30), served: None });
    assert_eq!(under_way(&rows), [0, 1]);
}

#[test]
fn completing_a_child_writes_as_little_in_a_wide_fan_out_as_in_a_narrow_one() {
    let written = [10, 1_000].map(|items| {
        let mut rows = all_or_nothing(items, Some(5));
        answer(&mut rows, 3, true);
        rows.last_written
    });
    assert_eq!(written, [3, 3], "the child, its fan-out, and the next child");
}

#[test]
fn the_timeline_tells_of_the_children_once() {
    let rows = all_or_nothing(1_000, Some(5));
    let fanned_out = rows.events.iter().filter(|event| event.kind == EventKind::TaskFannedOut);
    assert_eq!(fanned_out.map(|event| event.data.clone()).collect::<Vec<_>>(), [json!({"count": 1_000})]);
    let announced = rows.announced.iter().filter(|message| matches!(message, Message::TaskDispatched(_)));
    assert_eq!(announced.count(), 5);
}

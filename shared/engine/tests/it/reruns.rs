//! Reruns of other things than a worker's tasks: fan-outs, switches, child runs, the run's own timeout.

use chrono::TimeDelta;
use ebbflow_engine::{Command, Directive, Mark, Operation, Outcome};
use model::message::TaskResult;
use model::{
    Case, EventKind, Failure, FanOut, Message, RunId, RunState, TaskIndex, TaskKey, TaskKind, TaskSpec,
    TaskState, TimerKind, Tolerance, TriggerRule,
};
use serde_json::{Map, Value, json};

use crate::operators::{by, clear, mark, operate, with};
use crate::rows::{Happened, Rows};

/// `split` fans out over four items, as many at a time as allowed; `after` follows.
fn fan(max_parallel: Option<u32>) -> Rows {
    tolerant(max_parallel, 0)
}

/// The same, with `tolerated` children that may fail.
fn tolerant(max_parallel: Option<u32>, tolerated: u32) -> Rows {
    let workflow = with("split -> after", |workflow| {
        let task = Box::new(TaskSpec { name: String::new(), ..workflow.tasks[0].clone() });
        let (for_each, tolerated_failures) = ("inputs.list".into(), Tolerance::Count(tolerated));
        workflow.tasks[0].kind = TaskKind::FanOut;
        workflow.tasks[0].fan_out = Some(FanOut { for_each, max_parallel, tolerated_failures, task });
    });
    Rows::directed(workflow, |_, _| Directive::FanOut((0..4).map(Value::from).collect()))
}

fn answer(rows: &mut Rows, index: u32, well: bool) {
    let result = match well {
        true => TaskResult::Succeeded(json!(index)),
        false => TaskResult::Failed(Failure::permanent("no")),
    };
    let (task, started_at) = (TaskIndex(index), rows.now);
    let attempt = rows.tasks[&task].attempt;
    rows.decide(&Command::Report { task, attempt, worker: None, started_at, result });
}

fn states(rows: &Rows, indices: std::ops::Range<u32>) -> String {
    let states = indices.map(|index| rows.tasks[&TaskIndex(index)].state.name().chars().next().unwrap());
    states.collect()
}

#[test]
fn a_retried_fan_out_does_only_the_children_that_did_not_succeed() {
    let mut rows = fan(None);
    for (index, well) in [(2, true), (3, false), (4, true), (5, false)] {
        answer(&mut rows, index, well);
    }
    assert_eq!(rows.run.state, RunState::Failed);
    operate(&mut rows, Operation::Retry);
    assert_eq!(rows.tasks[&TaskIndex(0)].state, TaskState::Sleeping);
    assert_eq!(states(&rows, 2..6), "sdsd", "the second and the last are dispatched");
    answer(&mut rows, 5, true);
    answer(&mut rows, 3, true);
    assert_eq!(rows.tasks[&TaskIndex(0)].state, TaskState::Succeeded);
    let output = &rows.outputs.iter().find(|(task, _)| task.0 == 0).unwrap().1;
    assert_eq!(*output, json!({"count": 4, "succeeded": 4, "failed": 0}));
    assert_eq!(rows.tasks[&TaskIndex(1)].state, TaskState::Dispatched);
}

#[test]
fn a_retried_fan_out_keeps_its_children_in_turn() {
    let mut rows = fan(Some(1));
    answer(&mut rows, 2, true);
    answer(&mut rows, 3, false);
    assert_eq!(states(&rows, 2..6), "sfss", "the others were skipped");
    operate(&mut rows, Operation::Retry);
    assert_eq!(states(&rows, 2..6), "sdpp");
    answer(&mut rows, 3, true);
    assert_eq!(states(&rows, 2..6), "ssdp");
    operate(&mut rows, Operation::Pause);
    answer(&mut rows, 4, true);
    assert_eq!(states(&rows, 2..6), "sssp", "no turns while it is paused");
    operate(&mut rows, Operation::Resume);
    answer(&mut rows, 5, true);
    assert_eq!(rows.tasks[&TaskIndex(0)].state, TaskState::Succeeded);
}

#[test]
fn children_of_a_retried_fan_out_that_had_succeeded_are_passed_over_in_their_turn() {
    let mut rows = tolerant(Some(1), 2);
    for (index, well) in [(2, false), (3, false), (4, true), (5, false)] {
        answer(&mut rows, index, well);
    }
    assert_eq!((rows.run.state, states(&rows, 2..6).as_str()), (RunState::Failed, "ffsf"));
    operate(&mut rows, Operation::Retry);
    assert_eq!(states(&rows, 2..6), "dpsp");
    answer(&mut rows, 2, true);
    assert_eq!(states(&rows, 2..6), "sdsp");
    answer(&mut rows, 3, false);
    assert_eq!(states(&rows, 2..6), "sfsd", "the one between them only counts");
    answer(&mut rows, 5, true);
    let output = &rows.outputs.iter().find(|(task, _)| task.0 == 0).unwrap().1;
    assert_eq!(*output, json!({"count": 4, "succeeded": 3, "failed": 1}));
}

#[test]
fn clearing_a_fan_out_makes_new_children_and_removes_the_old_ones() {
    let mut rows = fan(None);
    answer(&mut rows, 2, true);
    clear(&mut rows, "split");
    assert_eq!(states(&rows, 2..6), "rrrr");
    assert_eq!(states(&rows, 6..10), "dddd");
    answer(&mut rows, 4, true);
    assert_eq!(states(&rows, 2..6), "rrrr", "a report of a removed child is ignored");
    (6..10).for_each(|index| answer(&mut rows, index, true));
    assert_eq!(states(&rows, 0..2), "sd");
}

#[test]
fn one_child_can_be_cleared_and_what_follows_its_fan_out_waits_again() {
    let mut rows = fan(None);
    answer(&mut rows, 2, true);
    operate(&mut rows, Operation::Clear(TaskIndex(2)));
    assert_eq!(states(&rows, 0..6), "spdddd");
    (2..6).for_each(|index| answer(&mut rows, index, true));
    assert_eq!(states(&rows, 0..6), "sdssss");
    operate(&mut rows, Operation::Clear(TaskIndex(3)));
    assert_eq!(states(&rows, 0..6), "spsdss");
    assert_eq!(rows.tasks[&TaskIndex(0)].state, TaskState::Sleeping);
    answer(&mut rows, 3, true);
    assert_eq!(states(&rows, 0..6), "sdssss");
}

#[test]
fn a_fan_out_that_waits_again_knows_of_parents_that_were_cancelled_and_its_event_says_that_it_waits() {
    let workflow = with("first -> split", |workflow| {
        let task =
            Box::new(TaskSpec { name: String::new(), depends_on: Vec::new(), ..workflow.tasks[1].clone() });
        let (for_each, tolerated_failures) = ("inputs.list".into(), Tolerance::Count(0));
        workflow.tasks[1].kind = TaskKind::FanOut;
        workflow.tasks[1].trigger_rule = TriggerRule::Always;
        workflow.tasks[1].fan_out = Some(FanOut { for_each, max_parallel: None, tolerated_failures, task });
    });
    let mut rows = Rows::directed(workflow, |_, _| Directive::FanOut(vec![json!(1)]));
    rows.play(&Happened::Cancel);
    assert_eq!(operate(&mut rows, Operation::Clear(TaskIndex(2))), Outcome::Applied);
    let split = &rows.tasks[&TaskIndex(1)];
    assert_eq!((split.state, split.parents.done), (TaskState::Sleeping, 1));
    let event = rows
        .events
        .iter()
        .find(|event| event.task == Some(TaskIndex(1)) && event.kind == EventKind::TaskCleared);
    assert_eq!(event.unwrap().data["reopened"], true);
}

#[test]
fn a_child_is_marked_only_between_its_turn_and_its_end() {
    let mut rows = fan(Some(1));
    let succeed = |index| Operation::Mark(TaskIndex(index), Mark::Succeeded(Value::Null));
    assert_eq!(operate(&mut rows, succeed(3)), Outcome::Stale);
    assert_eq!(operate(&mut rows, succeed(2)), Outcome::Applied);
    assert_eq!(states(&rows, 2..6), "sdpp");
    assert_eq!(operate(&mut rows, Operation::Mark(TaskIndex(2), Mark::Failed)), Outcome::Stale);
    assert_eq!(mark(&mut rows, "split", Mark::Succeeded(Value::Null)), Outcome::Applied);
    assert_eq!(states(&rows, 0..6), "sdrrrr", "a fan-out that is marked waits for nobody");
}

#[test]
fn a_task_that_waits_for_a_run_and_is_cleared_starts_another_and_ends_the_first() {
    let workflow = with("call", |workflow| workflow.tasks[0].kind = TaskKind::Workflow);
    let mut rows = Rows::directed(workflow, |_, _| Directive::StartChild {
        workflow: "other".into(),
        inputs: Map::new(),
        wait: true,
    });
    clear(&mut rows, "call");
    let child = |attempt| RunId::of_task(TaskKey { run: rows.run.id, task: TaskIndex(0) }, attempt);
    let asked = rows.outbox.iter().filter_map(|message| match message {
        Message::RunRequested(request) => Some((request.run, true)),
        Message::CancelRequested(cancel) => Some((cancel.run, false)),
        _ => None,
    });
    assert_eq!(asked.collect::<Vec<_>>(), [(child(1), true), (child(1), false), (child(2), true)]);
}

/// `choose` picks `left`; `other` leads to both of its branches, too, which run whatever becomes of `other`.
fn switch() -> Rows {
    let workflow = with("choose, other, other -> left, other -> right", |workflow| {
        workflow.tasks[0].kind = TaskKind::Switch;
        let next = vec!["left".into(), "right".into()];
        workflow.tasks[0].cases = vec![Case { when: None, next }];
        workflow.tasks[2].trigger_rule = TriggerRule::AllDone;
        workflow.tasks[3].trigger_rule = TriggerRule::AllDone;
    });
    Rows::directed(workflow, |_, _| Directive::Choose { next: vec![TaskIndex(2)], why: Value::Null })
}

#[test]
fn a_branch_that_was_passed_over_stays_so_when_its_other_parent_is_cleared() {
    let mut rows = switch();
    rows.play(&Happened::Ok("other", 1));
    rows.play(&Happened::Ok("left", 1));
    assert_eq!(rows.stand(), "choose=succeeded other=succeeded left=succeeded right=skipped run=succeeded");
    clear(&mut rows, "other");
    assert_eq!(rows.stand(), "choose=succeeded other=dispatched left=pending right=skipped run=running");
    rows.play(&Happened::Ok("other", 2));
    assert_eq!(rows.stand(), "choose=succeeded other=succeeded left=dispatched right=skipped run=running");
}

#[test]
fn a_switch_is_marked_with_the_branches_that_go_on() {
    let mut rows = switch();
    rows.play(&Happened::Ok("other", 1));
    assert_eq!(mark(&mut rows, "choose", Mark::Succeeded(json!({"next": ["right"]}))), Outcome::Applied);
    assert_eq!(rows.stand(), "choose=succeeded other=succeeded left=skipped right=dispatched run=running");
}

#[test]
fn a_retried_run_has_all_its_time_again() {
    let mut rows = Rows::of(with("a", |workflow| workflow.timeout_seconds = Some(60)));
    rows.now += TimeDelta::seconds(60);
    rows.decide(&Command::Wake { task: None, attempt: 0, kind: TimerKind::Timeout });
    assert_eq!(rows.stand(), "a=failed run=failed");
    rows.now += TimeDelta::hours(1);
    operate(&mut rows, Operation::Retry);
    let timer = rows.timers.iter().find(|timer| timer.task.is_none()).unwrap();
    assert_eq!(timer.wake_at, rows.now + TimeDelta::seconds(60));
    rows.play(&Happened::Ok("a", 2));
    assert_eq!(rows.stand(), "a=succeeded run=succeeded", "nothing is left of the first failure");
}

#[test]
fn what_comes_together_is_counted_once() {
    let mut rows = Rows::of(testkit::workflow("a -> c, b -> c"));
    let report = |task, attempt, started_at| {
        let result = TaskResult::Succeeded(Value::Null);
        Command::Report { task: TaskIndex(task), attempt, worker: None, started_at, result }
    };
    let clear = Command::Operate { operation: Operation::Clear(TaskIndex(2)), by: by() };
    rows.decide_all(&[report(0, 1, rows.now), report(2, 1, rows.now), clear]);
    assert_eq!(rows.stand(), "a=succeeded c=pending b=dispatched run=running");
    rows.play(&Happened::Ok("b", 2));
    assert_eq!(rows.tasks[&TaskIndex(1)].parents.done, 2);
    assert_eq!(rows.stand(), "a=succeeded c=dispatched b=succeeded run=running");
    let cancel = Command::Cancel { actor: "ana".into(), reason: None };
    let retry = Command::Operate { operation: Operation::Retry, by: by() };
    rows.decide_all(&[cancel, retry]);
    assert_eq!(rows.stand(), "a=succeeded c=dispatched b=succeeded run=running");
}

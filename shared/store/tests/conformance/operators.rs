//! Claims about what people rerun.

use model::change::Recheck;
use model::task::Tally;
use model::{Changes, Child, Fan, RunState, Task, TaskIndex, TaskState};
use serde_json::json;
use store::{Error, MAX_OUTPUTS, Share, ShareAsk};

use crate::Subject;
use crate::example::{TENANT, at, changes, example, key, run, step};

fn end(changes: &mut Changes) {
    changes.tasks[1].state = TaskState::Succeeded;
    changes.tasks[1].finished_at = Some(at(1));
}

pub(crate) async fn all_tasks_come_whether_they_ended_or_not(store: Subject) {
    let (first, second) = (example(&*store, 1).await, example(&*store, 2).await);
    step(&*store, first, end).await.unwrap();
    let mut unit = store.begin().await.unwrap();
    unit.lock(&[first, second]).await.unwrap();
    let all = unit.all_tasks(&[second, first, second]).await.unwrap();
    let ended: Vec<_> = all.iter().map(|(run, task)| (*run, task.index.0, task.state.is_final())).collect();
    let of = |run| [(run, 0, false), (run, 1, run == first), (run, 2, false)];
    assert_eq!(ended, [of(first), of(second)].concat());
}

pub(crate) async fn an_output_that_is_withdrawn_is_gone_and_can_be_delivered_again(store: Subject) {
    let id = example(&*store, 1).await;
    let outputs = || async { store.outputs(id, &[TaskIndex(0), TaskIndex(1)]).await.unwrap() };
    let both = vec![(TaskIndex(0), json!(1)), (TaskIndex(1), json!(2))];
    step(&*store, id, |changes| changes.outputs = both).await.unwrap();

    let mut unit = store.begin().await.unwrap();
    let mut now = changes(unit.lock(&[id]).await.unwrap().remove(0));
    now.withdrawn = vec![TaskIndex(0), TaskIndex(2)];
    unit.save(&[now]).await.unwrap();
    let seen = unit.context(id, &[TaskIndex(0), TaskIndex(1)]).await.unwrap().unwrap().outputs;
    assert_eq!(seen, [(TaskIndex(1), json!(2))].into());
    unit.commit().await.unwrap();
    assert_eq!(outputs().await, [(TaskIndex(1), json!(2))].into());

    let at_once = |changes: &mut Changes| {
        changes.withdrawn = vec![TaskIndex(1)];
        changes.outputs = vec![(TaskIndex(0), json!(3)), (TaskIndex(1), json!(4))];
    };
    step(&*store, id, at_once).await.unwrap();
    assert_eq!(outputs().await, [(TaskIndex(0), json!(3)), (TaskIndex(1), json!(4))].into());
}

pub(crate) async fn outputs_that_are_too_large_together_are_not_read(store: Subject) {
    let id = example(&*store, 1).await;
    let each = "x".repeat(MAX_OUTPUTS / 2 - 10);
    let all = [TaskIndex(0), TaskIndex(1), TaskIndex(2)];
    step(&*store, id, |changes| changes.outputs = all.map(|task| (task, json!(each))).to_vec())
        .await
        .unwrap();
    assert_eq!(store.outputs(id, &all[1..]).await.unwrap().len(), 2);
    let read = store.outputs(id, &all).await;
    assert!(matches!(read, Err(Error::TooLarge)), "{:?}", read.map(|found| found.len()));
    let mut unit = store.begin().await.unwrap();
    let run = unit.lock(&[id]).await.unwrap().remove(0);
    assert!(matches!(unit.context(id, &all).await, Err(Error::TooLarge)));
    let found = unit.context(id, &all[..2]).await.unwrap().unwrap();
    assert_eq!(found.outputs.len(), 2, "the transaction goes on");
    unit.save(&[changes(run)]).await.unwrap();
    unit.commit().await.unwrap();
}

pub(crate) async fn children_that_were_removed_are_not_listed(store: Subject) {
    let id = example(&*store, 1).await;
    let child = |index, item, state: TaskState| Task {
        state,
        child: Some(Child { of: TaskIndex(1), item }),
        finished_at: state.is_final().then(|| at(1)),
        ..Task::pending(TaskIndex(index), at(0))
    };
    step(&*store, id, |changes| {
        let fan = Fan { first: TaskIndex(4), total: 1, released: 1, ended: Tally::default() };
        changes.tasks[1].fan = Some(fan);
        changes.new_tasks = vec![child(3, 0, TaskState::Removed), child(4, 0, TaskState::Pending)];
        changes.run.counts.grew(2);
    })
    .await
    .unwrap();
    let listed = store.run_tasks(id, Some(TaskIndex(1)), None, 9).await.unwrap();
    assert_eq!(listed.into_iter().map(|record| record.task.index.0).collect::<Vec<_>>(), [4]);
}

pub(crate) async fn only_attempts_that_were_made_are_void(store: Subject) {
    let id = example(&*store, 1).await;
    let refused = step(&*store, id, |changes| changes.tasks[0].voided = 1).await;
    assert!(matches!(refused, Err(Error::Database(_))), "{refused:?}");
}

pub(crate) async fn a_finished_run_can_be_reopened(store: Subject) {
    let id = example(&*store, 1).await;
    step(&*store, id, |changes| {
        changes.run.state = RunState::Failed;
        changes.run.finished_at = Some(at(1));
        changes.run.error = Some("no".to_owned());
    })
    .await
    .unwrap();
    step(&*store, id, |changes| {
        changes.run.state = RunState::Queued;
        changes.run.finished_at = None;
        changes.run.error = None;
        changes.recheck = Recheck::By(at(5));
    })
    .await
    .unwrap();
    let reopened = run(&*store, id).await;
    assert_eq!((reopened.state, reopened.finished_at, reopened.error), (RunState::Queued, None, None));
    assert_eq!(store.due_rechecks(at(5), 9).await.unwrap(), [id]);
}

pub(crate) async fn what_a_cleared_task_delivered_serves_nobody_any_more(store: Subject) {
    let id = example(&*store, 1).await;
    let ask = |by| ShareAsk {
        tenant: TENANT,
        name: "rates".to_owned(),
        key: "monday".to_owned(),
        by,
        attempt: 1,
        fresh_since: at(0),
    };
    let share = |by| {
        let store = store.clone();
        async move {
            let mut unit = store.begin().await.unwrap();
            let share = unit.share(&ask(by)).await.unwrap();
            unit.commit().await.unwrap();
            share
        }
    };
    assert_eq!(share(key(id, 1)).await, Share::Own);
    step(&*store, id, |changes| {
        end(changes);
        changes.shares_ended = vec![(TaskIndex(1), true)];
    })
    .await
    .unwrap();
    assert_eq!(share(key(id, 2)).await, Share::Reuse(key(id, 1), json!(null)));
    step(&*store, id, |changes| changes.shares_ended = vec![(TaskIndex(1), false)]).await.unwrap();
    assert_eq!(share(key(id, 2)).await, Share::Own);
}

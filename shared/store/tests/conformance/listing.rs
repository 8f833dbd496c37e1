//! Claims about lists of runs, tasks and outputs.

use model::{Parent, RunId, RunState, TaskIndex, TenantId, Timer, TimerKind};
use serde_json::json;
use store::{RunFilter, Starter};

use crate::Subject;
use crate::example::{TENANT, at, create, definition, example, finish, key, new_run, run_id, step, version};

/// Runs 1 to 6: two are created at a time, those of an odd number are of `example`, the others of `other`.
async fn six_runs(store: &Subject) {
    for workflow in ["example", "other"] {
        store.register(&definition(workflow, "h1")).await.unwrap();
    }
    for number in 1..=6 {
        let workflow = if number % 2 == 1 { "example" } else { "other" };
        let version = store.workflow(TENANT, workflow).await.unwrap().unwrap().version.id;
        let mut new_run = new_run(run_id(number), version, 3);
        new_run.changes.run.workflow = workflow.to_owned();
        new_run.changes.run.created_at = at((number as i64 + 1) / 2);
        create(&**store, &new_run).await.unwrap();
    }
}

async fn list(store: &Subject, filter: RunFilter) -> Vec<u128> {
    let page = store.runs(TENANT, &filter).await.unwrap();
    page.into_iter().map(|record| record.run.id.0.as_u128()).collect()
}

pub(crate) async fn runs_are_listed_newest_first(store: Subject) {
    six_runs(&store).await;
    assert_eq!(list(&store, RunFilter { limit: 9, ..RunFilter::default() }).await, [6, 5, 4, 3, 2, 1]);
    let page = store.runs(TENANT, &RunFilter { limit: 1, ..RunFilter::default() }).await.unwrap();
    assert_eq!(Some(&page[0]), store.run(TENANT, run_id(6)).await.unwrap().as_ref());
}

pub(crate) async fn runs_are_filtered_by_workflow_and_state(store: Subject) {
    six_runs(&store).await;
    finish(&*store, run_id(3)).await;
    finish(&*store, run_id(4)).await;
    let example = Some("example".to_owned());
    let filter = RunFilter { workflow: example.clone(), limit: 9, ..RunFilter::default() };
    assert_eq!(list(&store, filter).await, [5, 3, 1]);
    let filter = RunFilter { state: Some(RunState::Cancelled), limit: 9, ..RunFilter::default() };
    assert_eq!(list(&store, filter.clone()).await, [4, 3]);
    assert_eq!(list(&store, RunFilter { workflow: example, ..filter }).await, [3]);
}

/// A run that the second task of another one started.
async fn child(store: &Subject, number: u128, of: u128, second: i64) -> RunId {
    let mut new_run = new_run(run_id(number), version(&**store).await, 1);
    new_run.changes.run.parent = Some(Parent { key: key(run_id(of), 1), attempt: 1, waits: true, depth: 1 });
    new_run.changes.run.depth = 1;
    new_run.changes.run.created_at = at(second);
    create(&**store, &new_run).await.unwrap();
    run_id(number)
}

pub(crate) async fn runs_are_filtered_by_the_run_that_started_them(store: Subject) {
    example(&*store, 1).await;
    for (number, of, second) in [(2, 1, 3), (3, 1, 4), (4, 2, 5), (5, 77, 6)] {
        child(&store, number, of, second).await;
    }
    let filter = |parent| RunFilter { parent: Some(run_id(parent)), limit: 9, ..RunFilter::default() };
    assert_eq!(list(&store, filter(1)).await, [3, 2]);
    assert_eq!(list(&store, filter(2)).await, [4]);
    assert_eq!(list(&store, filter(3)).await, [0; 0]);
}

pub(crate) async fn a_run_says_of_which_version_the_task_is_that_started_it(store: Subject) {
    let parent = example(&*store, 1).await;
    let starter = async |id| store.run(TENANT, id).await.unwrap().unwrap().starter;
    let version = version(&*store).await;
    let started = child(&store, 2, 1, 0).await;
    assert_eq!(starter(started).await, Some(Starter { version, child: None }));
    assert_eq!(starter(parent).await, None);
    assert_eq!(starter(child(&store, 3, 77, 0).await).await, None, "the run that started it is gone");
}

pub(crate) async fn a_run_of_another_tenant_is_not_found(store: Subject) {
    let id = example(&*store, 1).await;
    assert_eq!(store.run(TenantId(2), id).await.unwrap(), None);
    assert_eq!(store.runs(TenantId(2), &RunFilter { limit: 9, ..RunFilter::default() }).await.unwrap(), []);
}

pub(crate) async fn tasks_are_listed_by_index_and_by_page_with_output_and_timer(store: Subject) {
    let id = example(&*store, 1).await;
    let timer = Timer { task: Some(TaskIndex(2)), attempt: 1, kind: TimerKind::Sleep, wake_at: at(9) };
    step(&*store, id, |changes| {
        changes.outputs = vec![(TaskIndex(1), json!({"rows": 3}))];
        changes.timers = vec![timer.clone()];
    })
    .await
    .unwrap();
    let all = store.run_tasks(id, None, None, 100).await.unwrap();
    assert_eq!(all.iter().map(|record| record.task.index.0).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!((&all[0].output, &all[0].timer), (&None, &None));
    assert_eq!((&all[1].output, &all[1].timer), (&Some(json!({"rows": 3})), &None));
    assert_eq!((&all[2].output, &all[2].timer), (&None, &Some(timer)));
    assert_eq!(store.run_tasks(id, None, Some(TaskIndex(0)), 1).await.unwrap(), all[1..2]);
    assert_eq!(store.run_tasks(id, None, Some(TaskIndex(2)), 1).await.unwrap(), []);
}

pub(crate) async fn of_several_timers_a_task_shows_the_one_that_is_due_first(store: Subject) {
    let id = example(&*store, 1).await;
    let timer = |task, kind, second| Timer { task, attempt: 0, kind, wake_at: at(second) };
    let (first, second) = (Some(TaskIndex(0)), Some(TaskIndex(1)));
    let timers = [
        timer(None, TimerKind::Deadline, 1),
        timer(first, TimerKind::Timeout, 30),
        timer(first, TimerKind::Retry, 20),
        timer(second, TimerKind::Timeout, 20),
        timer(second, TimerKind::Retry, 20),
    ];
    step(&*store, id, |changes| changes.timers = timers.to_vec()).await.unwrap();
    let shown: Vec<_> =
        store.run_tasks(id, None, None, 9).await.unwrap().into_iter().map(|record| record.timer).collect();
    assert_eq!(shown, [Some(timers[2].clone()), Some(timers[4].clone()), None]);
}

pub(crate) async fn only_the_outputs_asked_for_are_returned(store: Subject) {
    let id = example(&*store, 1).await;
    let outputs = (0..3).map(|index| (TaskIndex(index), json!(index))).collect();
    step(&*store, id, |changes| changes.outputs = outputs).await.unwrap();
    let some = store.outputs(id, &[TaskIndex(2), TaskIndex(0), TaskIndex(7)]).await.unwrap();
    assert_eq!(some, [(TaskIndex(0), json!(0)), (TaskIndex(2), json!(2))].into());
    assert!(store.outputs(id, &[]).await.unwrap().is_empty());
}

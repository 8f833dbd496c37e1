//! Claims about transactions: fences, locks, and all or nothing.

use model::change::Recheck;
use model::{
    AttemptRecord, Changes, RunId, RunState, Signal, TaskIndex, TaskState, Timer, TimerKind, VersionId,
};
use serde_json::json;
use store::{Created, Error, NewRunRecord, RunRecord};

use crate::Subject;
use crate::example::{
    TENANT, at, changes, create, event, example, finish, key, new_run, nudge, picture, record, run, run_id,
    step, task, version,
};

/// A change of everything that can be changed.
fn change_all(changes: &mut Changes) {
    let (run, first) = (changes.run.id, TaskIndex(0));
    changes.run.failures += 1;
    changes.tasks[0].attempt += 1;
    changes.outputs.push((first, json!("out")));
    changes.timers.push(Timer { task: Some(first), attempt: 1, kind: TimerKind::Retry, wake_at: at(5) });
    changes.outbox.push(nudge(run));
    changes.recheck = Recheck::At(at(60));
    changes.attempts.push(AttemptRecord {
        task: first,
        attempt: 1,
        state: TaskState::Failed,
        worker: None,
        started_at: None,
        finished_at: at(1),
        failure: None,
        decision: "again".to_owned(),
        next_attempt_at: None,
    });
    record(changes, &[event(1)]);
}

pub(crate) async fn a_new_run_is_there_with_all_its_rows(store: Subject) {
    let mut new_run = new_run(run_id(1), version(&*store).await, 3);
    change_all(&mut new_run.changes);
    let mut unit = store.begin().await.unwrap();
    assert_eq!(unit.create(std::slice::from_ref(&new_run)).await.unwrap(), [Created::New]);
    let sent = unit.commit().await.unwrap();

    let record = store.run(TENANT, run_id(1)).await.unwrap().unwrap();
    assert_eq!((record.run, record.facts, record.version_number), (new_run.changes.run, new_run.facts, 1));
    let tasks = store.run_tasks(run_id(1), None, None, 100).await.unwrap();
    assert_eq!(tasks[0].output, Some(json!("out")));
    assert_eq!(tasks[0].timer.as_ref(), new_run.changes.timers.first());
    assert_eq!(tasks.into_iter().map(|task| task.task).collect::<Vec<_>>(), new_run.changes.tasks);
    assert_eq!(store.events(run_id(1), 0, 9).await.unwrap(), [(0, event(1))]);
    assert_eq!(store.attempts(key(run_id(1), 0)).await.unwrap(), new_run.changes.attempts);
    assert_eq!(store.agenda(at(0)).await.unwrap().recheck, Some(at(60)));
    assert_eq!(sent.as_ref().unwrap().messages, [nudge(run_id(1))]);
    assert_eq!(store.unsent(at(1), 9).await.unwrap(), Vec::from_iter(sent));
}

pub(crate) async fn a_run_of_a_taken_id_writes_nothing(store: Subject) {
    let id = example(&*store, 1).await;
    let before = picture(&*store, id).await;
    let mut again = new_run(id, version(&*store).await, 3);
    change_all(&mut again.changes);
    assert_eq!(create(&*store, &again).await.unwrap(), Created::Already);
    assert_eq!(picture(&*store, id).await, before);
}

fn dated(number: u128, version: VersionId, workflow: &str, day: i64) -> NewRunRecord {
    let mut new_run = new_run(run_id(number), version, 3);
    new_run.changes.run.workflow = workflow.to_owned();
    new_run.facts.logical_date = Some(at(day * 86_400));
    new_run
}

pub(crate) async fn a_logical_date_is_taken_once_per_workflow(store: Subject) {
    let version = version(&*store).await;
    let mut unit = store.begin().await.unwrap();
    let new_runs = [dated(1, version, "example", 1), dated(2, version, "example", 1)];
    assert_eq!(unit.create(&new_runs).await.unwrap(), [Created::New, Created::DateTaken(run_id(1))]);
    unit.commit().await.unwrap();

    let taken = Created::DateTaken(run_id(1));
    assert_eq!(create(&*store, &dated(2, version, "example", 1)).await.unwrap(), taken);
    assert_eq!(store.run(TENANT, run_id(2)).await.unwrap(), None);
    assert_eq!(create(&*store, &dated(1, version, "example", 1)).await.unwrap(), Created::Already);
    assert_eq!(create(&*store, &dated(2, version, "other", 1)).await.unwrap(), Created::New);
    assert_eq!(create(&*store, &dated(3, version, "example", 2)).await.unwrap(), Created::New);
}

pub(crate) async fn a_run_that_has_ended_may_give_up_its_date(store: Subject) {
    let version = version(&*store).await;
    let ended = run_id(1);
    for new_run in [dated(1, version, "example", 1), dated(2, version, "example", 2)] {
        create(&*store, &new_run).await.unwrap();
    }
    finish(&*store, ended).await;
    for run in [ended, run_id(2), ended] {
        store.give_up_date(run).await.unwrap();
    }
    assert_eq!(create(&*store, &dated(3, version, "example", 1)).await.unwrap(), Created::New);
    let taken = Created::DateTaken(run_id(2));
    assert_eq!(create(&*store, &dated(4, version, "example", 2)).await.unwrap(), taken, "it goes on");
    let date = |record: RunRecord| record.facts.logical_date;
    assert_eq!(store.run(TENANT, ended).await.unwrap().and_then(date), Some(at(86_400)), "as it was");
}

pub(crate) async fn a_run_of_an_unknown_version_is_refused(store: Subject) {
    let refused = create(&*store, &new_run(run_id(1), VersionId(77), 1)).await;
    assert!(matches!(refused, Err(Error::Database(_))), "{refused:?}");
}

pub(crate) async fn locked_runs_come_once_and_in_id_order(store: Subject) {
    let (first, second) = (example(&*store, 1).await, example(&*store, 2).await);
    let mut unit = store.begin().await.unwrap();
    let locked = unit.lock(&[second, run_id(9), first, second]).await.unwrap();
    assert_eq!(locked.iter().map(|run| run.id).collect::<Vec<_>>(), [first, second]);
}

pub(crate) async fn named_tasks_come_once_and_those_that_do_not_exist_are_left_out(store: Subject) {
    let id = example(&*store, 1).await;
    let mut unit = store.begin().await.unwrap();
    unit.lock(&[id]).await.unwrap();
    let found =
        unit.tasks(&[key(id, 2), key(id, 0), key(id, 3), key(run_id(9), 0), key(id, 2)]).await.unwrap();
    let found: Vec<_> = found.into_iter().map(|(run, task)| (run, task.index)).collect();
    assert_eq!(found, [(id, TaskIndex(0)), (id, TaskIndex(2))]);
}

pub(crate) async fn unfinished_tasks_leave_out_those_that_ended(store: Subject) {
    let (first, second) = (example(&*store, 1).await, example(&*store, 2).await);
    let skip = |changes: &mut Changes| {
        changes.tasks[1].state = TaskState::Skipped;
        changes.tasks[1].finished_at = Some(at(1));
    };
    step(&*store, first, skip).await.unwrap();
    let mut unit = store.begin().await.unwrap();
    unit.lock(&[first, second]).await.unwrap();
    let open = unit.unfinished(&[second, first]).await.unwrap();
    let open: Vec<_> = open.into_iter().map(|(run, task)| (run, task.index.0)).collect();
    assert_eq!(open, [(first, 0), (first, 2), (second, 0), (second, 1), (second, 2)]);
}

pub(crate) async fn a_save_raises_the_revisions_it_wrote_over(store: Subject) {
    let id = example(&*store, 1).await;
    step(&*store, id, |changes| drop(changes.tasks.drain(1..))).await.unwrap();
    step(&*store, id, |changes| drop(changes.tasks.drain(1..))).await.unwrap();
    assert_eq!(run(&*store, id).await.revision, 2);
    assert_eq!(task(&*store, id, 0).await.revision, 2);
    assert_eq!(task(&*store, id, 1).await.revision, 0);
}

async fn conflicts(store: Subject, spoil: impl FnOnce(&mut Changes)) {
    let id = example(&*store, 1).await;
    step(&*store, id, |_| {}).await.unwrap();
    let before = picture(&*store, id).await;
    let stale = step(&*store, id, |changes| {
        change_all(changes);
        spoil(changes);
    });
    let stale = stale.await;
    assert!(matches!(stale, Err(Error::Conflict)), "{stale:?}");
    assert_eq!(picture(&*store, id).await, before);
}

pub(crate) async fn a_stale_run_is_a_conflict_and_leaves_nothing(store: Subject) {
    conflicts(store, |changes| changes.run.revision -= 1).await;
}

pub(crate) async fn a_stale_task_is_a_conflict_and_leaves_nothing(store: Subject) {
    conflicts(store, |changes| changes.tasks[2].revision -= 1).await;
}

pub(crate) async fn a_unit_that_met_a_conflict_cannot_be_committed(store: Subject) {
    let id = example(&*store, 1).await;
    let before = picture(&*store, id).await;
    let mut unit = store.begin().await.unwrap();
    let mut locked = unit.lock(&[id]).await.unwrap().remove(0);
    unit.save(&[changes(locked.clone())]).await.unwrap();
    locked.failures = 7;
    assert!(matches!(unit.save(&[changes(locked)]).await, Err(Error::Conflict)));
    assert!(matches!(unit.commit().await, Err(Error::Conflict)));
    assert_eq!(picture(&*store, id).await, before);
}

pub(crate) async fn a_dropped_unit_leaves_no_trace(store: Subject) {
    let id = example(&*store, 1).await;
    let before = picture(&*store, id).await;
    let mut unit = store.begin().await.unwrap();
    let mut all = changes(unit.lock(&[id]).await.unwrap().remove(0));
    all.tasks = unit.tasks(&[key(id, 0)]).await.unwrap().into_iter().map(|(_, task)| task).collect();
    change_all(&mut all);
    unit.save(&[all]).await.unwrap();
    unit.create(&[new_run(run_id(2), version(&*store).await, 1)]).await.unwrap();
    drop(unit);
    assert_eq!(picture(&*store, id).await, before);
    assert_eq!(store.run(TENANT, run_id(2)).await.unwrap(), None);
    step(&*store, id, change_all).await.unwrap();
}

pub(crate) async fn a_unit_sees_what_it_wrote_and_others_do_not(store: Subject) {
    let version = version(&*store).await;
    let mut unit = store.begin().await.unwrap();
    unit.create(&[new_run(run_id(1), version, 2)]).await.unwrap();
    let mut first = changes(unit.lock(&[run_id(1)]).await.unwrap().remove(0));
    first.tasks = unit.unfinished(&[run_id(1)]).await.unwrap().into_iter().map(|(_, task)| task).collect();
    first.tasks[0].state = TaskState::Skipped;
    first.tasks[0].finished_at = Some(at(1));
    unit.save(&[first]).await.unwrap();
    assert_eq!(unit.lock(&[run_id(1)]).await.unwrap()[0].revision, 1);
    assert_eq!(unit.tasks(&[key(run_id(1), 0)]).await.unwrap()[0].1.state, TaskState::Skipped);
    assert_eq!(unit.unfinished(&[run_id(1)]).await.unwrap().len(), 1);
    assert_eq!(store.run(TENANT, run_id(1)).await.unwrap(), None);
    unit.commit().await.unwrap();
    assert_eq!(run(&*store, run_id(1)).await.revision, 1);
}

pub(crate) async fn concurrent_units_on_one_run_take_turns(store: Subject) {
    let id = example(&*store, 1).await;
    let count = || step(&*store, id, |changes| changes.run.failures += 1);
    let (a, b, c, d) = tokio::join!(count(), count(), count(), count());
    for saved in [a, b, c, d] {
        saved.unwrap();
    }
    assert_eq!((run(&*store, id).await.failures, run(&*store, id).await.revision), (4, 4));
}

async fn count_both(store: &Subject, order: [RunId; 2]) {
    let mut unit = store.begin().await.unwrap();
    let locked = unit.lock(&order).await.unwrap();
    let all: Vec<Changes> = locked.into_iter().map(changes).collect();
    unit.save(&all).await.unwrap();
    unit.commit().await.unwrap();
}

pub(crate) async fn units_that_name_runs_in_opposite_order_do_not_block_each_other(store: Subject) {
    let (one, two) = (example(&*store, 1).await, example(&*store, 2).await);
    for _ in 0..10 {
        tokio::join!(count_both(&store, [one, two]), count_both(&store, [two, one]));
    }
    assert_eq!((run(&*store, one).await.revision, run(&*store, two).await.revision), (20, 20));
}

pub(crate) async fn changes_of_several_runs_are_saved_together(store: Subject) {
    let ids = [example(&*store, 1).await, example(&*store, 2).await];
    let mut unit = store.begin().await.unwrap();
    let mut all: Vec<Changes> = unit.lock(&ids).await.unwrap().into_iter().map(changes).rev().collect();
    for each in &mut all {
        let found = unit.tasks(&[key(each.run.id, 0)]).await.unwrap();
        each.tasks = found.into_iter().map(|(_, task)| task).collect();
        change_all(each);
        each.run.state = RunState::Running;
    }
    unit.save(&all).await.unwrap();
    let sent = unit.commit().await.unwrap().unwrap();
    assert_eq!(sent.messages, [nudge(ids[1]), nudge(ids[0])], "all that one unit says is one row");
    for id in ids {
        assert_eq!(run(&*store, id).await.state, RunState::Running);
        assert_eq!(task(&*store, id, 0).await.attempt, 1);
        assert_eq!(store.events(id, 0, 9).await.unwrap(), [(0, event(1))]);
    }
}

pub(crate) async fn completing_one_of_a_thousand_parents_changes_two_tasks(store: Subject) {
    let id = run_id(1);
    create(&*store, &new_run(id, version(&*store).await, 1_001)).await.unwrap();
    let mut unit = store.begin().await.unwrap();
    let mut step = changes(unit.lock(&[id]).await.unwrap().remove(0));
    let found = unit.tasks(&[key(id, 17), key(id, 1_000)]).await.unwrap();
    step.tasks = found.into_iter().map(|(_, task)| task).collect();
    step.tasks[0].state = TaskState::Succeeded;
    step.tasks[0].finished_at = Some(at(1));
    step.tasks[1].parents.count(TaskState::Succeeded);
    unit.save(&[step]).await.unwrap();
    unit.commit().await.unwrap();
    let tasks = store.run_tasks(id, None, None, 2_000).await.unwrap();
    let changed: Vec<u32> =
        tasks.iter().filter(|task| task.task.revision > 0).map(|task| task.task.index.0).collect();
    assert_eq!(changed, [17, 1_000]);
    assert_eq!(tasks[1_000].task.parents.succeeded, 1);
}

pub(crate) async fn a_kept_signal_is_there_until_it_is_taken(store: Subject) {
    let id = example(&*store, 1).await;
    let found = async |name: &str| store.begin().await.unwrap().signal(id, name).await.unwrap();
    assert_eq!(found("go").await, None);
    for payload in [json!(1), json!({"by": "ada"})] {
        let kept = Signal { name: "go".into(), payload };
        step(&*store, id, |changes| changes.kept_signals.push(kept)).await.unwrap();
    }
    assert_eq!(found("go").await, Some(json!({"by": "ada"})));
    assert_eq!(found("stop").await, None);
    step(&*store, id, |changes| changes.taken_signals.push("go".into())).await.unwrap();
    assert_eq!(found("go").await, None);
}

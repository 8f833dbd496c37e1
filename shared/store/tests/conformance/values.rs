//! Claims about what is kept: to the letter, in order, and only what makes sense.

use chrono::TimeDelta;
use model::task::Tally;
use model::{
    Changes, Child, Counts, ErrorClass, Failure, Fan, Parent, Run, RunState, Task, TaskIndex, TaskState,
};
use serde_json::{Value, json};
use store::{Context, Error};

use crate::Subject;
use crate::example::{
    TENANT, at, changes, create, definition, example, facts, key, new_run, run, run_id, step, task, version,
    worker,
};

pub(crate) async fn a_run_comes_back_as_it_was_saved(store: Subject) {
    let id = example(&*store, 1).await;
    let before = run(&*store, id).await;
    let saved = Run {
        state: RunState::Failed,
        counts: Counts::from_array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
        failures: 3,
        events: 0,
        started_at: Some(at(1)),
        finished_at: Some(at(2)),
        error: Some("`a` failed: no such file ✗".to_owned()),
        ..before
    };
    step(&*store, id, |changes| changes.run = saved.clone()).await.unwrap();
    assert_eq!(run(&*store, id).await, Run { revision: 1, ..saved });
}

pub(crate) async fn a_run_comes_back_with_its_parent_and_concurrency_group(store: Subject) {
    let id = run_id(1);
    let mut new_run = new_run(id, version(&*store).await, 1);
    let parent = Parent { key: key(run_id(9), 4), attempt: 2, waits: true, depth: 3 };
    new_run.changes.run.parent = Some(parent);
    new_run.changes.run.depth = 3;
    new_run.changes.run.concurrency_group = Some("eu \u{1F525}".to_owned());
    new_run.changes.run.waiting = true;
    create(&*store, &new_run).await.unwrap();
    assert_eq!(run(&*store, id).await, new_run.changes.run);
    let locked = store.begin().await.unwrap().lock(&[id]).await.unwrap();
    assert_eq!(locked, [new_run.changes.run.clone()]);
    step(&*store, id, |changes| changes.run.waiting = false).await.unwrap();
    assert_eq!(run(&*store, id).await, Run { waiting: false, revision: 1, ..new_run.changes.run });
}

pub(crate) async fn a_run_is_below_its_parent(store: Subject) {
    let version = version(&*store).await;
    for (parent, depth) in [(run_id(9), 0), (run_id(1), 1)] {
        let mut new_run = new_run(run_id(1), version, 1);
        new_run.changes.run.parent = Some(Parent { key: key(parent, 0), attempt: 1, waits: false, depth });
        new_run.changes.run.depth = depth;
        let refused = create(&*store, &new_run).await;
        assert!(matches!(refused, Err(Error::Database(_))), "{refused:?}");
    }
}

pub(crate) async fn only_an_attempt_begins_a_task(store: Subject) {
    is_refused(store, |changes| changes.tasks[0].begun_at = Some(at(1))).await;
}

pub(crate) async fn a_task_comes_back_as_it_was_saved(store: Subject) {
    let id = example(&*store, 1).await;
    let mut failure = Failure::new(ErrorClass::Killed, "out of memory \0 \u{1F525}");
    failure.exit_code = Some(137);
    let saved = Task {
        index: TaskIndex(1),
        state: TaskState::Running,
        attempt: 2,
        handed_back: 1,
        voided: 0,
        revision: 0,
        parents: Tally { done: 9, succeeded: 4, failed: 3, skipped: 2 },
        child: Some(Child { of: TaskIndex(0), item: 7 }),
        fan: Some(Fan {
            first: TaskIndex(3),
            total: 99,
            released: 50,
            ended: Tally { done: 40, succeeded: 20, failed: 11, skipped: 5 },
        }),
        worker: Some(worker(7)),
        since: at(3),
        begun_at: Some(at(1)),
        started_at: Some(at(2)),
        finished_at: None,
        failure: Some(failure),
    };
    step(&*store, id, |changes| changes.tasks = vec![saved.clone()]).await.unwrap();
    let found = store.begin().await.unwrap().tasks(&[key(id, 1)]).await.unwrap();
    assert_eq!(found.last(), Some(&(id, Task { revision: 1, ..saved })));
}

pub(crate) async fn an_output_comes_back_to_the_letter(store: Subject) {
    let id = example(&*store, 1).await;
    let text =
        r#"{"z": "a\u0000b", "a": 18446744073709551615, "m": [-9223372036854775808, 1.5e-7, null, "ü\n"]}"#;
    let output: Value = serde_json::from_str(text).unwrap();
    step(&*store, id, |changes| changes.outputs = vec![(TaskIndex(2), output.clone())]).await.unwrap();
    assert_eq!(store.outputs(id, &[TaskIndex(2)]).await.unwrap()[&TaskIndex(2)], output);
}

pub(crate) async fn nul_characters_do_not_make_a_write_fail(store: Subject) {
    let mut new = definition("example", "h1");
    new.source = "# \0".to_owned();
    let registered = store.register(&new).await.unwrap();
    let mut new_run = new_run(run_id(1), registered.version, 1);
    new_run.facts.trigger_by = "a\0da".to_owned();
    new_run.facts.inputs.insert("x\0".to_owned(), json!("\0"));
    new_run.changes.run.error = Some("bad\0byte".to_owned());
    create(&*store, &new_run).await.unwrap();
    let record = store.run(TENANT, run_id(1)).await.unwrap().unwrap();
    assert_eq!(record.run.error.as_deref(), Some("bad\u{FFFD}byte"));
    assert_eq!(record.facts.trigger_by, "a\u{FFFD}da");
    assert_eq!(record.facts.inputs, new_run.facts.inputs);
    assert_eq!(store.workflow(TENANT, "exa\0mple").await.unwrap(), None);
    assert_eq!(store.version(registered.version).await.unwrap().unwrap().source, "# \u{FFFD}");
}

pub(crate) async fn times_that_clocks_disagree_on_are_put_in_order(store: Subject) {
    let id = example(&*store, 1).await;
    let early = at(0) - TimeDelta::milliseconds(5);
    step(&*store, id, |changes| {
        changes.run.started_at = Some(early);
        changes.tasks[0].started_at = Some(at(1));
        changes.tasks[0].finished_at = Some(early);
        changes.tasks[0].state = TaskState::Succeeded;
        changes.tasks[1].attempt = 1;
        changes.tasks[1].begun_at = Some(at(2));
        changes.tasks[1].finished_at = Some(at(1));
        changes.tasks[1].state = TaskState::Cancelled;
    })
    .await
    .unwrap();
    assert_eq!(task(&*store, id, 1).await.finished_at, Some(at(2)));
    assert_eq!(run(&*store, id).await.started_at, Some(at(0)));
    assert_eq!(task(&*store, id, 0).await.finished_at, Some(at(1)));
}

async fn is_refused(store: Subject, spoil: impl FnOnce(&mut Changes)) {
    let id = example(&*store, 1).await;
    let refused = step(&*store, id, spoil).await;
    assert!(matches!(refused, Err(Error::Database(_))), "{refused:?}");
}

pub(crate) async fn a_final_state_without_a_time_is_refused(store: Subject) {
    is_refused(store.clone(), |changes| changes.tasks[0].state = TaskState::Succeeded).await;
    let id = run_id(1);
    let refused = step(&*store, id, |changes| changes.run.state = RunState::Succeeded).await;
    assert!(matches!(refused, Err(Error::Database(_))), "{refused:?}");
}

pub(crate) async fn a_worker_holds_running_tasks_only(store: Subject) {
    is_refused(store, |changes| changes.tasks[0].worker = Some(worker(1))).await;
}

pub(crate) async fn a_second_output_of_a_task_is_refused(store: Subject) {
    let id = example(&*store, 1).await;
    let deliver = |changes: &mut Changes| changes.outputs.push((TaskIndex(0), json!(1)));
    step(&*store, id, deliver).await.unwrap();
    let refused = step(&*store, id, deliver).await;
    assert!(matches!(refused, Err(Error::Database(_))), "{refused:?}");
}

pub(crate) async fn templates_are_given_facts_and_outputs(store: Subject) {
    let id = run_id(1);
    let mut unit = store.begin().await.unwrap();
    assert_eq!(unit.context(id, &[]).await.unwrap(), None);
    drop(unit);
    create(&*store, &new_run(id, version(&*store).await, 3)).await.unwrap();
    step(&*store, id, |changes| changes.outputs = vec![(TaskIndex(0), json!(1)), (TaskIndex(1), json!(2))])
        .await
        .unwrap();

    let mut unit = store.begin().await.unwrap();
    let mut now = changes(unit.lock(&[id]).await.unwrap().remove(0));
    now.outputs = vec![(TaskIndex(2), json!(3))];
    unit.save(&[now]).await.unwrap();
    let outputs = [(TaskIndex(0), json!(1)), (TaskIndex(2), json!(3))].into();
    let context = unit.context(id, &[TaskIndex(0), TaskIndex(2), TaskIndex(9)]).await.unwrap();
    assert_eq!(context, Some(Context { facts: facts(), outputs }));
}

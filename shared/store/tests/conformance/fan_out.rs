//! Claims about runs that grow: fan-outs, their children, and what those are about.

use model::task::Tally;
use model::{Changes, Child, Fan, RunId, Task, TaskIndex, TaskState};
use serde_json::{Value, json};
use store::{Error, Result, Unsent};

use crate::Subject;
use crate::example::{at, changes, create, example, key, new_run, picture, run, run_id, step, task, version};

/// The children of task 1, in the order of its list.
fn children(first: u32, total: u32) -> Vec<Task> {
    let child = |item| Some(Child { of: TaskIndex(1), item });
    let task = |item| Task { child: child(item), ..Task::pending(TaskIndex(first + item), at(1)) };
    (0..total).map(task).collect()
}

/// Task 1 becomes a fan-out of `total` children, whose indices follow those of all other tasks.
fn fan_out(changes: &mut Changes, total: u32) {
    let first = changes.run.counts.total();
    changes.tasks[1].fan =
        Some(Fan { first: TaskIndex(first), total, released: total, ended: Tally::default() });
    changes.new_tasks = children(first, total);
    changes.items = (0..total).map(|item| (TaskIndex(first + item), json!({ "number": item }))).collect();
    changes.run.counts.grew(total);
}

/// A run of three tasks, of which the second is a fan-out of four children: 3 to 6.
async fn grown(store: &Subject) -> RunId {
    let id = example(&**store, 1).await;
    step(&**store, id, |changes| fan_out(changes, 4)).await.unwrap();
    id
}

/// Ends the named tasks in the given states, in one unit, with outputs for those that have one.
async fn end(store: &Subject, id: RunId, ends: &[(u32, TaskState, Option<Value>)]) -> Result<Option<Unsent>> {
    let mut unit = store.begin().await?;
    let mut changes = changes(unit.lock(&[id]).await?.remove(0));
    for (index, state, output) in ends {
        let found = unit.tasks(&[key(id, *index)]).await?;
        let mut task = found.into_iter().map(|(_, task)| task).find(|task| task.index.0 == *index).unwrap();
        task.state = *state;
        task.finished_at = Some(at(2));
        changes.tasks.push(task);
        changes.outputs.extend(output.clone().map(|output| (TaskIndex(*index), output)));
    }
    unit.save(&[changes]).await?;
    unit.commit().await
}

pub(crate) async fn children_are_there_with_their_items(store: Subject) {
    let id = grown(&store).await;
    assert_eq!(run(&*store, id).await.counts.total(), 7);
    let records = store.run_tasks(id, Some(TaskIndex(1)), None, 9).await.unwrap();
    assert_eq!(records.into_iter().map(|record| record.task).collect::<Vec<_>>(), children(3, 4));
    assert_eq!(store.item(key(id, 5)).await.unwrap(), Some(json!({"number": 2})));
    assert_eq!(store.item(key(id, 2)).await.unwrap(), None);
}

pub(crate) async fn a_run_can_be_created_with_children(store: Subject) {
    let id = run_id(1);
    let mut new_run = new_run(id, version(&*store).await, 3);
    fan_out(&mut new_run.changes, 2);
    create(&*store, &new_run).await.unwrap();
    assert_eq!(task(&*store, id, 1).await, new_run.changes.tasks[1]);
    assert_eq!(store.run_tasks(id, Some(TaskIndex(1)), None, 9).await.unwrap().len(), 2);
    assert_eq!(store.item(key(id, 4)).await.unwrap(), Some(json!({"number": 1})));
}

pub(crate) async fn ten_thousand_children_are_created_in_one_save(store: Subject) {
    let id = example(&*store, 1).await;
    step(&*store, id, |changes| fan_out(changes, 10_000)).await.unwrap();
    let last = store.run_tasks(id, Some(TaskIndex(1)), Some(TaskIndex(10_000)), 9).await.unwrap();
    assert_eq!(last.iter().map(|record| record.task.index.0).collect::<Vec<_>>(), [10_001, 10_002]);
    assert_eq!(store.item(key(id, 10_002)).await.unwrap(), Some(json!({"number": 9_999})));
}

pub(crate) async fn children_are_listed_apart_from_the_tasks_of_the_definition(store: Subject) {
    let id = grown(&store).await;
    let list = async |of: Option<u32>, after: Option<u32>, limit| {
        let page = store.run_tasks(id, of.map(TaskIndex), after.map(TaskIndex), limit).await.unwrap();
        page.into_iter().map(|record| record.task.index.0).collect::<Vec<_>>()
    };
    assert_eq!(list(None, None, 9).await, [0, 1, 2]);
    assert_eq!(list(None, Some(2), 9).await, [0; 0]);
    assert_eq!(list(Some(1), None, 9).await, [3, 4, 5, 6]);
    assert_eq!(list(Some(1), Some(3), 2).await, [4, 5]);
    assert_eq!(list(Some(1), Some(6), 9).await, [0; 0]);
    assert_eq!(list(Some(0), None, 9).await, [0; 0]);
    assert_eq!(list(Some(77), None, 9).await, [0; 0]);
}

pub(crate) async fn children_of_two_fan_outs_are_listed_apart(store: Subject) {
    let id = grown(&store).await;
    step(&*store, id, |changes| {
        let fan = Fan { first: TaskIndex(7), total: 1, released: 0, ended: Tally::default() };
        changes.tasks[2].fan = Some(fan);
        let child = Some(Child { of: TaskIndex(2), item: 0 });
        changes.new_tasks = vec![Task { child, ..Task::pending(TaskIndex(7), at(1)) }];
    })
    .await
    .unwrap();
    assert_eq!(store.run_tasks(id, Some(TaskIndex(1)), None, 9).await.unwrap().len(), 4);
    let second = store.run_tasks(id, Some(TaskIndex(2)), None, 9).await.unwrap();
    assert_eq!(second.iter().map(|record| record.task.index.0).collect::<Vec<_>>(), [7]);
}

pub(crate) async fn a_named_child_comes_with_its_fan_out(store: Subject) {
    let id = grown(&store).await;
    let mut unit = store.begin().await.unwrap();
    unit.lock(&[id]).await.unwrap();
    for (named, expected) in
        [(vec![5], vec![1, 5]), (vec![4, 1, 3], vec![1, 3, 4]), (vec![0], vec![0]), (vec![1], vec![1])]
    {
        let keys: Vec<_> = named.into_iter().map(|index| key(id, index)).collect();
        let found = unit.tasks(&keys).await.unwrap();
        assert_eq!(found.iter().map(|(_, task)| task.index.0).collect::<Vec<_>>(), expected);
    }
}

pub(crate) async fn a_unit_sees_the_children_it_made(store: Subject) {
    let id = example(&*store, 1).await;
    let mut unit = store.begin().await.unwrap();
    let mut first = changes(unit.lock(&[id]).await.unwrap().remove(0));
    first.tasks = unit.unfinished(&[id]).await.unwrap().into_iter().map(|(_, task)| task).collect();
    fan_out(&mut first, 2);
    unit.save(&[first]).await.unwrap();
    let named = unit.tasks(&[key(id, 4)]).await.unwrap();
    assert_eq!(named.iter().map(|(_, task)| task.index.0).collect::<Vec<_>>(), [1, 4]);
    assert_eq!(unit.unfinished(&[id]).await.unwrap().len(), 5);
    let items = unit.items(id, &[TaskIndex(3), TaskIndex(4)]).await.unwrap();
    assert_eq!(items[&TaskIndex(4)], json!({"number": 1}));
    assert_eq!(store.item(key(id, 4)).await.unwrap(), None);
}

pub(crate) async fn only_the_items_asked_for_are_returned(store: Subject) {
    let id = grown(&store).await;
    let mut unit = store.begin().await.unwrap();
    let some = unit.items(id, &[TaskIndex(6), TaskIndex(3), TaskIndex(0), TaskIndex(99)]).await.unwrap();
    assert_eq!(some, [(TaskIndex(3), json!({"number": 0})), (TaskIndex(6), json!({"number": 3}))].into());
    assert!(unit.items(id, &[]).await.unwrap().is_empty());
}

pub(crate) async fn an_item_comes_back_to_the_letter(store: Subject) {
    let id = example(&*store, 1).await;
    let item: Value =
        serde_json::from_str(r#"{"z": "a\u0000b", "a": 18446744073709551615, "m": [1.5e-7, null]}"#).unwrap();
    step(&*store, id, |changes| {
        fan_out(changes, 2);
        changes.items = vec![(TaskIndex(4), Value::Null), (TaskIndex(3), item.clone())];
    })
    .await
    .unwrap();
    assert_eq!(store.item(key(id, 3)).await.unwrap(), Some(item));
    assert_eq!(store.item(key(id, 4)).await.unwrap(), Some(Value::Null));
}

pub(crate) async fn outputs_of_children_are_read_by_child(store: Subject) {
    let id = grown(&store).await;
    let ends = [
        (6, TaskState::Succeeded, Some(json!("last"))),
        (3, TaskState::Succeeded, Some(json!("first"))),
        (4, TaskState::Failed, None),
        (5, TaskState::Succeeded, None),
        (2, TaskState::Succeeded, Some(json!("not a child"))),
    ];
    end(&store, id, &ends).await.unwrap();
    let mut unit = store.begin().await.unwrap();
    let all = unit.delivered(id, TaskIndex(3), 4, None).await.unwrap();
    let expected = [(3, json!("first")), (5, Value::Null), (6, json!("last"))];
    assert_eq!(all, expected.map(|(child, output)| (TaskIndex(child), output)).into());
    assert_eq!(
        unit.delivered(id, TaskIndex(3), 2, None).await.unwrap(),
        [(TaskIndex(3), json!("first"))].into()
    );
    assert!(unit.delivered(id, TaskIndex(3), 0, None).await.unwrap().is_empty());
    assert!(unit.delivered(id, TaskIndex(7), 9, None).await.unwrap().is_empty());
}

pub(crate) async fn of_the_outputs_of_children_the_field_that_is_asked_for_is_read(store: Subject) {
    let id = grown(&store).await;
    let large = "x".repeat(9_000_000);
    let ends = [
        (3, TaskState::Succeeded, Some(json!({"count": 1, "rows": large}))),
        (4, TaskState::Succeeded, Some(json!({"count": 2, "rows": large}))),
        (5, TaskState::Succeeded, Some(json!(["no field"]))),
    ];
    end(&store, id, &ends).await.unwrap();
    let mut unit = store.begin().await.unwrap();
    let counts = unit.delivered(id, TaskIndex(3), 4, Some("count")).await.unwrap();
    let expected = [(3, json!({"count": 1})), (4, json!({"count": 2})), (5, json!(["no field"]))];
    assert_eq!(counts, expected.map(|(child, output)| (TaskIndex(child), output)).into());
    let whole = unit.delivered(id, TaskIndex(3), 4, None).await;
    assert!(matches!(whole, Err(Error::TooLarge)), "{whole:?}");
    assert_eq!(unit.delivered(id, TaskIndex(4), 2, None).await.unwrap().len(), 2, "one of them fits");
    unit.commit().await.unwrap();
}

pub(crate) async fn a_unit_sees_what_it_has_delivered(store: Subject) {
    let id = grown(&store).await;
    let mut unit = store.begin().await.unwrap();
    let mut last = changes(unit.lock(&[id]).await.unwrap().remove(0));
    last.tasks = vec![unit.tasks(&[key(id, 6)]).await.unwrap().pop().unwrap().1];
    last.tasks[0].state = TaskState::Succeeded;
    last.tasks[0].finished_at = Some(at(2));
    last.outputs = vec![(TaskIndex(6), json!(6))];
    unit.save(&[last]).await.unwrap();
    assert_eq!(unit.delivered(id, TaskIndex(3), 4, None).await.unwrap(), [(TaskIndex(6), json!(6))].into());
}

/// The changes are refused, and nothing of them is written.
async fn is_refused(store: &Subject, spoil: impl FnOnce(&mut Changes)) {
    let before = picture(&**store, run_id(1)).await;
    let refused = step(&**store, run_id(1), spoil).await;
    assert!(matches!(refused, Err(Error::Database(_))), "{refused:?}");
    assert_eq!(picture(&**store, run_id(1)).await, before);
}

pub(crate) async fn a_child_is_created_once(store: Subject) {
    grown(&store).await;
    is_refused(&store, |changes| changes.new_tasks = children(3, 1)).await;
    is_refused(&store, |changes| changes.items = vec![(TaskIndex(3), json!(1))]).await;
}

pub(crate) async fn a_child_comes_after_its_fan_out(store: Subject) {
    example(&*store, 1).await;
    for of in [3, 4, 7] {
        is_refused(&store, |changes| {
            changes.new_tasks = children(3, 1);
            changes.new_tasks[0].child = Some(Child { of: TaskIndex(of), item: 0 });
        })
        .await;
    }
}

pub(crate) async fn a_fan_out_counts_each_child_once(store: Subject) {
    grown(&store).await;
    let tally = |done, succeeded, failed, skipped| Tally { done, succeeded, failed, skipped };
    let whole = Fan { first: TaskIndex(3), total: 4, released: 4, ended: tally(4, 2, 1, 1) };
    let spoilt = [
        Fan { released: 5, ..whole },
        Fan { ended: tally(5, 2, 1, 1), ..whole },
        Fan { ended: tally(3, 2, 1, 1), ..whole },
        Fan { first: TaskIndex(1), ..whole },
    ];
    for fan in spoilt {
        is_refused(&store, |changes| changes.tasks[1].fan = Some(fan)).await;
    }
    step(&*store, run_id(1), |changes| changes.tasks[1].fan = Some(whole)).await.unwrap();
    assert_eq!(task(&*store, run_id(1), 1).await.fan, Some(whole));
}

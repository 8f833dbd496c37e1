//! Claims about groups: runs of one workflow that share a limit.

use model::{Parent, RunId, TaskIndex, TaskKey, TenantId};
use store::{ConcurrencyMember, Error, NewRunRecord, Store};

use crate::Subject;
use crate::example::{TENANT, at, changes, create, finish, new_run, run, run_id, step, version};

async fn in_concurrency_group(store: &dyn Store, number: u128, group: &str, second: i64) -> NewRunRecord {
    let mut new_run = new_run(run_id(number), version(store).await, 3);
    new_run.changes.run.concurrency_group = Some(group.to_owned());
    new_run.changes.run.created_at = at(second);
    new_run
}

async fn enter(store: &Subject, number: u128, group: &str, second: i64) -> RunId {
    let new_run = in_concurrency_group(&**store, number, group, second).await;
    create(&**store, &new_run).await.unwrap();
    run_id(number)
}

async fn members(store: &Subject, group: &str) -> Vec<ConcurrencyMember> {
    store.begin().await.unwrap().concurrency_group(TENANT, "example", group).await.unwrap()
}

fn member(number: u128, waiting: bool) -> ConcurrencyMember {
    ConcurrencyMember { run: run_id(number), waiting }
}

pub(crate) async fn a_concurrency_group_has_its_unfinished_runs_oldest_first(store: Subject) {
    for (number, second) in [(1, 3), (2, 2), (4, 1), (3, 1)] {
        enter(&store, number, "eu", second).await;
    }
    enter(&store, 5, "us", 0).await;
    finish(&*store, run_id(2)).await;
    let expected = [member(3, false), member(4, false), member(1, false)];
    assert_eq!(members(&store, "eu").await, expected);
    assert_eq!(members(&store, "us").await, [member(5, false)]);
    assert_eq!(members(&store, "asia").await, []);
}

pub(crate) async fn a_concurrency_group_is_of_one_workflow_and_tenant(store: Subject) {
    enter(&store, 1, "eu", 0).await;
    let mut other = in_concurrency_group(&*store, 2, "eu", 0).await;
    other.changes.run.workflow = "other".to_owned();
    create(&*store, &other).await.unwrap();
    create(&*store, &new_run(run_id(3), version(&*store).await, 1)).await.unwrap();
    assert_eq!(members(&store, "eu").await, [member(1, false)]);
    let mut unit = store.begin().await.unwrap();
    assert_eq!(unit.concurrency_group(TenantId(2), "example", "eu").await.unwrap(), []);
    assert_eq!(unit.concurrency_group(TENANT, "other", "eu").await.unwrap(), [member(2, false)]);
}

pub(crate) async fn a_held_run_is_held_until_it_is_let_go(store: Subject) {
    let mut new_run = in_concurrency_group(&*store, 1, "eu", 0).await;
    new_run.changes.run.waiting = true;
    create(&*store, &new_run).await.unwrap();
    assert_eq!(members(&store, "eu").await, [member(1, true)]);
    step(&*store, run_id(1), |changes| changes.run.waiting = false).await.unwrap();
    assert_eq!(members(&store, "eu").await, [member(1, false)]);
    assert!(!run(&*store, run_id(1)).await.waiting);
}

pub(crate) async fn only_a_run_in_a_concurrency_group_can_wait(store: Subject) {
    let mut new_run = new_run(run_id(1), version(&*store).await, 1);
    new_run.changes.run.waiting = true;
    let refused = create(&*store, &new_run).await;
    assert!(matches!(refused, Err(Error::Database(_))), "{refused:?}");
}

pub(crate) async fn concurrency_keys_may_be_empty_long_or_any_text(store: Subject) {
    let long = "group ".repeat(5_000);
    for (number, group) in (1..).zip(["", "a\0b", &format!("{long}1"), &format!("{long}2")]) {
        let id = enter(&store, number, group, 0).await;
        assert_eq!(members(&store, group).await, [member(number, false)]);
        let kept = run(&*store, id).await.concurrency_group.unwrap();
        assert_eq!(members(&store, &kept).await, [member(number, false)]);
    }
}

pub(crate) async fn a_transaction_sees_its_own_runs_in_a_concurrency_group(store: Subject) {
    enter(&store, 1, "eu", 0).await;
    enter(&store, 2, "eu", 1).await;
    let mut newest = in_concurrency_group(&*store, 3, "eu", 2).await;
    newest.changes.run.waiting = true;
    let mut unit = store.begin().await.unwrap();
    unit.create(&[newest]).await.unwrap();
    let mut first = changes(unit.lock(&[run_id(1)]).await.unwrap().remove(0));
    first.run.state = model::RunState::Cancelled;
    first.run.finished_at = Some(at(9));
    unit.save(&[first]).await.unwrap();
    assert_eq!(
        unit.concurrency_group(TENANT, "example", "eu").await.unwrap(),
        [member(2, false), member(3, true)]
    );
    drop(unit);
    assert_eq!(members(&store, "eu").await, [member(1, false), member(2, false)]);
}

/// Enters a concurrency group with a limit of one: a run that comes later waits.
async fn enter_if_free(store: &Subject, number: u128) {
    let mut new_run = in_concurrency_group(&**store, number, "eu", 0).await;
    let mut unit = store.begin().await.unwrap();
    let others = unit.concurrency_group(TENANT, "example", "eu").await.unwrap();
    new_run.changes.run.waiting = !others.is_empty();
    unit.create(&[new_run]).await.unwrap();
    unit.commit().await.unwrap();
}

pub(crate) async fn of_runs_that_enter_a_concurrency_group_at_once_one_finds_it_free(store: Subject) {
    tokio::join!(
        enter_if_free(&store, 1),
        enter_if_free(&store, 2),
        enter_if_free(&store, 3),
        enter_if_free(&store, 4)
    );
    let free = members(&store, "eu").await.into_iter().filter(|member| !member.waiting).count();
    assert_eq!(free, 1);
}

pub(crate) async fn the_ancestors_of_a_run_are_those_that_wait_for_it(store: Subject) {
    for (number, parent, waits) in
        [(1, None, true), (2, Some(1), false), (3, Some(2), true), (4, Some(3), true)]
    {
        let mut new_run = new_run(run_id(number), version(&*store).await, 1);
        let parent = parent.map(|of| Parent {
            key: TaskKey { run: run_id(of), task: TaskIndex(0) },
            attempt: 1,
            waits,
            depth: number as u32,
        });
        (new_run.changes.run.parent, new_run.changes.run.depth) = (parent, number as u32);
        create(&*store, &new_run).await.unwrap();
    }
    let mut unit = store.begin().await.unwrap();
    for (run, expected) in [(4, vec![2, 3, 4]), (3, vec![2, 3]), (2, vec![2]), (1, vec![1]), (9, vec![9])] {
        let found = unit.ancestors(run_id(run)).await.unwrap();
        assert_eq!(found, expected.into_iter().map(run_id).collect(), "above {run}");
    }
}

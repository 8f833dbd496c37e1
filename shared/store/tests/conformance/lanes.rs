//! Claims about lanes: runs of one workflow that share a limit.

use model::{Parent, RunId, TaskIndex, TaskKey, TenantId};
use store::{Birth, Error, LaneMember, Store};

use crate::Subject;
use crate::example::{TENANT, at, birth, changes, create, finish, run, run_id, step, version};

async fn in_lane(store: &dyn Store, number: u128, lane: &str, second: i64) -> Birth {
    let mut birth = birth(run_id(number), version(store).await, 3);
    birth.changes.run.lane = Some(lane.to_owned());
    birth.changes.run.created_at = at(second);
    birth
}

async fn enter(store: &Subject, number: u128, lane: &str, second: i64) -> RunId {
    let birth = in_lane(&**store, number, lane, second).await;
    create(&**store, &birth).await.unwrap();
    run_id(number)
}

async fn members(store: &Subject, lane: &str) -> Vec<LaneMember> {
    store.begin().await.unwrap().lane(TENANT, "example", lane).await.unwrap()
}

fn member(number: u128, held: bool) -> LaneMember {
    LaneMember { run: run_id(number), held }
}

pub(crate) async fn a_lane_has_its_unfinished_runs_oldest_first(store: Subject) {
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

pub(crate) async fn a_lane_is_of_one_workflow_and_tenant(store: Subject) {
    enter(&store, 1, "eu", 0).await;
    let mut other = in_lane(&*store, 2, "eu", 0).await;
    other.changes.run.workflow = "other".to_owned();
    create(&*store, &other).await.unwrap();
    create(&*store, &birth(run_id(3), version(&*store).await, 1)).await.unwrap();
    assert_eq!(members(&store, "eu").await, [member(1, false)]);
    let mut unit = store.begin().await.unwrap();
    assert_eq!(unit.lane(TenantId(2), "example", "eu").await.unwrap(), []);
    assert_eq!(unit.lane(TENANT, "other", "eu").await.unwrap(), [member(2, false)]);
}

pub(crate) async fn readers_see_the_oldest_runs_of_a_lane(store: Subject) {
    for (number, second) in [(1, 3), (2, 2), (3, 1)] {
        enter(&store, number, "eu", second).await;
    }
    let read = async |lane: &str, limit| store.in_lane(TENANT, "example", lane, limit).await.unwrap();
    assert_eq!(read("eu", 2).await, [member(3, false), member(2, false)]);
    assert_eq!(read("eu", 9).await, members(&store, "eu").await);
    assert_eq!(read("us", 9).await, []);
}

pub(crate) async fn a_held_run_is_held_until_it_is_let_go(store: Subject) {
    let mut birth = in_lane(&*store, 1, "eu", 0).await;
    birth.changes.run.held = true;
    create(&*store, &birth).await.unwrap();
    assert_eq!(members(&store, "eu").await, [member(1, true)]);
    step(&*store, run_id(1), |changes| changes.run.held = false).await.unwrap();
    assert_eq!(members(&store, "eu").await, [member(1, false)]);
    assert!(!run(&*store, run_id(1)).await.held);
}

pub(crate) async fn only_a_run_in_a_lane_can_be_held(store: Subject) {
    let mut birth = birth(run_id(1), version(&*store).await, 1);
    birth.changes.run.held = true;
    let refused = create(&*store, &birth).await;
    assert!(matches!(refused, Err(Error::Database(_))), "{refused:?}");
}

pub(crate) async fn lanes_may_be_empty_long_or_hold_anything(store: Subject) {
    let long = "lane ".repeat(5_000);
    for (number, lane) in (1..).zip(["", "a\0b", &format!("{long}1"), &format!("{long}2")]) {
        let id = enter(&store, number, lane, 0).await;
        assert_eq!(members(&store, lane).await, [member(number, false)]);
        let kept = run(&*store, id).await.lane.unwrap();
        assert_eq!(members(&store, &kept).await, [member(number, false)]);
    }
}

pub(crate) async fn a_unit_sees_its_own_runs_in_a_lane(store: Subject) {
    enter(&store, 1, "eu", 0).await;
    enter(&store, 2, "eu", 1).await;
    let mut newest = in_lane(&*store, 3, "eu", 2).await;
    newest.changes.run.held = true;
    let mut unit = store.begin().await.unwrap();
    unit.create(&[newest]).await.unwrap();
    let mut first = changes(unit.lock(&[run_id(1)]).await.unwrap().remove(0));
    first.run.state = model::RunState::Cancelled;
    first.run.finished_at = Some(at(9));
    unit.save(&[first]).await.unwrap();
    assert_eq!(unit.lane(TENANT, "example", "eu").await.unwrap(), [member(2, false), member(3, true)]);
    drop(unit);
    assert_eq!(members(&store, "eu").await, [member(1, false), member(2, false)]);
}

/// Enters a lane that has room for one run: whoever comes later is held.
async fn enter_if_free(store: &Subject, number: u128) {
    let mut birth = in_lane(&**store, number, "eu", 0).await;
    let mut unit = store.begin().await.unwrap();
    let others = unit.lane(TENANT, "example", "eu").await.unwrap();
    birth.changes.run.held = !others.is_empty();
    unit.create(&[birth]).await.unwrap();
    unit.commit().await.unwrap();
}

pub(crate) async fn of_runs_that_enter_a_lane_at_once_one_finds_it_free(store: Subject) {
    tokio::join!(
        enter_if_free(&store, 1),
        enter_if_free(&store, 2),
        enter_if_free(&store, 3),
        enter_if_free(&store, 4)
    );
    let free = members(&store, "eu").await.into_iter().filter(|member| !member.held).count();
    assert_eq!(free, 1);
}

pub(crate) async fn the_ancestors_of_a_run_are_those_that_wait_for_it(store: Subject) {
    for (number, parent, waits) in
        [(1, None, true), (2, Some(1), false), (3, Some(2), true), (4, Some(3), true)]
    {
        let mut birth = birth(run_id(number), version(&*store).await, 1);
        let parent = parent.map(|of| Parent {
            key: TaskKey { run: run_id(of), task: TaskIndex(0) },
            attempt: 1,
            waits,
            depth: number as u32,
        });
        (birth.changes.run.parent, birth.changes.run.depth) = (parent, number as u32);
        create(&*store, &birth).await.unwrap();
    }
    let mut unit = store.begin().await.unwrap();
    for (run, expected) in [(4, vec![2, 3, 4]), (3, vec![2, 3]), (2, vec![2]), (1, vec![1]), (9, vec![9])] {
        let found = unit.ancestors(run_id(run)).await.unwrap();
        assert_eq!(found, expected.into_iter().map(run_id).collect(), "above {run}");
    }
}

//! Lists of workflows, versions, timers, concurrency groups, starts of schedules and events.

use model::{Child, Event, Interval, Planned, RunId, TaskIndex, Timer, TimerKind};
use read::{TimerFilter, WorkflowCursor, WorkflowFilter, WorkflowSort};
use serde_json::json;
use store::{ConcurrencyMember, Definitions, NewVersion};

use crate::example::{
    TENANT, at, create, definition, event, example, new_run, record, run, run_id, step, version,
};
use crate::world::World;

fn later(name: &str, hash: &str, second: i64) -> NewVersion {
    NewVersion { at: at(second), ..definition(name, hash) }
}

/// The names of a page, without the workflows that every world has.
async fn names(world: &World, filter: WorkflowFilter) -> Vec<String> {
    let page = world.reader("viewer:default").workflows().list(&filter).await.unwrap();
    page.items
        .into_iter()
        .map(|workflow| workflow.name)
        .filter(|name| !["etl", "orders"].contains(&name.as_str()))
        .collect()
}

#[tokio::test]
async fn workflows_are_listed_in_every_order_and_by_page() {
    let world = World::new().await;
    for (name, second) in [("b", 3), ("a", 2), ("d", 2), ("c", 1)] {
        world.postgres().register(&later(name, "h1", second)).await.unwrap();
    }
    world.postgres().archive(TENANT, "d", at(9)).await.unwrap();
    world.postgres().archive(TENANT, "etl", at(9)).await.unwrap();
    let list = async |sort, after: Option<WorkflowCursor>, limit| {
        names(&world, WorkflowFilter { sort, after, limit, ..WorkflowFilter::default() }).await
    };
    for (sort, all) in [
        (WorkflowSort::Name, ["a", "b", "c"]),
        (WorkflowSort::NameDown, ["c", "b", "a"]),
        (WorkflowSort::LastChanged, ["b", "a", "c"]),
        (WorkflowSort::FirstChanged, ["c", "a", "b"]),
    ] {
        assert_eq!(list(sort, None, 9).await, all, "{sort:?}");
        let first = world.postgres().workflow(TENANT, all[0]).await.unwrap().unwrap();
        assert_eq!(list(sort, Some((first.updated_at, first.name)), 9).await, all[1..], "{sort:?}");
    }
    assert_eq!(list(WorkflowSort::Name, None, 2).await, ["a", "b"]);
    let text = WorkflowFilter { text: Some("B".into()), limit: 9, ..WorkflowFilter::default() };
    assert_eq!(names(&world, text).await, ["b"]);
}

#[tokio::test]
async fn names_are_ordered_by_their_bytes() {
    let world = World::new().await;
    for name in ["b", "a-b", "B", "a_b", "a"] {
        world.postgres().register(&definition(name, "h1")).await.unwrap();
    }
    let all = WorkflowFilter { limit: 9, ..WorkflowFilter::default() };
    assert_eq!(names(&world, all.clone()).await, ["B", "a", "a-b", "a_b", "b"]);
    let after = Some((at(0), "a".to_owned()));
    assert_eq!(names(&world, WorkflowFilter { after, limit: 2, ..all }).await, ["a-b", "a_b"]);
}

#[tokio::test]
async fn versions_are_listed_newest_first_and_by_page() {
    let world = World::new().await;
    for (hash, second) in [("h1", 1), ("h2", 2), ("h3", 3), ("h1", 4)] {
        world.postgres().register(&later("example", hash, second)).await.unwrap();
        world.postgres().register(&later("another", hash, second)).await.unwrap();
    }
    let reader = world.reader("viewer:default");
    let page = async |before, limit| {
        let page = reader.workflows().versions("example", before, limit).await.unwrap();
        (page.items.into_iter().map(|version| version.hash).collect::<Vec<_>>(), page.next)
    };
    assert_eq!(page(None, 9).await, (vec!["h3".into(), "h2".into(), "h1".into()], None));
    assert_eq!(page(None, 2).await, (vec!["h3".into(), "h2".into()], Some(2)));
    assert_eq!(page(Some(2), 2).await, (vec!["h1".into()], None));
    assert_eq!(world.admin_of(world.other).workflows().versions("example", None, 9).await.unwrap().items, []);
}

fn timer(task: Option<u32>, kind: TimerKind, second: i64) -> Timer {
    let attempt = u32::from(task.is_some());
    Timer { task: task.map(TaskIndex), attempt, kind, wake_at: at(second) }
}

#[tokio::test]
async fn timers_are_listed_by_time_and_by_page() {
    let world = World::new().await;
    let (one, two) = (example(world.postgres(), 1).await, example(world.postgres(), 2).await);
    let of_one = [
        timer(Some(0), TimerKind::Retry, 20),
        timer(Some(1), TimerKind::Retry, 30),
        timer(None, TimerKind::Deadline, 30),
    ];
    let of_two = [timer(Some(0), TimerKind::Retry, 25)];
    for (run, timers) in [(one, of_one.to_vec()), (two, of_two.to_vec())] {
        step(world.postgres(), run, |changes| changes.timers = timers).await.unwrap();
    }
    let reader = world.reader("viewer:default");
    let (mut filter, mut seen) = (TimerFilter { limit: 1, ..TimerFilter::default() }, Vec::new());
    loop {
        let page = reader.timers().list(&filter).await.unwrap();
        seen.extend(page.items.into_iter().map(|found| (found.run, found.timer)));
        filter.after = page.next;
        if filter.after.is_none() {
            break;
        }
    }
    let [first, third, own] = of_one;
    assert_eq!(seen, [(one, first), (two, of_two[0].clone()), (one, own), (one, third)]);
    let listed = async |filter: TimerFilter| {
        let page = reader.timers().list(&TimerFilter { limit: 9, ..filter }).await.unwrap();
        page.items.into_iter().map(|found| found.run).collect::<Vec<_>>()
    };
    assert_eq!(listed(TimerFilter { run: Some(two), ..TimerFilter::default() }).await, [two]);
    let workflow = |name: &str| TimerFilter { workflow: Some(name.into()), ..TimerFilter::default() };
    assert_eq!(listed(workflow("example")).await.len(), 4);
    assert_eq!(listed(workflow("another")).await, []);
    let all = TimerFilter { limit: 9, ..TimerFilter::default() };
    assert_eq!(world.reader("viewer:default/etl").timers().list(&all).await.unwrap().items, []);
    assert_eq!(world.admin_of(world.other).timers().list(&all).await.unwrap().items, []);
}

#[tokio::test]
async fn the_last_runs_of_a_schedule_are_listed_with_their_starts() {
    let world = World::new().await;
    let version = version(world.postgres()).await;
    for (number, second, schedule, kind) in [
        (1, 10, "default", "schedule"),
        (2, 20, "default", "schedule"),
        (3, 30, "default", "backfill"),
        (4, 40, "eu", "schedule"),
    ] {
        let mut new_run = new_run(run_id(number), version, 3);
        new_run.facts.logical_date = Some(at(second));
        new_run.facts.trigger_kind = kind.into();
        let interval = Interval { start: at(second), end: at(second) };
        new_run.facts.planned = Some(Planned { schedule: schedule.to_owned(), interval });
        create(world.postgres(), &new_run).await.unwrap();
    }
    let reader = world.reader("viewer:default");
    let last = async |schedule: &str, limit| {
        let found = reader.schedules().last_starts("example", schedule, limit).await.unwrap();
        found.into_iter().map(|start| (start.run, start.date, start.started_at)).collect::<Vec<_>>()
    };
    assert_eq!(last("default", 9).await, [(run_id(2), at(20), None), (run_id(1), at(10), None)]);
    assert_eq!(last("default", 1).await.len(), 1);
    assert_eq!(last("eu", 9).await.len(), 1);
    assert_eq!(world.admin_of(world.other).schedules().last_starts("example", "eu", 9).await.unwrap(), []);
}

#[tokio::test]
async fn a_run_that_waits_sees_the_oldest_runs_of_its_concurrency_group() {
    let world = World::new().await;
    for (number, second) in [(1, 3), (2, 2), (3, 1)] {
        let mut new_run = new_run(run_id(number), version(world.postgres()).await, 3);
        new_run.changes.run.concurrency_group = Some("eu".to_owned());
        new_run.changes.run.waiting = number == 1;
        new_run.changes.run.created_at = at(second);
        create(world.postgres(), &new_run).await.unwrap();
    }
    let group = async |number: u128, reader: read::Reader| {
        let run = run(world.postgres(), run_id(number)).await;
        reader.runs().concurrency_group(&run, 2).await
    };
    let members = group(1, world.reader("partner:default")).await.unwrap();
    assert_eq!(members, [3, 2].map(|number| ConcurrencyMember { run: run_id(number), waiting: false }));
    assert_eq!(group(2, world.reader("viewer:default")).await.unwrap(), [], "it does not wait");
    assert_eq!(group(1, world.admin_of(world.other)).await.unwrap(), []);
    assert!(group(1, world.reader("viewer:default/etl")).await.is_err());
}

#[tokio::test]
async fn events_of_children_are_left_out_except_those_of_one() {
    let world = World::new().await;
    let id: RunId = example(world.postgres(), 1).await;
    let of_child = |index, second| Event {
        task: Some(TaskIndex(index)),
        child: Some(Child { of: TaskIndex(1), item: index - 3 }),
        data: json!("a \0 b \\u0000"),
        ..event(second)
    };
    let of_run = Event { task: None, ..event(5) };
    let first = [event(0), of_child(3, 1), of_child(4, 2)];
    let second = [of_child(3, 3), of_child(4, 4), of_run.clone()];
    for events in [first, second] {
        step(world.postgres(), id, |changes| record(changes, &events)).await.unwrap();
    }
    let run = world.reader("viewer:default").run(id).await.unwrap();
    let read = async |with: Option<u32>, from, limit| {
        run.own_events(with.map(TaskIndex), from, limit).await.unwrap().items
    };
    assert_eq!(read(None, 0, 9).await, [(0, event(0)), (5, of_run.clone())]);
    assert_eq!(read(Some(4), 1, 9).await, [(2, of_child(4, 2)), (4, of_child(4, 4)), (5, of_run)]);
    assert_eq!(read(Some(4), 1, 1).await, [(2, of_child(4, 2))]);
    assert_eq!(read(Some(77), 6, 9).await, []);
}

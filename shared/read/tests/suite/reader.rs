//! What a reader shows to whom: only its tenant's rows, and only what the caller's grants cover.

use auth::Denied;
use model::{Failure, Instant, RunId, TaskIndex, TaskKey, TenantId};
use read::{Error, RunFilter, RunSummary, WorkflowFilter};

use crate::example::{example, step};
use crate::world::World;

pub(crate) fn is_hidden<T>(found: Result<T, Error>) -> bool {
    matches!(found, Err(Error::Denied(Denied::NotFound(_))))
}

pub(crate) fn is_forbidden<T>(found: Result<T, Error>) -> bool {
    matches!(found, Err(Error::Denied(Denied::Forbidden(_))))
}

#[tokio::test]
async fn a_run_is_read_with_the_permission_and_summarised_with_less() {
    let world = World::new().await;
    let run = world.start(TenantId::DEFAULT, "orders", 1).await;
    let reader = |grant: &str| world.reader(grant);
    let viewer = reader("viewer:default").run(run).await.unwrap();
    assert_eq!(viewer.outline().await.unwrap().len(), 2);
    assert_eq!(viewer.tasks(None, Some(TaskIndex(0)), 9).await.unwrap().items.len(), 1);
    assert!(reader("partner:default").runs().summary(run).await.is_ok());
    assert!(is_forbidden(reader("partner:default").run(run).await));
    for scoped in [reader("viewer:default/etl"), reader("partner:default/etl")] {
        assert!(is_hidden(scoped.runs().summary(run).await));
    }
    assert!(is_hidden(reader("viewer:default/etl").run(run).await));
    assert!(is_forbidden(reader("worker:default").runs().summary(run).await));
    assert!(reader("worker:default").runs().for_worker(run).await.unwrap().is_some());
    assert!(reader("worker:default/etl").runs().for_worker(run).await.unwrap().is_none());
}

#[tokio::test]
async fn lists_have_what_the_grants_cover() {
    let world = World::new().await;
    let first = world.start(TenantId::DEFAULT, "orders", 1).await;
    let second = world.start(TenantId::DEFAULT, "etl", 2).await;
    let third = world.start(TenantId::DEFAULT, "etl", 3).await;
    let reader = |grant: &str| world.reader(grant);
    let names = ["orders".to_owned(), "nobody".to_owned(), "etl".to_owned()];
    for (grant, pulse, last, readable) in [
        ("viewer:default", 3, vec![third, second, first], 3),
        ("viewer:default/etl", 2, vec![third, second], 2),
        ("partner:default/orders", 1, vec![first], 0),
    ] {
        let reader = reader(grant);
        assert_eq!(reader.runs().pulse(Instant::UNIX_EPOCH, 9).await.unwrap().len(), pulse, "{grant}");
        let found: Vec<RunId> =
            reader.runs().last(&names, 9).await.unwrap().into_iter().map(|run| run.id).collect();
        assert_eq!(found, last, "{grant}");
        let runs = reader.runs().readable(&RunFilter { limit: 9, ..RunFilter::default() }).await.unwrap();
        assert_eq!(runs.len(), readable, "{grant}");
    }
    assert_eq!(reader("viewer:default").runs().last(&names, 1).await.unwrap().len(), 2, "one of each");
    let all = WorkflowFilter { limit: 9, ..WorkflowFilter::default() };
    let found = reader("viewer:default/etl").workflows().list(&all).await.unwrap();
    assert_eq!((found.items.len(), found.next), (1, None));
    assert!(is_forbidden(reader("partner:default").workflows().list(&all).await));
}

#[tokio::test]
async fn a_reader_sees_no_row_of_another_tenant_even_by_its_id() {
    let world = World::new().await;
    let run = world.start(world.other, "orders", 1).await;
    let own = world.database.reader(&world.caller(world.other, "viewer:other"));
    let found = own.runs().last(&["orders".to_owned()], 1).await.unwrap();
    assert_eq!(own.runs().outlines_of("orders", &found, 100).await.unwrap().len(), 2);
    // May everything everywhere, and reads in one tenant all the same.
    let stranger = world.database.reader(&world.caller(TenantId::DEFAULT, "admin:*"));
    assert!(is_hidden(stranger.run(run).await));
    let forged: Vec<RunSummary> = found;
    assert_eq!(stranger.runs().outlines_of("orders", &forged, 100).await.unwrap(), []);
    assert_eq!(stranger.runs().last(&["orders".to_owned()], 9).await.unwrap(), []);
    assert_eq!(stranger.runs().pulse(Instant::UNIX_EPOCH, 9).await.unwrap(), []);
}

#[tokio::test]
async fn the_tasks_that_sleep_are_found_in_the_runs_that_the_caller_may_read() {
    let world = World::new().await;
    let tasks = "[{name: a, type: noop}, {name: b, type: approval, config: {message: b}}, {name: c, type: approval, config: {message: c}}]";
    for name in ["one", "two"] {
        world.register(TenantId::DEFAULT, &format!("{{name: {name}, tasks: {tasks}}}")).await;
    }
    let (first, second) =
        (world.start(TenantId::DEFAULT, "one", 1).await, world.start(TenantId::DEFAULT, "two", 2).await);
    let all = world.reader("viewer:default");
    let runs = all.runs().readable(&RunFilter { limit: 9, ..RunFilter::default() }).await.unwrap();
    let key = |run, task| TaskKey { run, task: TaskIndex(task) };
    for (grant, tasks, limit, expected) in [
        (
            "viewer:default",
            vec![0, 1, 2],
            9,
            vec![key(first, 1), key(first, 2), key(second, 1), key(second, 2)],
        ),
        ("viewer:default", vec![2, 7], 9, vec![key(first, 2), key(second, 2)]),
        ("viewer:default", vec![1, 2], 1, vec![key(first, 1)]),
        ("viewer:default/two", vec![1, 2], 9, vec![key(second, 1), key(second, 2)]),
        ("partner:default", vec![1, 2], 9, vec![]),
    ] {
        let tasks = tasks.into_iter().map(TaskIndex).collect();
        let found = world.reader(grant).runs().sleeping(&runs, &tasks, limit).await.unwrap();
        assert_eq!(found.into_iter().map(|(key, _)| key).collect::<Vec<_>>(), expected, "{grant}");
    }
}

#[tokio::test]
async fn failures_are_read_of_the_tasks_that_are_named_without_details_and_long_ends() {
    let world = World::new().await;
    let id = example(world.postgres(), 1).await;
    let long = |text: &str| Failure {
        detail: Some("d".repeat(10_000).into()),
        ..Failure::permanent(text.repeat(3_000))
    };
    step(world.postgres(), id, |changes| {
        changes.tasks[0].failure = Some(long("é\0"));
        changes.tasks[1].failure = Some(long("\\"));
        changes.tasks[2].failure = Some(Failure::transient("short"));
    })
    .await
    .unwrap();
    let run = world.reader("viewer:default").run(id).await.unwrap();
    assert!(run.outline().await.unwrap().iter().all(|task| task.failure.is_none()), "an outline has none");
    let found = run.failures(&[TaskIndex(0), TaskIndex(1), TaskIndex(7)]).await.unwrap();
    assert_eq!(found.keys().map(|task| task.0).collect::<Vec<_>>(), [0, 1]);
    for (failure, begins) in found.values().zip(["é é é", "\\\\"]) {
        let Failure { message, detail, .. } = failure;
        assert!(message.starts_with(begins) && message.ends_with('…'), "{message}");
        assert!(message.chars().count() <= 2_001 && detail.is_none(), "{message}");
    }
    let found = run.failures(&[TaskIndex(2)]).await.unwrap();
    assert_eq!(found[&TaskIndex(2)], Failure::transient("short"));
}

//! What a reader shows to whom: only its tenant's rows, and only what the caller's grants cover.

use auth::Denied;
use model::{Instant, RunId, TaskIndex, TenantId};
use read::{Error, RunFilter, RunSummary, WorkflowFilter};

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
        let tasks = reader.runs().outlines(&runs).await.unwrap();
        assert_eq!(tasks.len(), 2 * readable, "{grant}");
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

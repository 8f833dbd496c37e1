//! What a reader shows to whom: only its tenant's rows, and only what the caller's grants cover.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

extern crate ebbflow_read as read;

use std::sync::Arc;

use async_trait::async_trait;
use auth::{Caller, Denied};
use bus::Bus;
use bus::SystemClock;
use language::{FileKind, SourceFile};
use model::{Instant, Message, RunId, TaskIndex, TenantId};
use read::{Database, Error, RunFilter, RunSummary};
use runtime::{Origin, Runtime, StartRun};
use serde_json::Map;
use store::{Postgres, Tenants};

struct Mute;

#[async_trait]
impl Bus for Mute {
    async fn publish(&self, _: &[Message]) -> Result<(), bus::Error> {
        Ok(())
    }

    async fn ping(&self) -> Result<(), bus::Error> {
        Ok(())
    }
}

/// Two tenants, each with a workflow `etl` and a workflow `orders`.
struct World {
    runtime: Runtime,
    database: Database,
    other: TenantId,
    _postgres: testkit::Database,
}

impl World {
    async fn new() -> Self {
        let postgres = testkit::migrated(Postgres::migrate).await;
        let store = Postgres::connect(&postgres.url, 5).await.unwrap();
        let other = store.tenant("other", Instant::UNIX_EPOCH).await.unwrap();
        let database = Database::new(&store);
        let runtime = Runtime::new(Arc::new(store), Arc::new(Mute), Arc::new(SystemClock));
        let world = Self { runtime, database, other, _postgres: postgres };
        for tenant in [TenantId::DEFAULT, other] {
            for name in ["etl", "orders"] {
                let text =
                    format!("{{name: {name}, tasks: [{{name: a, type: noop}}, {{name: b, type: noop}}]}}");
                let file = SourceFile { path: name.into(), kind: FileKind::Workflow, text };
                let definitions = language::compile(&[file]).definitions;
                world.runtime.register(tenant, definitions, "test").await.unwrap();
            }
        }
        world
    }

    async fn start(&self, tenant: TenantId, workflow: &str, number: u32) -> RunId {
        let start = StartRun {
            id: format!("018f0000-0000-7000-8000-{number:012}").parse().unwrap(),
            tenant,
            workflow: workflow.into(),
            inputs: Map::new(),
            labels: Map::new(),
            logical_date: None,
            priority: 0,
            origin: Origin::Api { by: "test".into() },
        };
        self.runtime.start(start).await.unwrap().record.run.id
    }

    fn caller(&self, tenant: TenantId, grant: &str) -> Caller {
        let tenant_name = if tenant == self.other { "other" } else { "default" }.to_owned();
        Caller { tenant, tenant_name, name: "somebody".into(), grants: [grant.parse().unwrap()].into() }
    }
}

fn is_hidden<T>(found: Result<T, Error>) -> bool {
    matches!(found, Err(Error::Denied(Denied::NotFound(_))))
}

fn is_forbidden<T>(found: Result<T, Error>) -> bool {
    matches!(found, Err(Error::Denied(Denied::Forbidden(_))))
}

#[tokio::test]
async fn a_run_is_read_with_the_permission_and_summarised_with_less() {
    let world = World::new().await;
    let run = world.start(TenantId::DEFAULT, "orders", 1).await;
    let reader = |grant: &str| world.database.reader(&world.caller(TenantId::DEFAULT, grant));
    let viewer = reader("viewer:default").run(run).await.unwrap();
    assert_eq!(viewer.outline().await.unwrap().len(), 2);
    assert_eq!(viewer.tasks(None, Some(TaskIndex(0)), 9).await.unwrap().len(), 1);
    assert!(reader("partner:default").run_summary(run).await.is_ok());
    assert!(is_forbidden(reader("partner:default").run(run).await));
    for scoped in [reader("viewer:default/etl"), reader("partner:default/etl")] {
        assert!(is_hidden(scoped.run_summary(run).await));
    }
    assert!(is_hidden(reader("viewer:default/etl").run(run).await));
    assert!(is_forbidden(reader("worker:default").run_summary(run).await));
    assert!(reader("worker:default").run_for_worker(run).await.unwrap().is_some());
    assert!(reader("worker:default/etl").run_for_worker(run).await.unwrap().is_none());
}

#[tokio::test]
async fn lists_have_what_the_grants_cover() {
    let world = World::new().await;
    let first = world.start(TenantId::DEFAULT, "orders", 1).await;
    let second = world.start(TenantId::DEFAULT, "etl", 2).await;
    let third = world.start(TenantId::DEFAULT, "etl", 3).await;
    let reader = |grant: &str| world.database.reader(&world.caller(TenantId::DEFAULT, grant));
    let names = ["orders".to_owned(), "nobody".to_owned(), "etl".to_owned()];
    for (grant, pulse, last, readable) in [
        ("viewer:default", 3, vec![third, second, first], 3),
        ("viewer:default/etl", 2, vec![third, second], 2),
        ("partner:default/orders", 1, vec![first], 0),
    ] {
        let reader = reader(grant);
        assert_eq!(reader.pulse(Instant::UNIX_EPOCH, 9).await.unwrap().len(), pulse, "{grant}");
        let found: Vec<RunId> =
            reader.last_runs(&names, 9).await.unwrap().into_iter().map(|run| run.id).collect();
        assert_eq!(found, last, "{grant}");
        let runs = reader.runs(&RunFilter { limit: 9, ..RunFilter::default() }).await.unwrap();
        assert_eq!(runs.len(), readable, "{grant}");
        let tasks = reader.outlines(&runs).await.unwrap();
        assert_eq!(tasks.len(), 2 * readable, "{grant}");
    }
    assert_eq!(reader("viewer:default").last_runs(&names, 1).await.unwrap().len(), 2, "one of each");
    let (found, next) = reader("viewer:default/etl").workflows(None, 9).await.unwrap();
    assert_eq!((found.len(), next), (1, None));
    assert!(is_forbidden(reader("partner:default").workflows(None, 9).await));
}

#[tokio::test]
async fn a_reader_sees_no_row_of_another_tenant_even_by_its_id() {
    let world = World::new().await;
    let run = world.start(world.other, "orders", 1).await;
    let own = world.database.reader(&world.caller(world.other, "viewer:other"));
    let found = own.last_runs(&["orders".to_owned()], 1).await.unwrap();
    assert_eq!(own.outlines_of("orders", &found).await.unwrap().len(), 2);
    // May everything everywhere, and reads in one tenant all the same.
    let stranger = world.database.reader(&world.caller(TenantId::DEFAULT, "admin:*"));
    assert!(is_hidden(stranger.run(run).await));
    let forged: Vec<RunSummary> = found;
    assert_eq!(stranger.outlines_of("orders", &forged).await.unwrap(), []);
    assert_eq!(stranger.last_runs(&["orders".to_owned()], 9).await.unwrap(), []);
    assert_eq!(stranger.pulse(Instant::UNIX_EPOCH, 9).await.unwrap(), []);
}

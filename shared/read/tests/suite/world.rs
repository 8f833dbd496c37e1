//! A database with two tenants, a runtime that publishes nothing, and callers.

use std::sync::Arc;

use async_trait::async_trait;
use auth::Caller;
use bus::{Bus, SystemClock};
use language::{FileKind, SourceFile};
use model::{Instant, Message, RunId, TenantId};
use read::{Database, Reader};
use runtime::{Origin, Runtime, StartRun};
use store::{Connections, Postgres, Tenants};

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

/// Two tenants, each with a workflow `etl` and a workflow `orders` of two tasks that need a slot of the pool `dock`.
pub(crate) struct World {
    pub(crate) store: Postgres,
    pub(crate) runtime: Runtime,
    pub(crate) database: Database,
    pub(crate) other: TenantId,
    _postgres: testkit::Database,
}

impl World {
    pub(crate) async fn new() -> Self {
        let postgres = testkit::migrated(Postgres::migrate).await;
        let connections = Connections { acquire_timeout: testkit::DEADLINE, ..Connections::at_most(5) };
        let store = Postgres::open(&postgres.url, None, connections).await.unwrap();
        let other = store.tenant("other", Instant::UNIX_EPOCH).await.unwrap();
        let database = Database::new(&store);
        let runtime = Runtime::new(Arc::new(store.clone()), Arc::new(Mute), Arc::new(SystemClock));
        let world = Self { store, runtime, database, other, _postgres: postgres };
        for tenant in [TenantId::DEFAULT, other] {
            for name in ["etl", "orders"] {
                let tasks = "[{name: a, type: noop, pool: dock}, {name: b, type: noop, pool: dock}]";
                world.register(tenant, &format!("{{name: {name}, tasks: {tasks}}}")).await;
            }
        }
        world
    }

    pub(crate) async fn register(&self, tenant: TenantId, text: &str) {
        let file = SourceFile { path: "test".into(), kind: FileKind::Workflow, text: text.into() };
        let compiled = language::compile(&[file]);
        assert!(compiled.diagnostics.is_empty(), "{:?}", compiled.diagnostics);
        self.runtime.definitions().register(tenant, compiled.definitions, "test").await.unwrap();
    }

    pub(crate) async fn start(&self, tenant: TenantId, workflow: &str, number: u32) -> RunId {
        let id = format!("018f0000-0000-7000-8000-{number:012}").parse().unwrap();
        let start = StartRun::new(id, tenant, workflow, Origin::Api { by: "test".into() });
        self.runtime.start(start).await.unwrap().record.run.id
    }

    pub(crate) fn caller(&self, tenant: TenantId, grant: &str) -> Caller {
        let tenant_name = if tenant == self.other { "other" } else { "default" }.to_owned();
        Caller { tenant, tenant_name, name: "somebody".into(), grants: [grant.parse().unwrap()].into() }
    }

    /// A reader of the default tenant with one grant.
    pub(crate) fn reader(&self, grant: &str) -> Reader {
        self.database.reader(&self.caller(TenantId::DEFAULT, grant))
    }

    /// A reader that may do everything everywhere, and reads in one tenant all the same.
    pub(crate) fn admin_of(&self, tenant: TenantId) -> Reader {
        self.database.reader(&self.caller(tenant, "admin:*"))
    }
}

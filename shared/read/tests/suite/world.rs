//! A database with two tenants, a runtime that publishes nothing, and callers.

use std::ops::Deref;

use auth::Caller;
use bus::SystemClock;
use language::FileKind;
use model::{Instant, RunId, TenantId};
use read::{Database, Reader};
use runtime::{Origin, StartRun};
use testkit::SilentBus;

/// Two tenants, each with a workflow `etl` and a workflow `orders` of two tasks that need a slot of the pool `dock`.
pub(crate) struct World {
    base: testkit::World<SilentBus, SystemClock>,
    pub(crate) database: Database,
    pub(crate) other: TenantId,
}

impl Deref for World {
    type Target = testkit::World<SilentBus, SystemClock>;

    fn deref(&self) -> &Self::Target {
        &self.base
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        let base = testkit::World::on_postgres(SilentBus, SystemClock).await;
        let other = base.store().tenant("other", Instant::UNIX_EPOCH).await.unwrap();
        let database = Database::new(base.postgres());
        let world = Self { base, database, other };
        for tenant in [TenantId::DEFAULT, other] {
            for name in ["etl", "orders"] {
                let tasks = "[{name: a, type: noop, pool: dock}, {name: b, type: noop, pool: dock}]";
                world.register(tenant, &format!("{{name: {name}, tasks: {tasks}}}")).await;
            }
        }
        world
    }

    pub(crate) async fn register(&self, tenant: TenantId, text: &str) {
        let definitions = testkit::compile(&[(FileKind::Workflow, text)]);
        self.runtime.definitions().register(tenant, definitions, "test").await.unwrap();
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

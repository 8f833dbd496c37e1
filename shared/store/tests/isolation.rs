//! Tenant isolation: in a tenant's role, a statement that forgets its tenant finds nothing of another one.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

extern crate ebbflow_store as store;

use model::{Instant, TenantId};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Row};
use store::{Postgres, Tenants};

/// Tables of which the role sees one tenant's rows, and the column that says whose they are.
const TABLES: [&str; 26] = [
    "tenants",
    "workflows",
    "versions",
    "runs",
    "run_facts",
    "run_labels",
    "tasks",
    "outputs",
    "attempts",
    "events",
    "logs",
    "timers",
    "items",
    "shared_task_waiters",
    "checkpoints",
    "progress",
    "schedules",
    "backfills",
    "backfill_dates",
    "triggers",
    "trigger_events",
    "limits",
    "slot_waiters",
    "breakers",
    "workers",
    "offers",
];

fn at() -> Instant {
    Instant::from_timestamp(1_800_000_000, 0).unwrap()
}

/// A database with a row of tenant 1 and one of tenant 2 in tables that lead to all the others.
async fn two_tenants() -> (testkit::Database, Postgres, TenantId, PgConnection) {
    let database = testkit::migrated(Postgres::migrate).await;
    let store = Postgres::connect(&database.url, 2).await.unwrap();
    let other = store.tenant("other", at()).await.unwrap();
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    for tenant in [TenantId::DEFAULT.0, other.0] {
        let run = format!("018f0000-0000-7000-8000-{tenant:012}");
        let statements = format!(
            "insert into workflows (tenant, name, created_at, updated_at) values ({tenant}, 'w', 'epoch', 'epoch');
             insert into versions (tenant, workflow, number, hash, definition, source, created_at, created_by)
                 values ({tenant}, 'w', 1, 'h', '{{}}', '', 'epoch', 'x');
             set session_replication_role = replica;
             insert into events (run, run_at, seq, count, events) values ('{run}', 'epoch', 0, 1, '[{{}}]');
             insert into limits (kind, tenant, name) values ('pool', {tenant}, 'p');
             insert into slot_waiters (run, idx, attempt, tenant, lim, step, needs, id, rank, since)
                 select '{run}', 0, 1, {tenant}, id, 0, array[id], 0, 0, 'epoch' from limits where tenant = {tenant};
             insert into breakers (tenant, kind, name) values ({tenant}, 'host', 'api.example:443');
             insert into checkpoints (run, idx, attempt, at, data) values ('{run}', 0, 1, 'epoch', '{{}}');
             insert into progress (run, idx, attempt, at, metrics) values ('{run}', 0, 1, 'epoch', '{{}}');
             set session_replication_role = origin;",
        );
        connection.execute(AssertSqlSafe(statements)).await.unwrap();
    }
    (database, store, other, connection)
}

async fn count(connection: &mut PgConnection, table: &str) -> i64 {
    let counting = AssertSqlSafe(format!("select count(*) as rows from {table}"));
    sqlx::query(counting).fetch_one(connection).await.unwrap().try_get("rows").unwrap()
}

#[tokio::test]
async fn a_statement_that_forgets_its_tenant_finds_nothing_of_another() {
    let (_database, _, other, mut connection) = two_tenants().await;
    for table in ["workflows", "versions"] {
        assert_eq!(count(&mut connection, table).await, 2, "{table}: its owner sees all");
    }
    for (setting, seen) in [(other.0.to_string(), 1), (String::new(), 0), ("999".into(), 0)] {
        let begin = format!("begin; set local role ebbflow_tenant; set local ebb.tenant = '{setting}'");
        connection.execute(AssertSqlSafe(begin)).await.unwrap();
        for table in ["tenants", "workflows", "versions", "limits", "slot_waiters", "breakers"] {
            assert_eq!(count(&mut connection, table).await, seen, "{table} for {setting:?}");
        }
        for table in ["events", "checkpoints", "progress"] {
            assert_eq!(count(&mut connection, table).await, 0, "{table}: a run that is not seen has none");
        }
        connection.execute("rollback").await.unwrap();
    }
    let own = "insert into workers (id, heartbeat_at) values ('00000000-0000-0000-0000-000000000007', now())";
    connection.execute(own).await.unwrap();
    connection.execute("begin; set local role ebbflow_tenant").await.unwrap();
    for table in ["workflows", "workers", "offers"] {
        assert_eq!(count(&mut connection, table).await, 0, "{table}: without a tenant nothing is seen");
    }
}

#[tokio::test]
async fn every_table_that_the_role_may_read_has_a_policy_and_it_may_write_none() {
    let (_database, _, _, mut connection) = two_tenants().await;
    let found = sqlx::query(
        "select relname::text as name, relrowsecurity as isolated,
                has_table_privilege('ebbflow_tenant', oid, 'insert, update, delete, truncate') as writes
           from pg_class where relkind in ('r', 'p') and relnamespace = current_schema()::regnamespace
            and has_table_privilege('ebbflow_tenant', oid, 'select') order by relname",
    );
    let found = found.fetch_all(&mut connection).await.unwrap();
    let mut names: Vec<String> = found.iter().map(|row| row.get("name")).collect();
    let mut expected = TABLES.map(String::from).to_vec();
    names.sort();
    expected.sort();
    assert_eq!(names, expected);
    for row in found {
        let name: String = row.get("name");
        assert!(row.get::<bool, _>("isolated") && !row.get::<bool, _>("writes"), "{name}");
    }
}

#[tokio::test]
async fn a_connection_of_a_tenant_is_in_its_role_until_it_is_dropped() {
    let (_database, store, other, _) = two_tenants().await;
    for tenant in [TenantId::DEFAULT, other] {
        let mut connection = store.reading_as(tenant).await.unwrap();
        let role: String =
            sqlx::query_scalar("select current_user::text").fetch_one(&mut *connection).await.unwrap();
        assert_eq!(role, "ebbflow_tenant");
        let versions = "select distinct tenant from versions";
        let seen: Vec<i32> = sqlx::query_scalar(versions).fetch_all(&mut *connection).await.unwrap();
        assert_eq!(seen, [tenant.0]);
    }
    assert!(store.tenant("third", at()).await.is_ok(), "the engine is not restricted");
}

//! The second wall: with it, a statement that forgets its tenant finds nothing of another one.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

extern crate ebbflow_store as store;

use model::{Instant, TenantId};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Row};
use store::{DefinitionViews, Postgres, RunFilter, Runs, Tenants};

/// Tables of which the role sees one tenant's rows, and the column that says whose they are.
const TABLES: [&str; 19] = [
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
    "schedules",
    "backfills",
    "backfill_dates",
    "triggers",
    "trigger_events",
];

fn at() -> Instant {
    Instant::from_timestamp(1_800_000_000, 0).unwrap()
}

/// A database with a row of tenant 1 and one of tenant 2 in tables that lead to all the others.
async fn two_tenants() -> (testkit::Database, Postgres, TenantId, PgConnection) {
    let database = testkit::database().await;
    Postgres::migrate(&database.url).await.unwrap();
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
        for table in ["tenants", "workflows", "versions"] {
            assert_eq!(count(&mut connection, table).await, seen, "{table} for {setting:?}");
        }
        assert_eq!(count(&mut connection, "events").await, 0, "a run that is not seen has no events");
        connection.execute("rollback").await.unwrap();
    }
    connection.execute("begin; set local role ebbflow_tenant").await.unwrap();
    assert_eq!(count(&mut connection, "workflows").await, 0, "who names no tenant sees none");
}

#[tokio::test]
async fn every_table_that_the_role_may_read_has_its_wall_and_it_may_write_none() {
    let (_database, _, _, mut connection) = two_tenants().await;
    let found = sqlx::query(
        "select relname::text as name, relrowsecurity as walled,
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
        assert!(row.get::<bool, _>("walled") && !row.get::<bool, _>("writes"), "{name}");
    }
}

#[tokio::test]
async fn what_is_done_for_a_tenant_reads_nothing_of_another_even_if_it_asks_for_it() {
    let (_database, store, other, _) = two_tenants().await;
    let names = async |tenant| {
        let found = store.workflows(tenant, None, 10).await.unwrap();
        found.into_iter().map(|found| found.name).collect::<Vec<_>>()
    };
    // The workflows have no active version, so nothing is listed: versions are.
    assert_eq!(names(other).await, [""; 0]);
    let versions = async |tenant| store.versions(tenant, "w", None, 10).await.map(|found| found.len());
    // Unreadable definitions are an error of the reader: seen is seen.
    assert!(versions(other).await.is_err());
    assert!(store::walled(other, versions(other)).await.is_err());
    assert_eq!(store::walled(TenantId::DEFAULT, versions(other)).await.unwrap(), 0);
    assert!(store::walled(TenantId::DEFAULT, store::unwalled(versions(other))).await.is_err());
    assert!(versions(other).await.is_err(), "the wall is gone with what was done behind it");
    let runs = store::walled(other, store.runs(other, &RunFilter { limit: 5, ..RunFilter::default() })).await;
    assert_eq!(runs.unwrap().len(), 0);
}

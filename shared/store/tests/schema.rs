//! The schema, the statements and the model agree, and migrating is safe.

extern crate ebbflow_store as store;

use std::fs;

use model::{BreakerKind, Counts, RunState, TaskState, TimerKind, WorkerCommandKind};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqlSafeStr};
use store::Postgres;

#[tokio::test]
async fn migrating_twice_changes_nothing() {
    let database = testkit::database().await;
    Postgres::migrate(&database.url).await.unwrap();
    Postgres::migrate(&database.url).await.unwrap();
}

#[tokio::test]
async fn migrating_from_several_processes_at_once_is_safe() {
    let database = testkit::database().await;
    let migrations = (0..12).map(|_| Postgres::migrate(&database.url));
    for migrated in futures::future::join_all(migrations).await {
        migrated.unwrap();
    }
}

#[tokio::test]
async fn every_statement_fits_the_schema() {
    let database = testkit::migrated(Postgres::migrate).await;
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/queries")).unwrap() {
        let path = entry.unwrap().path();
        let sql = fs::read_to_string(&path).unwrap();
        assert!(sql.starts_with("-- "), "{path:?} does not say what must hold");
        if let Err(error) = connection.prepare(AssertSqlSafe(sql).into_sql_str()).await {
            panic!("{path:?}: {error}");
        }
    }
    for sql in store::generated_statements() {
        if let Err(error) = connection.prepare(AssertSqlSafe(sql).into_sql_str()).await {
            panic!("{sql}: {error}");
        }
    }
}

#[tokio::test]
async fn the_schema_knows_the_states_of_the_model_and_no_others() {
    let database = testkit::migrated(Postgres::migrate).await;
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    let expected = [
        ("a_run_is_in_a_known_state", RunState::ALL.map(RunState::name).to_vec()),
        ("a_task_is_in_a_known_state", TaskState::ALL.map(TaskState::name).to_vec()),
        ("a_timer_is_of_a_known_kind", TimerKind::ALL.map(TimerKind::name).to_vec()),
        ("a_breaker_is_of_a_known_kind", BreakerKind::ALL.map(BreakerKind::name).to_vec()),
        ("a_worker_command_is_drain_or_kill", WorkerCommandKind::ALL.map(WorkerCommandKind::name).to_vec()),
    ];
    for (constraint, names) in expected {
        assert_eq!(quoted(&mut connection, constraint).await, names, "{constraint}");
    }
    let ended = |state: &TaskState| state.is_final();
    let names: Vec<&str> = TaskState::ALL.into_iter().filter(ended).map(TaskState::name).collect();
    assert_eq!(quoted(&mut connection, "a_finished_task_has_a_time").await, names);
    let names: Vec<&str> =
        RunState::ALL.into_iter().filter(|state| state.is_final()).map(RunState::name).collect();
    assert_eq!(quoted(&mut connection, "a_finished_run_has_a_time").await, names);
}

#[tokio::test]
async fn the_schema_and_the_model_agree_on_which_runs_only_wait() {
    let database = testkit::migrated(Postgres::migrate).await;
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    let states = 0..TaskState::ALL.len();
    for (one, other) in states.clone().flat_map(|one| states.clone().map(move |other| (one, other))) {
        let mut counts = [0; TaskState::ALL.len()];
        counts[one] += 1;
        counts[other] += 1;
        let asleep: bool = sqlx::query_scalar("select is_asleep($1)")
            .bind(counts.map(u32::cast_signed))
            .fetch_one(&mut connection)
            .await
            .unwrap();
        assert_eq!(asleep, Counts::from_array(counts).is_asleep(), "{counts:?}");
    }
}

#[tokio::test]
async fn the_audit_log_cannot_be_rewritten() {
    let database = testkit::migrated(Postgres::migrate).await;
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    let note = "insert into audit_entries (tenant, at, actor, action, target, status) values (1, 'epoch', 'ada', 'x', '/x', 200)";
    connection.execute(note).await.unwrap();
    for attempt in
        ["update audit_entries set actor = 'bob'", "delete from audit_entries", "truncate audit_entries"]
    {
        let refused = connection.execute(attempt).await.unwrap_err().to_string();
        assert!(refused.contains("the audit log is only ever added to"), "{attempt}: {refused}");
    }
}

/// The words that a constraint quotes.
async fn quoted(connection: &mut PgConnection, constraint: &str) -> Vec<String> {
    let definition: String =
        sqlx::query_scalar("select pg_get_constraintdef(oid) from pg_constraint where conname = $1")
            .bind(constraint)
            .fetch_one(connection)
            .await
            .expect("the constraint is in the schema");
    definition.split('\'').skip(1).step_by(2).map(str::to_owned).collect()
}

//! Functions that have nothing to do keep no connection to the database, so that one that suspends can sleep.

use ebbflow_tests::{FunctionProcess, build};
use sqlx::{Connection, PgConnection};
use store::Postgres;
use testkit::eventually;

const FUNCTIONS: [&str; 5] = ["trigger", "evaluate", "execute", "sweep", "console"];

/// Whether a function finds its database. The bus of this test does not respond.
async fn reaches_database(function: &FunctionProcess) -> bool {
    let Ok(response) = reqwest::get(function.url("/readyz")).await else { return false };
    let status: serde_json::Value = response.json().await.unwrap_or_default();
    status["database"] == "ok"
}

/// Waits until the database has no connection of a function.
async fn wait_for_release(database: &mut PgConnection, name: &str) {
    let count = "select count(*) from pg_stat_activity
                  where application_name = 'ebbflow' and datname = current_database()";
    eventually(&format!("{name} releases its connections"), async || {
        let open: i64 = sqlx::query_scalar(count).fetch_one(&mut *database).await.unwrap();
        (open == 0).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_functions_release_their_connections_and_open_new_ones_when_they_are_called() {
    let program = build().await;
    let database = testkit::migrated(Postgres::migrate).await;
    let mut observer = PgConnection::connect(&database.url).await.unwrap();
    let settings = [
        ("DATABASE_URL", database.url.clone()),
        ("EBB_BROKER_URL", "http://127.0.0.1:1".to_owned()),
        ("EBB_PUSH_AUTH", "none".to_owned()),
        ("EBB_API_AUDIENCE", "api".to_owned()),
        ("EBB_API_ACCOUNTS", "ada@example.com".to_owned()),
        ("EBB_DATABASE_IDLE_SECONDS", "1".to_owned()),
    ];
    for name in FUNCTIONS {
        let function = FunctionProcess::start(name, &program, settings.clone());
        let reached = async || reaches_database(&function).await.then_some(());
        eventually(&format!("{name} connects"), &reached).await;
        wait_for_release(&mut observer, name).await;
        eventually(&format!("{name} opens a connection again"), reached).await;
        wait_for_release(&mut observer, name).await;
    }
}

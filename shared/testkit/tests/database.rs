//! Every test has a Postgres database to itself.
#![expect(clippy::unwrap_used, reason = "a claim that cannot be tested has failed")]

use ebbflow_testkit as testkit;
use sqlx::{Connection, PgConnection};

async fn tables(connection: &mut PgConnection) -> Vec<String> {
    let query = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'";
    sqlx::query_scalar(query).fetch_all(connection).await.unwrap()
}

async fn begins_empty_and_takes_a_table() {
    let database = testkit::database().await;
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    assert!(tables(&mut connection).await.is_empty());
    sqlx::raw_sql("CREATE TABLE mark (id INT)").execute(&mut connection).await.unwrap();
    assert_eq!(tables(&mut connection).await, ["mark"]);
    connection.close().await.unwrap();
}

#[tokio::test]
async fn a_test_has_a_database_to_itself() {
    begins_empty_and_takes_a_table().await;
}

#[tokio::test]
async fn a_test_in_another_runtime_has_a_database_to_itself() {
    begins_empty_and_takes_a_table().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_tests_have_databases_to_themselves() {
    let tests: Vec<_> = (0..8).map(|_| tokio::spawn(begins_empty_and_takes_a_table())).collect();
    for test in tests {
        test.await.unwrap();
    }
}

#[tokio::test]
async fn a_database_is_dropped_with_its_owner() {
    let [dropped, witness] = [testkit::database().await, testkit::database().await];
    let name = dropped.url.rsplit("test%5F").next().unwrap().to_owned();
    drop(dropped);

    let mut connection = PgConnection::connect(&witness.url).await.unwrap();
    let count = "SELECT count(*) FROM pg_database WHERE datname = 'test_' || $1";
    // It is dropped in the background.
    let gone = async {
        while sqlx::query_scalar::<_, i64>(count).bind(&name).fetch_one(&mut connection).await.unwrap() > 0 {}
    };
    testkit::within_deadline("the database is dropped", gone).await;
}

//! A database that is away or comes back is distinguished from one that refuses.

extern crate ebbflow_store as store;

use std::time::Duration;

use model::TenantId;
use sqlx::{ConnectOptions, Connection, PgConnection};
use store::{Connections, DeadLetters, Error, Postgres, Slots, Transactions};

#[tokio::test]
async fn a_database_that_is_not_there_is_unavailable() {
    // Port 1 is never listened on.
    let url = "postgres://nobody@127.0.0.1:1/nothing";
    let connections = Connections { acquire_timeout: Duration::from_millis(1), ..Connections::at_most(1) };
    assert!(matches!(Postgres::open(url, None, connections).await, Err(Error::Unavailable(_))));
    assert!(matches!(Postgres::migrate(url).await, Err(Error::Unavailable(_))));
}

#[tokio::test]
async fn a_caller_waits_for_a_connection_as_long_as_configured() {
    let database = testkit::migrated(Postgres::migrate).await;
    let configured = Connections { acquire_timeout: Duration::from_secs(300), ..Connections::at_most(1) };
    for (connections, seconds) in [(configured, 300), (Connections::at_most(1), 5)] {
        let store = Postgres::open(&database.url, None, connections).await.unwrap();
        assert_eq!(store.pool().options().get_acquire_timeout(), Duration::from_secs(seconds));
    }
}

#[tokio::test]
async fn a_url_that_makes_no_sense_is_refused() {
    assert!(matches!(Postgres::connect("nonsense", 1).await, Err(Error::Database(_))));
}

#[tokio::test]
async fn a_database_that_was_never_migrated_refuses() {
    let database = testkit::database().await;
    // Another test may have created the roles, which belong to the server.
    let store = match Postgres::connect(&database.url, 1).await {
        Ok(store) => store,
        Err(Error::NotPrepared(_)) => return,
        Err(error) => panic!("{error}"),
    };
    assert!(matches!(store.dead_letters(&store::DeadLetterFilter::newest(1)).await, Err(Error::Database(_))));
}

#[tokio::test]
async fn a_connection_that_the_server_closed_is_replaced() {
    let database = testkit::migrated(Postgres::migrate).await;
    let store = Postgres::connect(&database.url, 1).await.unwrap();
    store.ping().await.unwrap();

    let mut operator = PgConnection::connect(&database.url).await.unwrap();
    let close = "select pg_terminate_backend(pid, 300000) from pg_stat_activity
                  where application_name = 'ebbflow' and datname = current_database()";
    sqlx::query(close).execute(&mut operator).await.unwrap();
    assert!(matches!(store.ping().await, Err(Error::Unavailable(_))));
    store.ping().await.unwrap();
}

#[tokio::test]
async fn a_user_connects_once_it_may_assume_the_owner_and_passwords_may_change() {
    let database = testkit::migrated(Postgres::migrate).await;
    let name = format!("trigger-{}@project.iam", uuid::Uuid::now_v7());
    let mut superuser = PgConnection::connect(&database.url).await.unwrap();
    let create = format!("create role \"{name}\" login");
    sqlx::query(sqlx::AssertSqlSafe(create)).execute(&mut superuser).await.unwrap();
    let options: sqlx::postgres::PgConnectOptions = database.url.parse().unwrap();
    let url = options.username(&name).to_url_lossy().to_string();
    let rejected = Postgres::open(&url, Some("a token"), Connections::at_most(2)).await;
    assert!(matches!(rejected, Err(Error::NotPrepared(_))), "{rejected:?}");
    for _ in 0..2 {
        Postgres::grant_to(&database.url, std::slice::from_ref(&name)).await.unwrap();
    }
    let store = Postgres::open(&url, Some("a token"), Connections::at_most(2)).await.unwrap();
    store.use_password("the next token");
    assert!(store.dead_letters(&store::DeadLetterFilter::newest(1)).await.unwrap().is_empty());
    let drop = format!("drop role \"{name}\"");
    sqlx::query(sqlx::AssertSqlSafe(drop)).execute(&mut superuser).await.unwrap();
}

#[tokio::test]
async fn a_caller_that_gives_up_at_any_point_leaves_nothing_open_on_the_connection() {
    let database = testkit::migrated(Postgres::migrate).await;
    let store = Postgres::connect(&database.url, 1).await.unwrap();
    let mut operator = PgConnection::connect(&database.url).await.unwrap();
    for polls in 0..30 {
        let wait = || async {
            for _ in 0..polls {
                tokio::task::yield_now().await;
            }
        };
        let weight = polls + 1;
        tokio::select! { biased; _ = store.begin() => {}, () = wait() => {} }
        store.set_weight(TenantId::DEFAULT, weight).await.unwrap();
        let select = sqlx::query_scalar::<_, i32>("select weight from tenants where id = 1");
        assert_eq!(
            select.fetch_one(&mut operator).await.unwrap(),
            weight.cast_signed(),
            "what is written is kept"
        );
        let read = store.reading_as(TenantId::DEFAULT);
        tokio::select! { biased; _ = read => {}, () = wait() => {} }
        store.set_weight(TenantId::DEFAULT, 1).await.expect("no connection keeps the role of a tenant");
    }
}

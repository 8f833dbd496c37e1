//! Log filters that are set for a function, and the instances that follow them.

use accounts::{Accounts, LogFilter};
use bus::SystemClock;
use chrono::TimeDelta;
use ebbflow_tests::{FunctionProcess, build};
use model::Clock;
use store::Postgres;
use testkit::eventually;

const FILTER: &str = "warn,ebbflow_runtime=debug";

/// Sends what the platform sends to a function, and nothing else, until it is served. Returns the filter that applies then.
async fn filter_after(process: &FunctionProcess, path: &str) -> String {
    let client = reqwest::Client::new();
    eventually(&format!("{} serves {path}", process.name), async || {
        let response = client.post(process.url(path)).send().await.ok()?;
        (response.status().as_u16() == 204).then_some(())
    })
    .await;
    let shown = client.get(process.url("/log-level")).send().await.unwrap().error_for_status().unwrap();
    shown.text().await.unwrap().trim().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_follow_the_filter_of_their_function_until_it_expires_or_is_reset() {
    let program = build().await;
    let database = testkit::migrated(Postgres::migrate).await;
    let accounts = Accounts::new(&testkit::connect(&database, 1).await);
    let now = SystemClock.now();
    for (function, hours) in [("evaluate", 1), ("sweep", 1), ("execute", -1)] {
        let (filter, until) = (FILTER.to_owned(), now + TimeDelta::hours(hours));
        let set = LogFilter { function: function.into(), filter, until, set_by: "ada".into() };
        accounts.set_log_filter(&set, now - TimeDelta::hours(2)).await.unwrap();
    }
    assert_eq!(accounts.log_filters(now).await.unwrap().len(), 2, "one has expired");
    let settings = [
        ("DATABASE_URL", database.url.clone()),
        ("EBB_BROKER_URL", "http://127.0.0.1:1".to_owned()),
        ("EBB_PUSH_AUTH", "none".to_owned()),
        ("EBB_GRACE_SECONDS", "1".to_owned()),
        ("RUST_LOG", "error".to_owned()),
    ];
    let start = |function| FunctionProcess::start(function, &program, settings.clone());
    assert_eq!(filter_after(&start("evaluate"), "/push").await, "ebbflow_runtime=debug,warn");
    assert_eq!(filter_after(&start("execute"), "/push").await, "error", "its filter has expired");
    // A sweep may receive nothing but ticks.
    let sweep = start("sweep");
    assert_eq!(filter_after(&sweep, "/sweep").await, "ebbflow_runtime=debug,warn");
    // What is set in one instance stays until something else is set for all.
    let put = reqwest::Client::new().put(sweep.url("/log-level")).body("debug").send().await.unwrap();
    assert!(put.status().is_success());
    assert_eq!(filter_after(&sweep, "/sweep").await, "debug");
    accounts.reset_log_filter("sweep").await.unwrap();
    assert_eq!(filter_after(&sweep, "/sweep").await, "error");
}

//! Log filters that are set for a function, and the instances that follow them.

use accounts::{Accounts, LogFilter};
use bus::SystemClock;
use chrono::TimeDelta;
use ebbflow_tests::{FunctionProcess, build};
use model::Clock;
use store::Postgres;
use testkit::eventually;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_follow_the_filter_of_their_function_until_it_expires() {
    let program = build().await;
    let database = testkit::migrated(Postgres::migrate).await;
    let accounts = Accounts::new(&Postgres::connect(&database.url, 1).await.unwrap());
    let now = SystemClock.now();
    for (function, hours) in [("evaluate", 1), ("sweep", -1)] {
        let (filter, until) = ("warn,ebbflow_runtime=debug".to_owned(), now + TimeDelta::hours(hours));
        let set = LogFilter { function: function.into(), filter, until, set_by: "ada".into() };
        accounts.set_log_filter(&set, now - TimeDelta::hours(2)).await.unwrap();
    }
    assert_eq!(accounts.log_filters(now).await.unwrap().len(), 1, "one has expired");
    let settings = [
        ("DATABASE_URL", database.url.clone()),
        ("EBB_BROKER_URL", "http://127.0.0.1:1".to_owned()),
        ("EBB_PUSH_AUTH", "none".to_owned()),
        ("EBB_GRACE_SECONDS", "1".to_owned()),
        ("RUST_LOG", "error".to_owned()),
    ];
    let expected = [("evaluate", "ebbflow_runtime=debug,warn"), ("sweep", "error"), ("execute", "error")];
    for (function, filter) in expected {
        let process = FunctionProcess::start(function, &program, settings.clone());
        let client = reqwest::Client::new();
        let shown = eventually(&format!("{function} responds"), async || {
            let response = client.get(process.url("/log-level")).send().await.ok()?;
            if response.status().is_success() { response.text().await.ok() } else { None }
        })
        .await;
        assert_eq!(shown.trim(), filter, "{function}");
    }
}

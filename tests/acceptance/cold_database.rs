//! Functions that start before their database, and before it is migrated.

use ebbflow_tests::{FunctionProcess, build};
use embedded::{Durability, Options, Server};
use store::Postgres;
use testkit::eventually;

/// Each function, with a path that it serves and what it answers there to a GET without a token: only POST is allowed for pushes.
const FUNCTIONS: [(&str, &str, u16); 5] = [
    ("trigger", "/push", 405),
    ("evaluate", "/push", 405),
    ("execute", "/push", 405),
    ("sweep", "/push", 405),
    ("console", "/api/v1/runs", 401),
];

/// The status of a path; none while the process does not listen.
async fn status(process: &FunctionProcess, path: &str) -> Option<u16> {
    let response = reqwest::Client::new().get(process.url(path)).send().await.ok()?;
    Some(response.status().as_u16())
}

async fn wait_for(process: &FunctionProcess, path: &str, wanted: u16) {
    eventually(&format!("{} returns {wanted} for {path}", process.name), async || {
        (status(process, path).await == Some(wanted)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn functions_start_before_their_database_and_serve_once_it_is_there_and_migrated() {
    let program = build().await;
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let options = Options { durability: Durability::None, ..Options::default() };
        Server::start_with(folder.path(), options)
    };
    // Its address is known from its first start on.
    let server = start().await.unwrap();
    server.create_database("ebbflow").await.unwrap();
    let url = server.url("ebbflow");
    server.stop().await;

    let settings = [
        ("DATABASE_URL", url.clone()),
        ("EBB_BROKER_URL", "http://127.0.0.1:1".to_owned()),
        ("EBB_PUSH_AUTH", "none".to_owned()),
        ("EBB_GRACE_SECONDS", "1".to_owned()),
        ("EBB_API_AUDIENCE", "api".to_owned()),
        ("EBB_API_ACCOUNTS", "ada@example.com".to_owned()),
    ];
    let mut processes = FUNCTIONS
        .map(|(name, path, answer)| (FunctionProcess::start(name, &program, settings.clone()), path, answer));
    for (process, path, _) in &processes {
        wait_for(process, "/livez", 200).await;
        assert_eq!(status(process, "/started").await, Some(503), "{}", process.name);
        assert_eq!(status(process, path).await, Some(503), "{}", process.name);
    }

    let server = start().await.unwrap();
    for (process, path, _) in &processes {
        wait_for(process, "/started", 200).await;
        assert_eq!(status(process, path).await, Some(503), "{}: it is not migrated", process.name);
    }

    Postgres::migrate(&url).await.unwrap();
    for (process, path, answer) in &processes {
        wait_for(process, path, *answer).await;
    }
    let [_, _, _, (sweep, ..), _] = &processes;
    let swept = reqwest::Client::new().post(sweep.url("/sweep")).send().await.unwrap();
    assert_eq!(swept.status().as_u16(), 204);
    for (process, ..) in &mut processes {
        assert!(process.is_alive(), "{}", process.name);
    }
    drop(processes);
    server.stop().await;
}

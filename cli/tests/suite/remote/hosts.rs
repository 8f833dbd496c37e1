//! Workers whose tasks call a server that is down.

use axum::Router;
use axum::routing::get;
use serde_json::json;
use tokio::net::TcpListener;

use super::RemoteWorker;
use crate::project::{Project, printed, shared_folder};

/// As many calls as open a breaker.
const CALL: &str = "
name: call
inputs: {url: {type: string}}
tasks:
  - name: call
    type: http
    queue: remote
    retry_policy: {max_retries: 9, initial_delay_seconds: 0}
    config: {url: '{{ inputs.url }}'}
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_breaker_of_a_host_that_a_worker_opens_is_listed_and_reset_like_any_other() {
    let (project, folder) = (Project::new().with("call", CALL).with_pool("remote"), shared_folder());
    let dev = project.dev();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let _worker = RemoteWorker::start(&project, "w", folder.path(), &[]);
    let call = || project.run(&["trigger", "call", "--watch", "--input", &format!("url=http://{address}/")]);
    let failed = call();
    assert_eq!(failed.status.code(), Some(1), "{}", printed(&failed));
    let listed = dev.get("/breakers").await;
    let found = &listed["items"][0];
    assert_eq!((&found["kind"], &found["name"]), (&json!("host"), &json!(address.to_string())), "{listed}");
    assert!(found["message"].as_str().unwrap().contains("calls in a row failed"), "{listed}");
    let listener = TcpListener::bind(address).await.unwrap();
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/", get(async || "here"))).await });
    project.ask(&["breakers", "reset", &found["id"].to_string()]);
    assert_eq!(dev.get("/breakers").await["items"], json!([]));
    let succeeded = call();
    assert_eq!(succeeded.status.code(), Some(0), "{}", printed(&succeeded));
    assert_eq!(dev.get("/breakers").await["items"], json!([]));
}

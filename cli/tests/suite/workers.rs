//! `ebb workers` and `ebb worker`, with the only worker of an `ebb dev`.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::routing::post;
use axum::{Json, Router};
use serde_json::json;
use testkit::eventually;
use tokio::net::TcpListener;

use crate::project::{Process, Project, printed, shared_folder};

/// The worker in bash that the guide shows.
fn documented_worker() -> &'static str {
    let guide = include_str!("../../../docs/src/guides/remote-workers.md");
    let (_, script) = guide.split_once("```bash\n").unwrap();
    script.split_once("```").unwrap().0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_worker_in_the_guide_executes_tasks() {
    let text = "
name: far
tasks:
  - {name: works, type: bash, queue: tiles, config: {command: echo hello}}
  - {name: fails, type: bash, queue: tiles, config: {command: echo no luck; exit 3}, allow_failure: true}
";
    let project = Project::new().with("far", text).with_pool("tiles");
    let dev = project.dev();
    let token = project.ask(&["tokens", "create", "gpu", "--role", "worker"]).trim().to_owned();
    assert!(documented_worker().lines().count() <= 20);
    let mut bash = std::process::Command::new("bash");
    bash.args(["-c", documented_worker()]).env("EBB_URL", &dev.url).env("EBB_TOKEN", token);
    let _worker = Process::spawn(&mut bash);
    let run = project.trigger("far");
    project.ask(&["run", "watch", &run]);
    let works = dev.get(&format!("/runs/{run}/tasks/works")).await;
    assert_eq!((&works["state"], &works["output"]["stdout"]), (&"succeeded".into(), &"hello".into()));
    let fails = dev.get(&format!("/runs/{run}/tasks/fails")).await;
    assert_eq!((&fails["state"], &fails["error"]["message"]), (&"failed".into(), &"no luck".into()));
    eventually("an idle worker stays registered, with the number of its tasks", async || {
        let listed = dev.get("/workers").await;
        let mut workers = listed["items"].as_array().unwrap().iter();
        let remote = workers.find(|worker| worker["function"] == "remote")?;
        (remote["tasks_done"] == 2).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_cannot_wait_comes_back_after_the_time_it_is_given() {
    let leases = Arc::<Mutex<Vec<Instant>>>::default();
    let asked = leases.clone();
    let lease = async move || {
        let mut asked = asked.lock().unwrap();
        asked.push(Instant::now());
        let (command, retry_after) = if asked.len() == 1 { (None, Some(2)) } else { (Some("drain"), None) };
        let answer = json!({
            "items": [], "command": command, "heartbeat_seconds": 10, "retry_after_seconds": retry_after
        });
        Json(answer)
    };
    let goodbye = async || Json(json!({"applied": true}));
    let router = Router::new()
        .route("/api/v1/execution/lease", post(lease))
        .route("/api/v1/execution/goodbye", post(goodbye));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let arguments = ["worker", "--queue", "tiles", "--drain-above", "100", "--url", &url, "--token", "x"];
    let ended = Project::new().run(&arguments);
    assert!(ended.status.success(), "{}", printed(&ended));
    let leases = leases.lock().unwrap().clone();
    assert_eq!(leases.len(), 2, "{}", printed(&ended));
    assert!(leases[1] - leases[0] >= Duration::from_secs(2), "{leases:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_is_replaced_and_its_task_is_retried() {
    let project = Project::new();
    let shared = shared_folder();
    let pipe = shared.path().join("go");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let command = format!("read -r _ < {}", pipe.display());
    let text =
        format!("name: long\ntasks:\n  - {{name: wait, type: bash, config: {{command: '{command}'}}}}\n");
    let project = project.with("long", &text);
    let dev = project.dev_with(&[], &[("EBB_TASK_READABLE", shared.path().to_str().unwrap())]);
    assert_eq!(printed(&project.run(&["workers"])), "no worker is registered\n");
    let run = &project.trigger("long");
    let worker = eventually("a worker holds the attempt", async || {
        let workers = dev.get("/workers").await;
        let mut workers = workers["items"].as_array().unwrap().iter();
        let worker = workers.find(|worker| worker["attempts"][0]["run"] == **run)?;
        assert_eq!((&worker["state"], &worker["attempts"][0]["task"]), (&"busy".into(), &"wait".into()));
        Some(worker["id"].as_str().unwrap().to_owned())
    })
    .await;
    assert!(printed(&project.run(&["workers"])).contains(&worker));
    project.ask(&["worker", "kill", &worker, "--reason", "it hangs"]);
    let task = format!("/runs/{run}/tasks/wait");
    eventually("the second attempt is running", async || {
        let task = dev.get(&task).await;
        (task["state"] == "running" && task["attempt"] == 2).then_some(())
    })
    .await;
    let unknown = project.run(&["worker", "drain", &worker]);
    assert_eq!(unknown.status.code(), Some(3), "it has deregistered: {}", printed(&unknown));
    tokio::task::spawn_blocking(move || std::fs::write(pipe, "go\n")).await.unwrap().unwrap();
    project.ask(&["run", "watch", run]);
}

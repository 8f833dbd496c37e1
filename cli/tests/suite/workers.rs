//! `ebb workers` and `ebb worker`, with the only worker of an `ebb dev`.

use testkit::eventually;

use crate::project::{Project, printed, shared_folder};

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
    assert_eq!(printed(&project.run(&["workers"])), "no worker holds an attempt\n");
    let run = &project.trigger("long");
    let worker = eventually("a worker holds the attempt", async || {
        let workers = dev.get("/workers").await;
        let mut workers = workers["items"].as_array().unwrap().iter();
        let worker = workers.find(|worker| worker["attempts"][0]["run"] == **run)?;
        assert_eq!((&worker["state"], &worker["attempts"][0]["task"]), (&"alive".into(), &"wait".into()));
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

//! `ebb workers` and `ebb worker kill`, against the only worker of an `ebb dev`.

use serde_json::Value;

use crate::ebb::{Place, said};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_killed_is_replaced_and_its_attempt_goes_on() {
    let place = Place::new();
    let pipe = place.path().join("go");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let command = format!("read -r _ < {}", pipe.display());
    let text =
        format!("name: long\ntasks:\n  - {{name: wait, type: bash, config: {{command: '{command}'}}}}\n");
    let place = place.with("long", &text);
    let dev = place.dev();
    assert_eq!(said(&place.run(&["workers"])), "no worker holds an attempt\n");
    let started: Value = serde_json::from_slice(&place.run(&["trigger", "long", "--json"]).stdout).unwrap();
    let run = started["id"].as_str().unwrap();
    let worker = loop {
        let workers = dev.get("/workers").await;
        let busy =
            workers["items"].as_array().unwrap().iter().find(|worker| worker["attempts"][0]["run"] == run);
        if let Some(worker) = busy {
            assert_eq!((&worker["state"], &worker["attempts"][0]["task"]), (&"alive".into(), &"wait".into()));
            break worker["id"].as_str().unwrap().to_owned();
        }
    };
    assert!(said(&place.run(&["workers"])).contains(&worker));
    let killed = place.run(&["worker", "kill", &worker, "--reason", "it hangs"]);
    assert!(killed.status.success(), "{}", said(&killed));
    let task = format!("/runs/{run}/tasks/wait");
    loop {
        let task = dev.get(&task).await;
        if (&task["state"], &task["attempt"]) == (&"running".into(), &2.into()) {
            break;
        }
    }
    let unknown = place.run(&["worker", "drain", &worker]);
    assert_eq!(unknown.status.code(), Some(3), "it has left: {}", said(&unknown));
    tokio::task::spawn_blocking(move || std::fs::write(pipe, "go\n")).await.unwrap().unwrap();
    let watched = place.run(&["run", "watch", run]);
    assert!(watched.status.success(), "{}", said(&watched));
}

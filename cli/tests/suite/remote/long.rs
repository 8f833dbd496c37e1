//! Long tasks: the deploys that they outlive, and where they resume after one that stops their worker.

use serde_json::Value;
use testkit::{Port, eventually};

use super::{Place, WAIT, runs, task};
use crate::project::Dev;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_runs_on_while_its_server_is_replaced_twice() {
    let place = Place::new("wait", WAIT);
    let port = Port::reserve();
    let mut dev = place.project.dev_at(&port);
    let worker = place.worker("w", &[]);
    let run = place.trigger("wait");
    runs(&dev, &run, 1).await;
    for _ in 0..2 {
        dev = replace(&place, dev, &port, "w").await;
        runs(&dev, &run, 1).await;
    }
    tokio::task::block_in_place(|| place.go("late"));
    place.project.ask(&["run", "watch", &run]);
    let task = task(&dev, &run, "wait").await;
    assert_eq!((&task["attempt"], &task["output"]), (&1.into(), &"late".into()), "{}", worker.log());
}

/// Replaces the server by another one at the same address. Returns once that worker has found it.
async fn replace(place: &Place, dev: Dev, port: &Port, worker: &str) -> Dev {
    let last_seen = heartbeat(&dev, worker).await;
    assert!(tokio::task::block_in_place(|| dev.stops_on_request()));
    let dev = place.project.dev_at(port);
    eventually("the worker finds the new server", async || {
        (heartbeat(&dev, worker).await != last_seen).then_some(())
    })
    .await;
    dev
}

/// When a worker was seen last.
async fn heartbeat(dev: &Dev, worker: &str) -> Value {
    let workers = dev.get("/workers").await;
    let items = workers["items"].as_array().unwrap();
    let remote = items.iter().find(|one| one["name"] == worker);
    remote.map(|worker| worker["heartbeat_at"].clone()).unwrap_or_default()
}

/// Its program says that it has begun, saves its phase when it is asked to stop, and otherwise reads a word.
const PHASES: &str = r#"
name: wait
inputs: {folder: {type: string}}
tasks:
  - name: wait
    type: python
    queue: remote
    idempotent: false
    config:
      env: {FOLDER: "{{ inputs.folder }}"}
      code: |
        import json, os, signal, sys
        folder = os.environ["FOLDER"]
        checkpoint = json.load(open(os.environ["EBB_INPUT"])).get("checkpoint") or {"phase": "split"}
        def save(*_):
            with open(os.environ["EBB_MESSAGES"], "a") as messages:
                messages.write(json.dumps({"checkpoint": {"phase": "merge", "state": {"tile": 7}}}) + "\n")
            sys.exit(1)
        signal.signal(signal.SIGTERM, save)
        open(os.path.join(folder, "began-" + checkpoint["phase"]), "w").close()
        word = open(os.path.join(folder, "pipe")).read().strip()
        json.dump({"word": word, "from": checkpoint}, open(os.environ["EBB_OUTPUT"], "w"))
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_lives_through_two_deploys_and_resumes_at_its_phase_on_the_next_worker() {
    let place = Place::new("wait", PHASES);
    let port = Port::reserve();
    let dev = place.project.dev_at(&port);
    let began = async |phase: &str| {
        let file = place.folder.path().join(format!("began-{phase}"));
        eventually(&format!("the phase {phase} begins"), async || file.exists().then_some(())).await;
    };
    let mut worker = place.worker("w", &["--grace", "0"]);
    let run = place.trigger("wait");
    began("split").await;
    let dev = replace(&place, dev, &port, "w").await;
    worker.terminate();
    assert!(tokio::task::block_in_place(|| worker.ended()).success(), "{}", worker.log());
    let next = place.worker("next", &[]);
    began("merge").await;
    let dev = replace(&place, dev, &port, "next").await;
    tokio::task::block_in_place(|| place.go("done"));
    place.project.ask(&["run", "watch", &run]);
    let task = task(&dev, &run, "wait").await;
    let from = serde_json::json!({"phase": "merge", "state": {"tile": 7}});
    assert_eq!((&task["attempt"], &task["output"]["from"]), (&2.into(), &from), "{}", next.log());
    assert_eq!(task["output"]["word"], "done");
}

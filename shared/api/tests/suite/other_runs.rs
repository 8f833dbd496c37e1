//! Runs that have to do with each other: started by a task, held for others, doing the same work.

use axum::http::StatusCode;
use model::{Parent, RunId, TaskIndex, TaskKey, TenantId};
use runtime::{Origin, StartRun};
use serde_json::{Value, json};

use crate::world::World;

const CHILD: &str = "{name: child, tasks: [{name: only, type: noop}]}";

pub(crate) const PARENT: &str = "
name: parent
tasks:
  - {name: call, type: workflow, config: {workflow: child}}
  - {name: many, type: fan_out, for_each: '[1, 2]', task: {type: workflow, config: {workflow: child}}}
";

/// Starts the run that a task asked for, as the message that it sent would.
pub(crate) async fn start_child(world: &World, run: RunId, task: u32, waits: bool) -> RunId {
    let parent = Parent { key: TaskKey { run, task: TaskIndex(task) }, attempt: 1, waits, depth: 1 };
    let request = StartRun::new(parent.child(), TenantId::DEFAULT, "child", Origin::Child(parent));
    world.runtime.child_runs().start(request, parent).await.unwrap();
    parent.child()
}

/// A run whose tasks wait for runs of `child`.
pub(crate) async fn parent() -> (World, RunId) {
    let world = World::new().await;
    assert_eq!(world.post("/workflows", CHILD).await.status, StatusCode::CREATED);
    let run = world.play(PARENT, json!({})).await;
    (world, run)
}

fn ids(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_run_names_the_task_that_started_it_even_if_that_does_not_wait() {
    let (world, run) = parent().await;
    for (task, name, waits) in [(0, "call", true), (3, "many__1", false)] {
        let child = start_child(&world, run, task, waits).await;
        let shown = world.get(&format!("/runs/{child}")).await.body;
        let link = format!("/api/v1/runs/{run}");
        assert_eq!(
            shown["parent"],
            json!({"run": run, "task": name, "attempt": 1, "waits": waits, "link": link})
        );
    }
    assert_eq!(world.get(&format!("/runs/{run}")).await.body["parent"], json!(null));
}

#[tokio::test]
async fn the_runs_that_a_run_started_are_listed() {
    let (world, run) = parent().await;
    let mut started = [start_child(&world, run, 0, true).await, start_child(&world, run, 2, true).await];
    started.sort();
    started.reverse();
    let page = world.get(&format!("/runs?parent={run}")).await.body;
    assert_eq!(ids(&page), started.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(ids(&world.get(&format!("/runs?parent={}", started[0])).await.body), [""; 0]);
    assert_eq!(world.get("/runs?parent=x").await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_task_says_which_run_it_waits_for() {
    let (world, run) = parent().await;
    let started = RunId::of_task(TaskKey { run, task: TaskIndex(0) }, 1);
    let task = world.get(&format!("/runs/{run}/tasks/call")).await.body;
    assert_eq!(task["waiting"]["reason"], "run");
    assert_eq!(
        task["waiting"]["run"],
        json!({"id": started, "task": null, "link": format!("/api/v1/runs/{started}")})
    );
    let child = world.get(&format!("/runs/{run}/tasks/many__1")).await.body;
    assert_eq!(child["waiting"]["run"]["id"], json!(RunId::of_task(TaskKey { run, task: TaskIndex(3) }, 1)));
}

/// Two runs that share the task `rates`: the first carries it out, the second waits.
pub(crate) async fn sharing() -> (World, RunId, RunId) {
    let world = World::new().await;
    let graph = |name: &str, task: &str| {
        let text = format!("name: {name}\ntasks: [{{name: {task}, task: rates}}]");
        json!({"path": format!("graphs/{name}.yaml"), "kind": "workflow", "text": text})
    };
    let rates = "{name: rates, type: noop, global: true}";
    let files = json!({"files": [
        graph("one", "fetch-rates"), graph("two", "rates"),
        {"path": "tasks/rates.yaml", "kind": "task", "text": rates},
    ]});
    let registered = world.post("/workflows", files.to_string()).await;
    assert_eq!(registered.status, StatusCode::CREATED, "{}", registered.body);
    let (first, second) = (world.start_of("one", json!({})).await, world.start_of("two", json!({})).await);
    (world, first, second)
}

#[tokio::test]
async fn a_task_says_which_task_of_another_run_does_its_work() {
    let (world, first, second) = sharing().await;
    let task = world.get(&format!("/runs/{second}/tasks/rates")).await.body;
    assert_eq!((&task["state"], &task["waiting"]["reason"]), (&json!("sleeping"), &json!("shared")));
    let link = format!("/api/v1/runs/{first}/tasks/fetch-rates");
    assert_eq!(task["waiting"]["run"], json!({"id": first, "task": "fetch-rates", "link": link}));
}

pub(crate) const LIMITED: &str = "
name: limited
inputs: {region: {type: string, default: eu}}
concurrency: {key: '{{ inputs.region }}', limit: 1, policy: POLICY}
tasks: [{name: only, type: noop}]
";

#[tokio::test]
async fn a_held_run_names_the_runs_that_go_first() {
    let world = World::new().await;
    let first = world.play(&LIMITED.replace("POLICY", "queue"), json!({})).await;
    let second = world.start_of("limited", json!({})).await;
    let third = world.start_of("limited", json!({})).await;
    let shown = world.get(&format!("/runs/{third}")).await.body;
    assert_eq!((&shown["state"], &shown["concurrency_key"]), (&json!("queued"), &json!("eu")));
    // All are created at the same instant, so ids decide who of the others comes first.
    let before = usize::from(second < third);
    assert_eq!(
        shown["waiting"],
        json!({"reason": "concurrency", "since": "2027-01-15T08:00:00Z", "runs": [first], "ahead": before})
    );
    let running = world.get(&format!("/runs/{first}")).await.body;
    assert_eq!((&running["waiting"], &running["concurrency_key"]), (&json!(null), &json!("eu")));
    let listed = world.get("/runs?state=queued").await.body;
    assert_eq!(listed["items"][0]["waiting"]["runs"], json!(null), "a list does not look at others");
}

#[tokio::test]
async fn a_run_that_is_skipped_is_refused_with_the_one_in_its_way_and_what_to_do() {
    let world = World::new().await;
    let first = world.play(&LIMITED.replace("POLICY", "skip"), json!({})).await;
    let refused = world.post("/workflows/limited/runs", "").await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert_eq!(refused.body["error_code"], "concurrency_key_taken");
    assert_eq!(refused.body["details"]["id"], json!(first));
    let said = refused.body["message"].as_str().unwrap();
    assert!(said.ends_with("; wait until it ends or cancel it, then start the run again"), "{said}");
}

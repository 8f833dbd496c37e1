//! Tasks after many large outputs: each reads what it uses, and no more than fits in memory.

use axum::http::StatusCode;
use model::message::TaskDispatched;
use model::{RunId, TaskIndex, TaskKey, TenantId};
use runtime::Job;
use serde_json::{Map, Value, json};

use crate::world::World;

/// Together, their outputs are more than is read at once, even without that of the task that ends last, which is not read
/// where it is written.
const LARGE: usize = 18;

/// A workflow of large outputs, and of tasks that use one or all of them.
fn workflow() -> String {
    let names: Vec<String> = (0..LARGE).map(|number| format!("o{number:02}")).collect();
    let large = names.iter().map(|name| format!("{{name: {name}, type: echo, config: {{value: 1}}}}"));
    let after = format!("depends_on: [{}]", names.join(", "));
    let users = [
        format!("{{name: one, type: transform, {after}, config: {{expression: outputs.o03 | length}}}}"),
        format!("{{name: all, type: transform, {after}, config: {{expression: outputs | length}}}}"),
        format!("{{name: program, type: bash, queue: remote, {after}, config: {{command: 'true'}}}}"),
        format!("{{name: named, type: echo, {after}, config: {{value: '{{{{ outputs.o03 | length }}}}'}}}}"),
        format!("{{name: whole, type: echo, {after}, config: {{value: '{{{{ outputs | length }}}}'}}}}"),
        format!("{{name: skipped, type: noop, {after}, when: outputs.o00 == 'no'}}"),
    ];
    format!("name: wide\ntasks: [{}]", large.chain(users).collect::<Vec<_>>().join(", "))
}

/// What an executor would be given for a task.
async fn job(world: &World, run: RunId, task: u32) -> Result<Value, String> {
    let record = world.store().run(TenantId::DEFAULT, run).await.unwrap().unwrap();
    let version = record.run.version;
    let graph = world.runtime.graph(version).await.unwrap().unwrap();
    let work = TaskDispatched {
        key: TaskKey { run, task: TaskIndex(task) },
        tenant: TenantId::DEFAULT,
        attempt: 1,
        version,
        queue: "light".into(),
        child: None,
        give_up_at: None,
    };
    match world.runtime.job(&work, &graph, Map::new()).await.unwrap() {
        Job::Ready(brief) => Ok(brief.config["value"].clone()),
        Job::Broken(failure) => Err(failure.message),
        Job::Gone => panic!("the run is there"),
    }
}

#[tokio::test]
async fn a_task_reads_the_outputs_that_it_uses_and_fails_if_they_are_too_large() {
    let world = World::new().await;
    let run = world.play(&workflow(), json!({})).await;
    for task in 0..LARGE as u32 {
        world.report(run, task, Ok(json!("x".repeat(1_000_000)))).await;
    }
    let task = async |name: &str| world.get(&format!("/runs/{run}/tasks/{name}")).await.body;
    assert_eq!(task("one").await["output"], 1_000_000);
    assert_eq!(task("skipped").await["state"], "skipped");
    assert_eq!(job(&world, run, LARGE as u32 + 3).await, Ok(json!(1_000_000)));
    let leased = world.post("/execution/lease", r#"{"worker": "w", "queue": "remote"}"#).await;
    assert_eq!((leased.status, &leased.body["items"]), (StatusCode::OK, &json!([])));
    let whole = job(&world, run, LARGE as u32 + 4).await.unwrap_err();
    let mut messages = vec![whole];
    for name in ["all", "program"] {
        let failed = task(name).await;
        assert_eq!((&failed["state"], &failed["error"]["class"]), (&json!("failed"), &json!("permanent")));
        messages.push(failed["error"]["message"].as_str().unwrap().to_owned());
    }
    for message in messages {
        let what_to_do = "more than 16 MiB of JSON together: have the tasks write what is large to storage";
        assert!(message.contains(what_to_do), "{message}");
    }
}

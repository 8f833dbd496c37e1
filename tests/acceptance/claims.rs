//! A claimed attempt runs once, however often its message is delivered.

use std::fs;

use bus::Bus;
use model::message::TaskDispatched;
use model::{EventKind, Message, RunState, TaskIndex, TaskKey, TaskKind, TenantId};
use serde_json::json;

use crate::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_whose_message_is_delivered_many_times_runs_once() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let (marks, pipe) = (folder.path().join("marks"), folder.path().join("go"));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut workflow = testkit::workflow("only");
    workflow.tasks[0].kind = TaskKind::Bash;
    // It writes a line, then waits until the test lets it finish.
    workflow.tasks[0].config = json!({"command": "echo began >> \"$MARKS\"; read -r _ < \"$GO\"", "env": {"MARKS": marks, "GO": pipe}});
    world.register(workflow).await;
    let run = world.start("example").await;
    let version = world.run(run).await.run.version;
    let again = Message::TaskDispatched(TaskDispatched {
        key: TaskKey { run, task: TaskIndex(0) },
        tenant: TenantId::DEFAULT,
        attempt: 1,
        version,
        queue: "light".into(),
        child: None,
        give_up_at: None,
    });
    world.bus.publish(&vec![again; 20]).await.unwrap();
    // Opening a pipe for writing waits for its reader, so the attempt is running.
    let go = tokio::task::spawn_blocking(move || fs::write(pipe, "go\n"));
    go.await.unwrap().unwrap();
    assert_eq!(world.finished(run).await.run.state, RunState::Succeeded);
    assert_eq!(fs::read_to_string(marks).unwrap(), "began\n");
    let started = world.events(run).await.iter().filter(|event| event.kind == EventKind::TaskStarted).count();
    assert_eq!(started, 1);
}

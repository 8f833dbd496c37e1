//! People retry, clear, pause and resume runs.

use std::path::Path;

use engine::{By, Command, Operation};
use model::{EventKind, RunId, RunState, TaskIndex};
use runtime::Settled;
use serde_json::json;
use testkit::eventually;

use crate::child_runs::allow_to_finish;
use crate::world::World;

/// Each task appends its name to a file; `check` fails until the test creates `right`.
const STEPS: &str = "
name: steps
inputs: {mark: {type: string}}
tasks:
  - {name: load, type: bash, config: {command: echo load >> $MARK, env: {MARK: \"{{ inputs.mark }}\"}}}
  - name: check
    type: bash
    depends_on: [load]
    config: {command: echo check >> $MARK; test -e $MARK.right, env: {MARK: \"{{ inputs.mark }}\"}}
  - {name: tidy, type: bash, depends_on: [load], config: {command: echo tidy >> $MARK, env: {MARK: \"{{ inputs.mark }}\"}}}
  - {name: send, type: bash, depends_on: [check], config: {command: echo send >> $MARK, env: {MARK: \"{{ inputs.mark }}\"}}}
";

const WAITS: &str = "
name: waits
inputs: {mark: {type: string}}
tasks:
  - name: work
    type: bash
    config: {command: 'until test -e $MARK.go; do sleep 0.05; done', env: {MARK: \"{{ inputs.mark }}\"}}
  - {name: after, type: noop, depends_on: [work]}
";

async fn operate(world: &World, run: RunId, operation: Operation) {
    let by = By { actor: "ana".into(), reason: Some("repaired".into()) };
    let settled = world.runtime.settle(run, Command::Operate { operation, by }).await.unwrap();
    assert_eq!(settled, Settled::Applied);
}

/// The names that tasks have written since the last call, sorted: tasks run in parallel.
fn written(mark: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_to_string(mark).unwrap().lines().map(str::to_owned).collect();
    names.sort();
    std::fs::write(mark, "").unwrap();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_run_is_retried_and_then_cleared_from_the_middle() {
    let world = World::new().await;
    world.write(STEPS).await;
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let run = world.start_with("steps", &json!({"mark": mark})).await.unwrap();
    assert_eq!(world.state(run).await, RunState::Failed);
    assert_eq!(written(&mark), ["check", "load", "tidy"]);
    assert_eq!(world.states(run).await, ["succeeded", "failed", "succeeded", "upstream_failed"]);

    std::fs::write(mark.with_extension("right"), "").unwrap();
    operate(&world, run, Operation::Retry).await;
    let record = world.finished(run).await.run;
    assert_eq!((record.state, record.error), (RunState::Succeeded, None));
    assert_eq!(written(&mark), ["check", "send"], "succeeded tasks are not re-run");

    operate(&world, run, Operation::Clear(TaskIndex(1))).await;
    assert_eq!(world.state(run).await, RunState::Succeeded);
    assert_eq!(written(&mark), ["check", "send"], "only downstream tasks are re-run");
    let attempts: Vec<u32> = world.tasks(run).await.iter().map(|row| row.task.attempt).collect();
    assert_eq!(attempts, [1, 3, 1, 2]);
    let retried = world.events(run).await.into_iter().find(|event| event.kind == EventKind::RunRetried);
    assert_eq!(retried.unwrap().actor.as_deref(), Some("ana"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_run_finishes_running_tasks_and_continues_when_resumed() {
    let world = World::new().await;
    world.write(WAITS).await;
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let run = world.start_with("waits", &json!({"mark": mark})).await.unwrap();
    eventually("the task is running", async || (world.states(run).await[0] == "running").then_some(())).await;
    operate(&world, run, Operation::Pause).await;
    allow_to_finish(&**world.store(), &[run], &mark).await;
    assert_eq!(world.state(run).await, RunState::Paused);
    assert_eq!(world.states(run).await, ["succeeded", "pending"]);
    operate(&world, run, Operation::Resume).await;
    assert_eq!(world.state(run).await, RunState::Succeeded);
}

/// A fan-out whose second child fails until the test creates `right`; one child at a time.
const EACH: &str = "
name: each
inputs: {mark: {type: string}}
tasks:
  - name: split
    type: fan_out
    for_each: '[1, 2, 3]'
    max_parallel: 1
    task:
      type: bash
      config:
        command: echo $ITEM >> $MARK; test $ITEM != 2 -o -e $MARK.right
        env: {MARK: \"{{ inputs.mark }}\", ITEM: \"{{ item }}\"}
  - {name: gather, type: fan_in, depends_on: [split]}
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retrying_a_fan_out_re_runs_the_children_that_did_not_succeed() {
    let world = World::new().await;
    world.write(EACH).await;
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let run = world.start_with("each", &json!({"mark": mark})).await.unwrap();
    assert_eq!(world.state(run).await, RunState::Failed);
    assert_eq!(written(&mark), ["1", "2"]);
    std::fs::write(mark.with_extension("right"), "").unwrap();
    operate(&world, run, Operation::Retry).await;
    assert_eq!(world.state(run).await, RunState::Succeeded);
    assert_eq!(written(&mark), ["2", "3"]);
    assert_eq!(world.output(run, 1).await["count"], 3);
    operate(&world, run, Operation::Clear(TaskIndex(0))).await;
    assert_eq!(world.state(run).await, RunState::Succeeded);
    assert_eq!(written(&mark), ["1", "2", "3"]);
    assert_eq!(world.output(run, 1).await["count"], 3);
    let children = world.store().run_tasks(run, Some(TaskIndex(0)), None, 9).await.unwrap();
    assert_eq!(children.len(), 3, "removed children are not listed");
}

//! What people do to runs: retried, cleared, paused, on real parts.

use std::path::Path;

use engine::{By, Command, Operation};
use language::FileKind;
use model::{EventKind, RunId, RunState, TaskIndex};
use runtime::Settled;
use serde_json::json;

use crate::child_runs::let_go;
use crate::world::World;

/// Each task writes its name down; `check` fails until somebody puts things right.
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
    let by = By { actor: "ana".into(), reason: Some("put right".into()) };
    let settled = world.runtime.settle(run, Command::Operate { operation, by }).await.unwrap();
    assert_eq!(settled, Settled::Applied);
}

/// The names that tasks wrote down, in order.
fn written(mark: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_to_string(mark).unwrap().lines().map(str::to_owned).collect();
    names.sort();
    std::fs::write(mark, "").unwrap();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_run_is_put_right_retried_and_cleared_in_the_middle() {
    let world = World::new().await;
    world.write(&[(FileKind::Workflow, STEPS)]).await;
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let run = world.start("steps", json!({"mark": mark})).await.unwrap();
    assert_eq!(world.state(run).await, RunState::Failed);
    assert_eq!(written(&mark), ["check", "load", "tidy"]);
    assert_eq!(world.states(run).await, ["succeeded", "failed", "succeeded", "upstream_failed"]);

    std::fs::write(mark.with_extension("right"), "").unwrap();
    operate(&world, run, Operation::Retry).await;
    let record = world.finished(run).await.run;
    assert_eq!((record.state, record.error), (RunState::Succeeded, None));
    assert_eq!(written(&mark), ["check", "send"], "what had succeeded is not done again");

    operate(&world, run, Operation::Clear(TaskIndex(1))).await;
    assert_eq!(world.state(run).await, RunState::Succeeded);
    assert_eq!(written(&mark), ["check", "send"], "only what comes after is done again");
    let attempts: Vec<u32> = world.tasks(run).await.iter().map(|row| row.task.attempt).collect();
    assert_eq!(attempts, [1, 3, 1, 2]);
    let retried = world.events(run).await.into_iter().find(|event| event.kind == EventKind::RunRetried);
    assert_eq!(retried.unwrap().actor.as_deref(), Some("ana"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_run_lets_what_runs_finish_and_goes_on_when_it_is_resumed() {
    let world = World::new().await;
    world.write(&[(FileKind::Workflow, WAITS)]).await;
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let run = world.start("waits", json!({"mark": mark})).await.unwrap();
    while world.states(run).await[0] != "running" {
        tokio::task::yield_now().await;
    }
    operate(&world, run, Operation::Pause).await;
    let_go(&**world.runtime.store(), &[run], &mark).await;
    assert_eq!(world.state(run).await, RunState::Paused);
    assert_eq!(world.states(run).await, ["succeeded", "pending"]);
    operate(&world, run, Operation::Resume).await;
    assert_eq!(world.state(run).await, RunState::Succeeded);
}

/// A fan-out whose second child fails until somebody puts things right; one child at a time.
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
async fn a_retried_fan_out_does_the_children_that_did_not_succeed() {
    let world = World::new().await;
    world.write(&[(FileKind::Workflow, EACH)]).await;
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let run = world.start("each", json!({"mark": mark})).await.unwrap();
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
    let children = world.runtime.store().run_tasks(run, Some(TaskIndex(0)), None, 9).await.unwrap();
    assert_eq!(children.len(), 3, "the removed ones are not listed");
}

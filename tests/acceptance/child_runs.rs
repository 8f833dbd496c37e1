//! Runs that depend on each other: children, concurrency groups, shared tasks.

use std::path::Path;

use bus::SystemClock;
use engine::{By, Command, Operation};
use language::FileKind;
use model::message::ConcurrencyGroupFreed;
use model::{RunId, RunState, TaskIndex, TaskKey, TaskState, TenantId};
use runtime::Error;
use serde_json::json;
use store::Store;
use testkit::{SilentBus, eventually};

use crate::world::World;

const CHILD: &str = "
name: child
inputs: {n: {type: integer, default: 1}}
tasks:
  - {name: check, type: transform, config: {expression: 10 / inputs.n}}
  - {name: half, type: transform, depends_on: [check], config: {expression: outputs.check / 2}}
";

const PARENT: &str = "
name: parent
inputs: {n: {type: integer, default: 1}}
tasks:
  - {name: call, type: workflow, config: {workflow: child, inputs: {n: \"{{ inputs.n }}\"}}}
  - {name: after, type: echo, depends_on: [call], config: {got: \"{{ outputs.call.outputs.half }}\"}}
";

fn child_of(run: RunId) -> RunId {
    RunId::of_task(TaskKey { run, task: TaskIndex(0) }, 1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_output_of_a_child_run_is_that_of_its_last_tasks() {
    let world = World::new().await;
    world.write_all(&[CHILD, PARENT]).await;
    let run = world.start("parent").await;
    assert_eq!(world.state(run).await, RunState::Succeeded);
    assert_eq!(world.output(run, 1).await, json!({"got": 5.0}));
    let child = world.run(child_of(run)).await.run;
    assert_eq!((child.depth, child.parent.map(|parent| parent.key.run)), (1, Some(run)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_failure_of_a_child_run_fails_the_parent_with_its_reason() {
    let world = World::new().await;
    world.write_all(&[CHILD, PARENT]).await;
    let run = world.start_with("parent", &json!({"n": 0})).await.unwrap();
    let record = world.finished(run).await.run;
    let child = child_of(run);
    assert_eq!(record.state, RunState::Failed);
    let error = record.error.unwrap();
    assert!(error.contains(&format!("run {child} failed: task `check` failed")), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_run_that_cannot_be_started_fails_its_task_with_the_reason() {
    let world = World::new().await;
    world.write(PARENT).await;
    let run = world.start("parent").await;
    let record = world.finished(run).await.run;
    let expected = "task `call` failed: the run could not be started: there is no workflow `child`";
    assert_eq!(record.error.as_deref(), Some(expected));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_a_run_cancels_its_child_runs_and_theirs() {
    let world = World::new().await;
    let calls = |name: &str, other: &str| {
        format!("name: {name}\ntasks: [{{name: call, type: workflow, config: {{workflow: {other}}}}}]\n")
    };
    let waits = "name: waits\ntasks: [{name: wait, type: wait_for_signal, config: {signal: go}}]\n";
    let (top, middle) = (calls("top", "middle"), calls("middle", "waits"));
    world.write_all(&[&top, &middle, waits]).await;
    let run = world.start("top").await;
    world.bus.idle().await;
    world.cancel(run).await;
    world.bus.idle().await;
    let child = child_of(run);
    for run in [run, child, child_of(child)] {
        assert_eq!(world.run(run).await.run.state, RunState::Cancelled);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workflow_that_starts_itself_fails_at_the_maximum_depth() {
    let world = World::new().await;
    let text = "name: again\ntasks: [{name: call, type: workflow, config: {workflow: again}}]\n";
    world.write(text).await;
    let run = world.start("again").await;
    let error = world.finished(run).await.run.error.unwrap();
    assert!(error.ends_with("runs start runs at most 10 deep: does one start itself?"), "{error}");
}

fn one_per_customer(policy: &str) -> String {
    format!(
        "
name: serve
inputs: {{customer: {{type: string}}}}
concurrency: {{key: \"{{{{ inputs.customer }}}}\", policy: {policy}}}
tasks: [{{name: wait, type: wait_for_signal, config: {{signal: go}}}}]
"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_with_the_same_concurrency_key_wait_for_each_other_and_others_do_not() {
    let world = World::new().await;
    world.write(&one_per_customer("queue")).await;
    let mut runs = Vec::new();
    for customer in ["a", "a", "a", "b"] {
        runs.push(world.start_with("serve", &json!({"customer": customer})).await.unwrap());
    }
    let mut states = Vec::new();
    for turn in 0..3 {
        for run in &runs {
            states.push(world.state(*run).await);
        }
        use RunState::{Queued, Running, Succeeded};
        let expected = match turn {
            0 => [Running, Queued, Queued, Running],
            1 => [Succeeded, Running, Queued, Running],
            _ => [Succeeded, Succeeded, Running, Running],
        };
        assert_eq!(states, expected, "turn {turn}");
        states.clear();
        world.signal(runs[turn], "go").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_cancel_previous_a_later_run_cancels_the_earlier_ones() {
    let world = World::new().await;
    world.write(&one_per_customer("cancel_previous")).await;
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(world.start_with("serve", &json!({"customer": "a"})).await.unwrap());
    }
    assert_eq!(world.state(runs[0]).await, RunState::Cancelled);
    assert_eq!(world.state(runs[1]).await, RunState::Cancelled);
    assert_eq!(world.state(runs[2]).await, RunState::Running);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_skip_no_run_is_created_while_one_is_active() {
    let world = World::new().await;
    world.write(&one_per_customer("skip")).await;
    let first = world.start_with("serve", &json!({"customer": "a"})).await.unwrap();
    let second = world.start_with("serve", &json!({"customer": "a"})).await;
    assert!(matches!(second, Err(Error::ConcurrencyGroupTaken(run)) if run == first), "{second:?}");
    world.signal(first, "go").await;
    assert_eq!(world.state(first).await, RunState::Succeeded);
    world.start_with("serve", &json!({"customer": "a"})).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_run_in_the_concurrency_group_of_its_parent_is_admitted_before_waiting_runs() {
    let world = World::new().await;
    let text = "
name: twice
max_active_runs: 1
inputs: {again: {type: boolean, default: true}}
tasks:
  - {name: gate, type: wait_for_signal, when: inputs.again, config: {signal: go}}
  - {name: call, type: workflow, depends_on: [gate], config: {workflow: twice, inputs: {again: false}}}
";
    world.write(text).await;
    let run = world.start("twice").await;
    let behind = world.start("twice").await;
    assert_eq!(world.state(behind).await, RunState::Queued);
    world.signal(run, "go").await;
    assert_eq!(
        world.state(run).await,
        RunState::Succeeded,
        "its child was admitted before the run that waits"
    );
    assert_eq!(world.state(behind).await, RunState::Running);
}

/// An open transaction must read everything it needs through its own connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_run_is_admitted_over_a_single_connection() {
    let world = World::new().await;
    let text = "
name: twice
max_active_runs: 1
inputs: {again: {type: boolean, default: true}}
tasks:
  - {name: gate, type: wait_for_signal, when: not inputs.again, config: {signal: go}}
  - {name: call, type: workflow, when: inputs.again, config: {workflow: twice, inputs: {again: false}}}
";
    world.write(text).await;
    let run = world.start("twice").await;
    assert_eq!(world.state(run).await, RunState::Running);
    // Its messages are dropped, so no other process admits the run.
    let alone = world.process_with(SilentBus, SystemClock, 1).await;
    let child = RunId::of_task(TaskKey { run, task: TaskIndex(1) }, 1);
    world.signal(child, "go").await;
    world.finished(run).await;
    let by = By { actor: "test".into(), reason: None };
    let operation = Operation::Clear(TaskIndex(0));
    alone.settle(child, Command::Operate { operation, by }).await.unwrap();
    let cleared = world.run(child).await.run;
    assert!(cleared.waiting, "it waits for its group again");
    let group = cleared.concurrency_group.unwrap();
    alone
        .admit(&ConcurrencyGroupFreed { tenant: TenantId::DEFAULT, workflow: "twice".into(), group })
        .await
        .unwrap();
    assert!(!world.run(child).await.run.waiting);
}

pub(crate) const LOAD: &str = "
name: load
type: bash
global: true
config:
  command: |
    echo loaded >> $MARK
    until test -e $MARK.go; do sleep 0.05; done
    test ! -e $MARK.fail
  env: {MARK: \"{{ inputs.mark }}\"}
";

/// Lets the first task of these runs finish, once each of them runs it or waits for another run that does.
pub(crate) async fn allow_to_finish(store: &dyn Store, runs: &[RunId], mark: &Path) {
    for run in runs {
        eventually("the first task has begun", async || {
            let task = store.run_tasks(*run, None, None, 1).await.unwrap().pop()?.task;
            matches!(task.state, TaskState::Running | TaskState::Sleeping).then_some(())
        })
        .await;
    }
    std::fs::write(mark.with_extension("go"), "").unwrap();
}

/// A workflow that needs the global task.
pub(crate) fn needs_load(name: &str) -> String {
    format!(
        "
name: {name}
inputs: {{mark: {{type: string}}}}
tasks:
  - {{task: load}}
  - {{name: use, type: noop, depends_on: [load]}}
"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_global_task_runs_once_and_its_end_is_shared_by_all_runs_that_need_it() {
    let world = World::new().await;
    let (one, two) = (needs_load("one"), needs_load("two"));
    let files = [(FileKind::Task, LOAD), (FileKind::Workflow, &*one), (FileKind::Workflow, &*two)];
    world.write_files(&files).await;
    for (mark, expected) in [("good", RunState::Succeeded), ("bad", RunState::Failed)] {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join(mark);
        if expected == RunState::Failed {
            std::fs::write(mark.with_extension("fail"), "").unwrap();
        }
        let inputs = json!({"mark": mark});
        let first = world.start_with("one", &inputs).await.unwrap();
        let second = world.start_with("two", &inputs).await.unwrap();
        allow_to_finish(&**world.store(), &[first, second], &mark).await;
        assert_eq!(world.state(first).await, expected);
        assert_eq!(world.state(second).await, expected);
        assert_eq!(std::fs::read_to_string(&mark).unwrap(), "loaded\n", "it ran once");
    }
}

//! What runs have to do with each other: children, groups, shared tasks.

use std::path::Path;
use std::sync::Arc;

use bus::SystemClock;
use bus::local::{Broker, Faults};
use engine::{By, Command, Operation};
use language::FileKind;
use model::message::ConcurrencyGroupFreed;
use model::{RunId, RunState, TaskIndex, TaskKey, TaskState, TenantId};
use runtime::{Error, Runtime};
use serde_json::json;
use store::{Postgres, Store};

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
async fn a_child_run_delivers_what_its_last_tasks_deliver() {
    let world = World::new().await;
    world.write(&[(FileKind::Workflow, CHILD), (FileKind::Workflow, PARENT)]).await;
    let run = world.trigger("parent").await;
    assert_eq!(world.state(run).await, RunState::Succeeded);
    assert_eq!(world.output(run, 1).await, json!({"got": 5.0}));
    let child = world.run(child_of(run)).await.run;
    assert_eq!((child.depth, child.parent.map(|parent| parent.key.run)), (1, Some(run)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_passes_up_with_its_reason() {
    let world = World::new().await;
    world.write(&[(FileKind::Workflow, CHILD), (FileKind::Workflow, PARENT)]).await;
    let run = world.start("parent", json!({"n": 0})).await.unwrap();
    let record = world.finished(run).await.run;
    let child = child_of(run);
    assert_eq!(record.state, RunState::Failed);
    let error = record.error.unwrap();
    assert!(error.contains(&format!("run {child} failed: task `check` failed")), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_cannot_be_started_fails_its_task_in_words() {
    let world = World::new().await;
    world.write(&[(FileKind::Workflow, PARENT)]).await;
    let run = world.trigger("parent").await;
    let record = world.finished(run).await.run;
    let said = "task `call` failed: the run could not be started: there is no workflow `child`";
    assert_eq!(record.error.as_deref(), Some(said));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_passes_down_to_the_child_and_its_children() {
    let world = World::new().await;
    let calls = |name: &str, other: &str| {
        format!("name: {name}\ntasks: [{{name: call, type: workflow, config: {{workflow: {other}}}}}]\n")
    };
    let waits = "name: waits\ntasks: [{name: wait, type: wait_for_signal, config: {signal: go}}]\n";
    let (top, middle) = (calls("top", "middle"), calls("middle", "waits"));
    let files = [top.as_str(), middle.as_str(), waits].map(|text| (FileKind::Workflow, text));
    world.write(&files).await;
    let run = world.trigger("top").await;
    world.broker.idle().await;
    let cancel = Command::Cancel { actor: "ana".into(), reason: None };
    world.runtime.settle(run, cancel).await.unwrap();
    world.broker.idle().await;
    let child = child_of(run);
    for run in [run, child, child_of(child)] {
        assert_eq!(world.run(run).await.run.state, RunState::Cancelled);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workflow_that_starts_itself_ends_at_a_certain_depth() {
    let world = World::new().await;
    let text = "name: again\ntasks: [{name: call, type: workflow, config: {workflow: again}}]\n";
    world.write(&[(FileKind::Workflow, text)]).await;
    let run = world.trigger("again").await;
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
async fn runs_of_one_key_wait_for_each_other_and_those_of_another_do_not() {
    let world = World::new().await;
    world.write(&[(FileKind::Workflow, &one_per_customer("queue"))]).await;
    let mut runs = Vec::new();
    for customer in ["a", "a", "a", "b"] {
        runs.push(world.start("serve", json!({"customer": customer})).await.unwrap());
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
async fn a_later_run_of_a_key_takes_the_place_of_the_earlier_ones() {
    let world = World::new().await;
    world.write(&[(FileKind::Workflow, &one_per_customer("cancel_previous"))]).await;
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(world.start("serve", json!({"customer": "a"})).await.unwrap());
    }
    assert_eq!(world.state(runs[0]).await, RunState::Cancelled);
    assert_eq!(world.state(runs[1]).await, RunState::Cancelled);
    assert_eq!(world.state(runs[2]).await, RunState::Running);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_one_too_many_is_not_created() {
    let world = World::new().await;
    world.write(&[(FileKind::Workflow, &one_per_customer("skip"))]).await;
    let first = world.start("serve", json!({"customer": "a"})).await.unwrap();
    let second = world.start("serve", json!({"customer": "a"})).await;
    assert!(matches!(second, Err(Error::ConcurrencyGroupTaken(run)) if run == first), "{second:?}");
    world.signal(first, "go").await;
    assert_eq!(world.state(first).await, RunState::Succeeded);
    world.start("serve", json!({"customer": "a"})).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_waits_for_one_of_its_own_key_does_not_keep_it_waiting() {
    let world = World::new().await;
    let text = "
name: twice
max_active_runs: 1
inputs: {again: {type: boolean, default: true}}
tasks:
  - {name: gate, type: wait_for_signal, when: inputs.again, config: {signal: go}}
  - {name: call, type: workflow, depends_on: [gate], config: {workflow: twice, inputs: {again: false}}}
";
    world.write(&[(FileKind::Workflow, text)]).await;
    let run = world.trigger("twice").await;
    let behind = world.trigger("twice").await;
    assert_eq!(world.state(behind).await, RunState::Queued);
    world.signal(run, "go").await;
    assert_eq!(
        world.state(run).await,
        RunState::Succeeded,
        "its child had its turn before the one that waited"
    );
    assert_eq!(world.state(behind).await, RunState::Running);
}

/// An open transaction reads everything it needs through its own connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_is_admitted_over_the_only_connection() {
    let world = World::new().await;
    let text = "
name: twice
max_active_runs: 1
inputs: {again: {type: boolean, default: true}}
tasks:
  - {name: gate, type: wait_for_signal, when: not inputs.again, config: {signal: go}}
  - {name: call, type: workflow, when: inputs.again, config: {workflow: twice, inputs: {again: false}}}
";
    world.write(&[(FileKind::Workflow, text)]).await;
    let run = world.trigger("twice").await;
    assert_eq!(world.state(run).await, RunState::Running);
    let store: Arc<dyn Store> = Arc::new(Postgres::connect(&world.database.url, 1).await.unwrap());
    // What it publishes reaches nobody, so nobody else admits the run.
    let bus = Broker::new(Arc::new(SystemClock), world.issuer.clone(), "nobody", Faults::default());
    let alone = Runtime::new(store, Arc::new(bus), Arc::new(SystemClock));
    let child = RunId::of_task(TaskKey { run, task: TaskIndex(1) }, 1);
    world.signal(child, "go").await;
    world.finished(run).await;
    let by = By { actor: "test".into(), reason: None };
    let operation = Operation::Clear(TaskIndex(0));
    alone.settle(child, Command::Operate { operation, by }).await.unwrap();
    let cleared = world.run(child).await.run;
    assert!(cleared.waiting, "it waits for its turn again");
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

/// Lets a global task end once every one of these runs either carries it out or waits for it.
pub(crate) async fn let_go(store: &dyn Store, runs: &[RunId], mark: &Path) {
    for run in runs {
        loop {
            let task = store.run_tasks(*run, None, None, 1).await.unwrap().pop().map(|row| row.task.state);
            if matches!(task, Some(TaskState::Running | TaskState::Sleeping)) {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    std::fs::write(mark.with_extension("go"), "").unwrap();
}

/// Two workflows that need the same global task.
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
async fn a_global_task_is_carried_out_once_and_its_end_is_the_end_of_all() {
    let world = World::new().await;
    let (one, two) = (needs_load("one"), needs_load("two"));
    let files =
        [(FileKind::Task, LOAD), (FileKind::Workflow, one.as_str()), (FileKind::Workflow, two.as_str())];
    world.write(&files).await;
    for (mark, expected) in [("good", RunState::Succeeded), ("bad", RunState::Failed)] {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join(mark);
        if expected == RunState::Failed {
            std::fs::write(mark.with_extension("fail"), "").unwrap();
        }
        let inputs = json!({"mark": mark});
        let first = world.start("one", inputs.clone()).await.unwrap();
        let second = world.start("two", inputs).await.unwrap();
        let_go(&**world.runtime.store(), &[first, second], &mark).await;
        assert_eq!(world.state(first).await, expected);
        assert_eq!(world.state(second).await, expected);
        assert_eq!(std::fs::read_to_string(&mark).unwrap(), "loaded\n", "it was carried out once");
    }
}

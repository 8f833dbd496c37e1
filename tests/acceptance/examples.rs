//! Every file in `workflows/` compiles, and the examples that need no service end as documented.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use engine::Command;
use language::{FileKind, SourceFile};
use model::{RunId, RunState, TaskIndex, TaskKey, TaskKind, TenantId};
use serde_json::{Value, json};

use crate::world::World;

fn sources() -> Vec<SourceFile> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("workflows");
    let read = |kind: FileKind, name: &str| {
        let files = fs::read_dir(folder.join(name)).unwrap().map(|entry| entry.unwrap().path());
        files
            .map(|path| SourceFile {
                path: path.display().to_string(),
                kind,
                text: fs::read_to_string(&path).unwrap(),
            })
            .collect::<Vec<_>>()
    };
    let folders = [
        (FileKind::Workflow, "graphs"),
        (FileKind::Task, "tasks"),
        (FileKind::Template, "templates"),
        (FileKind::Type, "types"),
        (FileKind::Queue, "queues"),
    ];
    let mut files: Vec<SourceFile> = folders.into_iter().flat_map(|(kind, name)| read(kind, name)).collect();
    for path in language::referenced_files(&files).into_keys() {
        if let Ok(text) = fs::read_to_string(&path) {
            files.push(SourceFile { path, kind: FileKind::Script, text });
        }
    }
    files
}

/// A world with every example and the secrets they use.
async fn world() -> World {
    let compilation = language::compile(&sources());
    assert!(compilation.diagnostics.is_empty(), "{:#?}", compilation.diagnostics);
    let world = World::new().await;
    world.write_secret("default", "SIGNING_KEY", "open sesame\n");
    world.register_all(TenantId::DEFAULT, compilation.definitions).await;
    world
}

/// An example, its inputs, its final state, and the output of one of its tasks.
struct Example {
    workflow: &'static str,
    inputs: Value,
    end: RunState,
    task: &'static str,
    output: Value,
}

impl Example {
    fn new(workflow: &'static str, task: &'static str, output: Value) -> Self {
        Self { workflow, inputs: json!({}), end: RunState::Succeeded, task, output }
    }

    fn given(self, inputs: Value) -> Self {
        Self { inputs, ..self }
    }

    fn failing(self) -> Self {
        Self { end: RunState::Failed, ..self }
    }
}

/// Every example but `approve`, which waits for people, `wait-for-file`, which waits for a file and a service, and
/// `raster` and `train`, whose tasks run on workers outside (`cli/tests/suite/examples.rs`). Of
/// `market-pipeline` only the branch that needs no service runs here; its own tests cover the others.
fn examples() -> Vec<Example> {
    let text = |text: &str| json!({"text": text});
    let day = json!({"day": "2026-01-31"});
    let link = json!({"link": "reports/2026-01-31.txt", "lines": 1});
    let reported = json!({"outputs": {"publish": &link}});
    let counted = json!({"text": "10 words in 3 of 4 texts", "words": "8 of them different", "ends": [2, 4]});
    vec![
        Example::new("hello", "measure", json!({"characters": 13})),
        Example::new("diamond", "join", json!({"sum": 483, "text": "21 doubled is 42, squared 441"})),
        Example::new("retries", "cleanup", Value::Null).given(json!({"probability": 0})),
        Example::new("charge", "quote", json!({"price": 40})),
        Example::new("charge", "quote", json!({"price": 200})).given(json!({"amount": 200})).failing(),
        Example::new("nap", "wake", text("Slept for 1s")).given(json!({"length": "1s"})),
        Example::new("long-copy", "copy", json!({"rows": 500, "first_page": 1})),
        Example::new("order-report", "tell", text("47 EUR, most from ada")),
        Example::new("etl", "load", json!({"report": "Sales: 255 EUR"})),
        Example::new("broken", "divide", Value::Null).failing(),
        Example::new("branch", "report", json!("1200 rows, in batches")),
        Example::new("choice", "tell", text("20 kg went by truck")),
        Example::new("ingest-orders", "tell", text("Ingested 3 orders")),
        Example::new("fan-out", "tell", counted),
        Example::new("notify", "tell", Value::Null).given(text("Good morning")),
        Example::new("publish-report", "publish", link).given(day.clone()),
        Example::new("daily-report", "report", reported.clone()).given(day),
        Example::new("poll", "use", json!({"of": "today"})),
        Example::new("deadline", "done", text("Done after 2s")),
        Example::new("per-customer", "done", text("Billed ada")),
        Example::new("rush-orders", "done", text("1 letter left, 3 packages left, 40 crates left")),
        Example::new("callbacks", "work", Value::Null),
        Example::new("price-list", "list", json!({"USD": 25.0, "GBP": 16.0})),
        Example::new("price-check", "fits", json!(true)),
        Example::new("cleanup", "give-back", json!({"room": 7})).given(json!({"broken": true})).failing(),
        Example::new("mirrors", "use", json!({"rows": 3, "from": "far"})),
        Example::new("signed-order", "sign", json!({"signature": "9617c4b639d525bd"})),
        Example::new("new-object", "load", json!({"loaded": "gs://b/a"})).given(json!({"path": "gs://b/a"})),
        Example::new("after-both", "join", json!({"day": "2026-01-31"})).given(json!({"day": "2026-01-31"})),
        Example::new("market-pipeline", "report", reported)
            .given(json!({"day": "2026-01-31", "cool_down": "1s"})),
    ]
}

/// The output of a task of a finished run.
async fn output(world: &World, run: RunId, task: &str) -> Value {
    let graph = world.runtime.graph(world.run(run).await.run.version).await.unwrap().unwrap();
    world.tasks(run).await[graph.index_of(task).unwrap().at()].output.clone().unwrap_or_default()
}

#[test]
fn every_example_is_run() {
    let compilation = language::compile(&sources());
    let found: BTreeSet<&str> = compilation.definitions.iter().map(|found| &*found.workflow.name).collect();
    let run = examples().into_iter().map(|example| example.workflow).chain([
        "approve",
        "wait-for-file",
        "raster",
        "train",
    ]);
    assert_eq!(run.collect::<BTreeSet<_>>(), found);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_examples_end_as_documented() {
    let world = world().await;
    let mut runs = Vec::new();
    for example in examples() {
        runs.push(world.start_with(example.workflow, &example.inputs).await.unwrap());
    }
    world.bus.idle().await;
    for (example, run) in examples().into_iter().zip(runs) {
        let Example { workflow, end, task, output: expected, .. } = example;
        let found = world.run(run).await.run;
        assert_eq!(found.state, end, "{workflow}: {:?}", found.error);
        let mut found = output(&world, run, task).await;
        if let Some(fields) = found.as_object_mut() {
            fields.remove("run_id"); // It differs each time.
        }
        assert_eq!(found, expected, "output of {workflow}.{task}");
    }
    // One as an example, one as a child, and three by callbacks: of a deadline, a retry and a success.
    let notices = world.runs("notify").await;
    let ends: Vec<RunState> = notices.iter().map(|record| record.run.state).collect();
    assert_eq!(ends, [RunState::Succeeded; 5]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpointed_task_resumes_at_its_phase() {
    let world = world().await;
    let run = world.start_with("long-copy", &json!({"interrupt_at": 3})).await.unwrap();
    assert_eq!(world.state(run).await, RunState::Succeeded);
    assert_eq!(output(&world, run, "copy").await, json!({"rows": 500, "first_page": 3}));
    let progress = world.store().progress(TaskKey { run, task: TaskIndex(0) }).await.unwrap();
    let phases: Vec<_> = progress.iter().map(|one| (one.attempt, one.phase.as_deref())).collect();
    assert_eq!(phases, [(1, Some("page 2")), (2, Some("page 5"))]);
    let last = &progress[1];
    assert_eq!(last.done.as_ref().map(|done| done.fraction), Some(1.0));
    assert_eq!(last.metrics["rows"].last(), Some(500.0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_for_one_customer_run_one_after_the_other() {
    let world = world().await;
    let (first, second) = (world.start("per-customer").await, world.start("per-customer").await);
    let (first, second) = (world.finished(first).await.run, world.finished(second).await.run);
    assert_eq!([first.state, second.state], [RunState::Succeeded; 2]);
    assert!(first.finished_at.unwrap() <= second.started_at.unwrap(), "{first:?} {second:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_waits_for_a_signal_and_an_approval_and_uses_their_payloads() {
    let world = world().await;
    let run = world.start("approve").await;
    assert_eq!(world.states(run).await, ["sleeping", "pending", "pending"]);
    let payload = json!({"amount": 80, "sender": "Ada"});
    let signal = Command::Signal { name: "invoice".into(), payload, actor: "ada".into() };
    world.runtime.settle(run, signal).await.unwrap();
    assert_eq!(world.states(run).await, ["succeeded", "sleeping", "pending"]);
    let (task, payload) = (TaskIndex(1), json!({"amount": 50}));
    let answer = Command::Answer { task, approved: true, payload, actor: "eve".into() };
    world.runtime.settle(run, answer).await.unwrap();
    assert_eq!(world.finished(run).await.run.state, RunState::Succeeded);
    let tasks = world.tasks(run).await;
    assert_eq!(tasks[1].output, Some(json!({"approved": true, "approved_by": "eve", "amount": 50})));
    assert_eq!(tasks[2].output, Some(json!({"text": "Paid 50 of 80"})));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_early_signal_is_kept_for_the_task_that_will_wait_for_it() {
    let world = World::new().await;
    let mut workflow = testkit::workflow("nap -> wait, wait -> after");
    (workflow.tasks[0].kind, workflow.tasks[0].config) =
        (TaskKind::WaitForSignal, json!({"signal": "first"}));
    (workflow.tasks[1].kind, workflow.tasks[1].config) =
        (TaskKind::WaitForSignal, json!({"signal": "second"}));
    world.register(workflow).await;
    let run = world.start("example").await;
    for name in ["second", "first"] {
        let signal = Command::Signal { name: name.into(), payload: json!(name), actor: "ada".into() };
        world.runtime.settle(run, signal).await.unwrap();
    }
    assert_eq!(world.finished(run).await.run.state, RunState::Succeeded);
    assert_eq!(world.tasks(run).await[1].output, Some(json!("second")));
}

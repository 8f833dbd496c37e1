//! Every file in `workflows/` is sound, and the offline examples run to the end they promise.

use std::fs;
use std::path::Path;

use engine::Command;
use language::{FileKind, SourceFile};
use model::{RunState, TaskIndex};
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
    let folders =
        [(FileKind::Workflow, "graphs"), (FileKind::Task, "tasks"), (FileKind::Template, "templates")];
    folders.into_iter().flat_map(|(kind, name)| read(kind, name)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_examples_end_as_they_promise() {
    let compilation = language::compile(&sources());
    assert!(compilation.diagnostics.is_empty(), "{:#?}", compilation.diagnostics);
    let world = World::new().await;
    for definition in compilation.definitions {
        world.register(definition.workflow).await;
    }
    for (workflow, end, task, output) in [
        ("hello", RunState::Succeeded, "measure", json!({"characters": 13})),
        (
            "diamond",
            RunState::Succeeded,
            "join",
            json!({"sum": 483, "text": "21 doubled is 42, squared 441"}),
        ),
        ("retries", RunState::Succeeded, "cleanup", Value::Null),
        ("nap", RunState::Succeeded, "wake", json!({"text": "Slept for 3s"})),
        ("etl", RunState::Succeeded, "load", json!({"report": "Sales: 255 EUR"})),
        ("broken", RunState::Failed, "divide", Value::Null),
        ("branch", RunState::Succeeded, "report", json!("1200 rows, in batches")),
        ("choice", RunState::Succeeded, "tell", json!({"text": "20 kg went by truck"})),
        ("ingest-orders", RunState::Succeeded, "tell", json!({"text": "Ingested 3 orders"})),
    ] {
        let run = world.trigger(workflow).await;
        let got = world.finished(run).await;
        if workflow != "retries" {
            assert_eq!(got.run.state, end, "{workflow}: {:?}", got.run.error);
        }
        let graph = world.runtime.graph(got.run.version).await.unwrap().unwrap();
        let tasks = world.tasks(run).await;
        let row = &tasks[graph.index_of(task).unwrap().at()];
        assert_eq!(row.output.clone().unwrap_or_default(), output, "output of {workflow}.{task}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_waits_for_a_signal_and_a_person_and_goes_on_with_what_they_say() {
    let world = World::new().await;
    for definition in language::compile(&sources()).definitions {
        world.register(definition.workflow).await;
    }
    let run = world.trigger("approve").await;
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
async fn a_signal_that_comes_early_is_kept_for_who_will_wait_for_it() {
    let world = World::new().await;
    let mut workflow = testkit::workflow("nap -> wait, wait -> after");
    (workflow.tasks[0].kind, workflow.tasks[0].config) =
        ("wait_for_signal".into(), json!({"signal": "first"}));
    (workflow.tasks[1].kind, workflow.tasks[1].config) =
        ("wait_for_signal".into(), json!({"signal": "second"}));
    world.register(workflow).await;
    let run = world.trigger("example").await;
    for name in ["second", "first"] {
        let signal = Command::Signal { name: name.into(), payload: json!(name), actor: "ada".into() };
        world.runtime.settle(run, signal).await.unwrap();
    }
    assert_eq!(world.finished(run).await.run.state, RunState::Succeeded);
    assert_eq!(world.tasks(run).await[1].output, Some(json!("second")));
}

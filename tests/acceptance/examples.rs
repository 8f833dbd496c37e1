//! Every file in `workflows/` is sound, and the offline examples run to the end they promise.

use std::fs;
use std::path::Path;

use language::{FileKind, SourceFile};
use model::RunState;
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
    [read(FileKind::Workflow, "graphs"), read(FileKind::Task, "tasks")].concat()
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

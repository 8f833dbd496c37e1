//! Definitions and requests for runs, with everything that a test does not care about filled in.

use language::{Definition, FileKind, SourceFile};
use model::message::RunRequested;
use model::{RunId, TenantId, Workflow};
use runtime::{Origin, StartRun};
use serde_json::{Map, Value};
use uuid::Uuid;

/// Compiles workflow files, with the reusable tasks and templates they name.
///
/// # Panics
/// If a file has a problem.
pub fn compile(files: &[(FileKind, &str)]) -> Vec<Definition> {
    let file = |(number, (kind, text)): (usize, &(FileKind, &str))| SourceFile {
        path: format!("file-{number}"),
        kind: *kind,
        text: (*text).to_owned(),
    };
    let compiled = language::compile(&files.iter().enumerate().map(file).collect::<Vec<_>>());
    assert!(compiled.diagnostics.is_empty(), "{:#?}", compiled.diagnostics);
    compiled.definitions
}

/// The definition of a workflow that was written in code. Each call gives a new version.
pub fn definition(workflow: Workflow) -> Definition {
    Definition { workflow, source: String::new(), hash: Uuid::now_v7().to_string() }
}

/// A request of the default tenant's API for a new run without inputs.
pub fn start_run(workflow: &str) -> StartRun {
    let origin = Origin::Api { by: "test".to_owned() };
    StartRun::new(RunId(Uuid::now_v7()), TenantId::DEFAULT, workflow, origin)
}

/// A message that asks for a new run of the default tenant.
pub fn run_requested(workflow: &str, inputs: &Value) -> RunRequested {
    RunRequested {
        run: RunId(Uuid::now_v7()),
        tenant: TenantId::DEFAULT,
        workflow: workflow.to_owned(),
        inputs: inputs.as_object().cloned().unwrap_or_default(),
        logical_date: None,
        labels: Map::new(),
        trigger: "message".to_owned(),
        parent: None,
        priority: 0,
    }
}

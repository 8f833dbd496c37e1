//! `ebb graph`: draws a workflow from its files, without a server.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use language::Compilation;
use model::Workflow;
use serde_json::{Value, json};

use super::{FAILED, validate};
use crate::args::{Graph, Shared};
use crate::files::{self, Definitions};
use crate::output;

pub(super) fn run(shared: &Shared, arguments: &Graph) -> Result<ExitCode> {
    let (definitions, name) = find(&arguments.workflow, &arguments.workflows)?;
    let mut compiled = definitions.compile();
    let found = compiled.definitions.iter().position(|definition| definition.workflow.name == name);
    let Some(at) = found else {
        return not_found(&compiled, &definitions, &name);
    };
    let graph = engine::Graph::compile(compiled.definitions.swap_remove(at).workflow)?;
    if shared.json {
        output::json(&described(graph.workflow()))?;
    } else if arguments.svg {
        output::line(drawing::svg(&graph).trim_end())?;
    } else {
        output::line(drawing::text(&graph).trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The files to read, and the name of the workflow.
pub(super) fn find(path: &Path, folder: &Path) -> Result<(Definitions, String)> {
    if !is_file(path) {
        return Ok((files::read(folder)?, path.display().to_string()));
    }
    let definitions = files::read_all(&[path.to_owned()])?;
    let name = definitions.workflow_names().pop_first();
    let name =
        name.ok_or_else(|| anyhow!("{} is a reusable task or a template, not a workflow", path.display()))?;
    Ok((definitions, name))
}

/// Whether it is a path: names of workflows contain neither dots nor slashes.
pub(super) fn is_file(path: &Path) -> bool {
    path.extension().is_some() || path.components().count() > 1
}

/// Reports that there is no such workflow, or that its file has problems.
pub(super) fn not_found(compiled: &Compilation, definitions: &Definitions, name: &str) -> Result<ExitCode> {
    let names = definitions.workflow_names();
    if !names.contains(name) {
        let names: Vec<String> = names.into_iter().collect();
        bail!("there is no workflow `{name}`; expected one of {}", names.join(", "));
    }
    validate::print_problems(compiled)?;
    Ok(ExitCode::from(FAILED))
}

fn described(workflow: &Workflow) -> Value {
    let tasks: Vec<Value> = workflow
        .tasks
        .iter()
        .map(|task| {
            let child = task.fan_out.as_ref().map(|fan_out| &fan_out.task.kind);
            let mut described = json!({"name": task.name, "type": task.kind, "depends_on": task.depends_on});
            if let Some(child) = child {
                described["child_type"] = json!(child);
            }
            described
        })
        .collect();
    json!({"workflow": workflow.name, "tasks": tasks})
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("graphs")).unwrap();
        let text = "name: one\ntasks: [{name: a, type: noop}]\n";
        fs::write(folder.path().join("graphs/one.yaml"), text).unwrap();
        fs::write(folder.path().join("graphs/bad.yaml"), "name: bad\ntasks: [{name: a, type: nope}]\n")
            .unwrap();
        folder
    }

    fn draw(folder: &Path, workflow: impl AsRef<Path>) -> Result<ExitCode> {
        let shared = Shared { url: None, token: None, tenant: None, data: ".ebb".into(), json: false };
        run(&shared, &Graph { workflow: workflow.as_ref().into(), svg: true, workflows: folder.into() })
    }

    #[test]
    fn a_workflow_is_found_by_name_and_by_file_beside_files_with_problems() {
        let folder = folder();
        assert_eq!(draw(folder.path(), "one").unwrap(), ExitCode::SUCCESS);
        assert_eq!(
            draw(Path::new("none"), folder.path().join("graphs/one.yaml")).unwrap(),
            ExitCode::SUCCESS
        );
    }

    #[test]
    fn a_workflow_with_problems_is_not_drawn() {
        assert_eq!(draw(folder().path(), "bad").unwrap(), ExitCode::from(FAILED));
    }

    #[test]
    fn the_error_of_an_unknown_name_lists_the_known_ones() {
        let error = draw(folder().path(), "on").unwrap_err();
        assert!(error.to_string().ends_with("expected one of bad, one"), "{error}");
    }
}

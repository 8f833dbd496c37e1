//! `ebb graph`: draws a workflow from its files, without a server.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use language::{Compilation, SourceFile};
use model::Workflow;
use serde_json::{Value, json};

use super::{FAILED, validate};
use crate::args::{Graph, Shared};
use crate::{files, output};

pub(super) fn run(shared: &Shared, arguments: &Graph) -> Result<ExitCode> {
    let (files, name) = find(arguments)?;
    let mut compiled = language::compile(&files);
    let found = compiled.definitions.iter().position(|definition| definition.workflow.name == name);
    let Some(at) = found else {
        return not_found(&compiled, &files, &name);
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
fn find(arguments: &Graph) -> Result<(Vec<SourceFile>, String)> {
    let path = &arguments.workflow;
    if !is_file(path) {
        return Ok((files::read(&arguments.workflows)?, path.display().to_string()));
    }
    let files = files::read_all(std::slice::from_ref(path))?;
    let name = files.iter().find_map(files::workflow_name);
    let name =
        name.ok_or_else(|| anyhow!("{} is a reusable task or a template, not a workflow", path.display()))?;
    Ok((files, name))
}

/// Whether it is a path: names of workflows contain neither dots nor slashes.
fn is_file(path: &Path) -> bool {
    path.extension().is_some() || path.components().count() > 1
}

/// Reports that there is no such workflow, or that its file has problems.
fn not_found(compiled: &Compilation, files: &[SourceFile], name: &str) -> Result<ExitCode> {
    let mut names: Vec<String> = files.iter().filter_map(files::workflow_name).collect();
    if !names.iter().any(|known| known == name) {
        names.sort();
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

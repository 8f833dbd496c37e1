//! The files that programs consist of. They lie beside the workflow's file and become part of its version, so that a run
//! keeps the ones that it started with.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use model::{TaskKind, TaskSpec, Workflow};
use serde_json::{Value, json};

use crate::compile::{FileKind, SourceFile};
use crate::diagnostic::Report;
use crate::node::Position;
use crate::schema::format::FUNCTION;
use crate::template::is_template;

/// The maximum size of the files of one task, in bytes.
const MAX_BYTES: usize = 256 * 1024;

/// The scripts that were read with the workflows, by path.
pub(crate) struct Scripts<'f>(BTreeMap<String, &'f str>);

impl<'f> Scripts<'f> {
    /// Those among files that are compiled together; of two with the same path, the first.
    pub(crate) fn of(files: &'f [SourceFile]) -> Self {
        let scripts = files.iter().rev().filter(|file| file.kind == FileKind::Script);
        Self(scripts.map(|script| (normal(&script.path), script.text.as_str())).collect())
    }

    /// Adds to each task the files that it names, of those that were read with the workflow's file. What is not among them
    /// is looked for by the worker. What is too large is reported at `at`.
    pub(crate) fn embed(
        &self,
        workflow: &mut Workflow,
        file: &SourceFile,
        at: &Position,
        report: &mut Report<'_>,
    ) {
        if self.0.is_empty() {
            return;
        }
        let base = base(&file.path);
        for spec in workflow.tasks.iter_mut().flat_map(all_of) {
            if report.is_stopped() {
                return;
            }
            for name in names(spec) {
                let Some(script) = self.0.get(&normal(&join(base, &name))) else { continue };
                if !report.take(script.len(), |_| at.clone()) {
                    return;
                }
                if spec.config["files"].is_null() {
                    spec.config["files"] = json!({});
                }
                if let Value::Object(files) = &mut spec.config["files"] {
                    files.insert(name, (*script).into());
                }
            }
            let texts = spec.config["files"].as_object().into_iter().flat_map(|files| files.values());
            let bytes: usize = texts.filter_map(Value::as_str).map(str::len).sum();
            if bytes > MAX_BYTES {
                let task = &spec.name;
                let message = format!(
                    "the files of task `{task}` have {bytes} bytes, and at most {MAX_BYTES} become part of a version"
                );
                let hint = "put them into a package among its `requirements`, or into the worker's image";
                return report.add(at, message, Some(hint.to_owned()));
            }
        }
    }
}

/// The paths of all files that tasks of a workflow may name. Whether they exist is for the caller to find out.
pub(crate) fn referenced(workflow: &Workflow, file: &SourceFile) -> BTreeSet<String> {
    let base = base(&file.path);
    let mut workflow = workflow.clone();
    let specs = workflow.tasks.iter_mut().flat_map(all_of);
    specs.flat_map(|spec| names(spec)).map(|name| join(base, &name)).collect()
}

/// A task, and the one that it runs for each element of a list.
fn all_of(spec: &mut TaskSpec) -> Vec<&mut TaskSpec> {
    match spec.fan_out.is_some() {
        true => spec.fan_out.iter_mut().map(|fan| &mut *fan.task).collect(),
        false => vec![spec],
    }
}

/// The files that a task names, relative to the folder of workflows.
fn names(spec: &TaskSpec) -> Vec<String> {
    if !matches!(spec.kind, TaskKind::Bash | TaskKind::Python) {
        return Vec::new();
    }
    let text = |name: &str| spec.config.get(name).and_then(Value::as_str).filter(|text| !is_template(text));
    let plain = ["script", "requirements_file"].into_iter().filter_map(text).map(str::to_owned);
    let function = text("function").filter(|function| FUNCTION.problem(function).is_none());
    let module = function.and_then(|function| function.split_once(':')).map(|(module, _)| module);
    plain.chain(module.into_iter().flat_map(modules)).collect()
}

/// The files that a module may consist of: `a.b` is `a/b.py`, in the package `a/__init__.py`, or itself a package.
fn modules(module: &str) -> Vec<String> {
    let path = module.replace('.', "/");
    let packages = path.match_indices('/').map(|(end, _)| format!("{}/__init__.py", &path[..end]));
    packages.chain([format!("{path}.py"), format!("{path}/__init__.py")]).collect()
}

/// The folder of workflows that a workflow's file lies in: the one with the `graphs` that the file is below, at whatever depth.
fn base(path: &str) -> &str {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let graphs = Path::new(folder).ancestors().find(|folder| folder.ends_with("graphs"));
    graphs.and_then(Path::parent).and_then(Path::to_str).unwrap_or(folder)
}

fn join(base: &str, name: &str) -> String {
    if base.is_empty() { name.to_owned() } else { format!("{base}/{name}") }
}

/// A path without `.` in it.
fn normal(path: &str) -> String {
    let absolute = if path.starts_with('/') { "/" } else { "" };
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    format!("{absolute}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_lies_in_the_folder_of_workflows() {
        for (path, folder) in [
            ("workflows/graphs/a.yaml", "workflows"),
            ("graphs/a.yaml", ""),
            ("/x/graphs/a.yaml", "/x"),
            ("workflows/graphs/team/tasks/a.yaml", "workflows"),
            ("body", ""),
            ("x/a.yaml", "x"),
        ] {
            assert_eq!(base(path), folder, "{path}");
        }
        assert_eq!(normal("./a//b/./c.py"), "a/b/c.py");
        assert_eq!(modules("a.b"), ["a/__init__.py", "a/b.py", "a/b/__init__.py"]);
    }
}

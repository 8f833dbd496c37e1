//! Files in, definitions and diagnostics out. One bad file never stops the others.

use std::borrow::Cow;
use std::collections::BTreeMap;

use model::Workflow;
use sha2::{Digest, Sha256};

use crate::Diagnostic;
use crate::blueprint::Blueprints;
use crate::diagnostic::Report;
use crate::library::Library;
use crate::node::{Node, Position};
use crate::read::Word;
use crate::workflow;
use crate::yaml;

/// What a file defines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileKind {
    /// A workflow, from `graphs/`.
    Workflow,
    /// A reusable task, from `tasks/`.
    Task,
    /// A workflow template, from `templates/`.
    Template,
}

/// A file as the caller read it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceFile {
    /// The path as shown to people. If it ends in `.yaml` or `.yml`, the name in the file must be its stem.
    pub path: String,
    /// Whether it defines a workflow, a reusable task or a template.
    pub kind: FileKind,
    /// The content of the file.
    pub text: String,
}

/// A valid workflow and its source.
#[derive(Clone, PartialEq, Debug)]
pub struct Definition {
    /// The workflow, every reference resolved.
    pub workflow: Workflow,
    /// The text of its file.
    pub source: String,
    /// Hexadecimal SHA-256 of the resolved workflow's canonical JSON: the same hash, the same behaviour.
    pub hash: String,
}

/// The result of compiling files together.
#[derive(Clone, PartialEq, Debug)]
pub struct Compilation {
    /// The valid workflows, in the order of their files.
    pub definitions: Vec<Definition>,
    /// Every problem found, by file, line and column.
    pub diagnostics: Vec<Diagnostic>,
}

/// Compiles workflows together with the templates that they extend and the reusable tasks that they refer to.
pub fn compile(files: &[SourceFile]) -> Compilation {
    compile_unless(files, &|| false)
}

/// As [`compile`], until `stop` returns true, which is asked before each file and task. The result is then incomplete.
pub fn compile_unless(files: &[SourceFile], stop: &dyn Fn() -> bool) -> Compilation {
    let mut report = Report::new(files);
    report.stop = Some(stop);
    let definitions = definitions(files, &mut report);
    Compilation { definitions, diagnostics: report.finish() }
}

fn definitions(files: &[SourceFile], report: &mut Report<'_>) -> Vec<Definition> {
    let documents: Vec<Document<'_>> =
        files.iter().enumerate().map_while(|(index, file)| Document::parse(index, file, report)).collect();
    let library = Library::read(&documents, report);
    let blueprints = Blueprints::read(&documents, &library, report);
    let graphs = documents.iter().filter(|document| document.file.kind == FileKind::Workflow);
    let resolved: Vec<Resolved<'_>> =
        graphs.filter_map(|document| Resolved::of(document, &blueprints, report)).collect();
    let mut definitions = Vec::new();
    let mut taken = BTreeMap::new();
    for Resolved { document, root, clean } in &resolved {
        if report.is_stopped() {
            break;
        }
        let before = report.len();
        report.heir = matches!(root, Cow::Owned(_)).then_some(root.at.file);
        if let Some((name, workflow)) = workflow::read(root, &library, report) {
            document.check_name(name, report);
            check_unique(&mut taken, name, report);
            if *clean && report.len() == before {
                definitions.push(define(workflow, document.file));
            }
        }
        report.heir = None;
    }
    definitions
}

/// A workflow's file with everything that it inherits.
struct Resolved<'d> {
    document: &'d Document<'d>,
    root: Cow<'d, Node>,
    /// Whether there was no problem so far.
    clean: bool,
}

impl<'d> Resolved<'d> {
    fn of(document: &'d Document<'d>, blueprints: &Blueprints<'_>, report: &mut Report<'_>) -> Option<Self> {
        if report.is_stopped() {
            return None;
        }
        let before = report.len();
        let root = blueprints.resolve(document.root.as_ref()?, report)?;
        Some(Self { document, root, clean: document.clean && report.len() == before })
    }
}

/// A file and what could be read of it.
pub(crate) struct Document<'f> {
    pub(crate) file: &'f SourceFile,
    pub(crate) root: Option<Node>,
    /// Whether the YAML was valid. If it was not, reading goes on only to find more problems.
    pub(crate) clean: bool,
}

impl<'f> Document<'f> {
    fn parse(index: usize, file: &'f SourceFile, report: &mut Report<'_>) -> Option<Self> {
        if report.is_stopped() {
            return None;
        }
        let (root, findings) = yaml::parse(index, &file.text);
        let clean = findings.is_empty();
        report.extend(findings);
        Some(Self { file, root, clean })
    }

    /// The file's name without folders and extension.
    pub(crate) fn stem(&self) -> &'f str {
        let name = self.file.path.rsplit('/').next().unwrap_or(&self.file.path);
        name.strip_suffix(".yaml").or_else(|| name.strip_suffix(".yml")).unwrap_or(name)
    }

    /// Reports a name that is not the file's.
    pub(crate) fn check_name(&self, name: Word<'_>, report: &mut Report<'_>) {
        let is_file = self.file.path.ends_with(".yaml") || self.file.path.ends_with(".yml");
        if is_file && name.text != self.stem() {
            let message = format!("the name `{}` is not the file's name, `{}`", name.text, self.stem());
            report.add(name.at, message, Some("rename the file, or change the name".to_owned()));
        }
    }
}

fn check_unique<'n>(taken: &mut BTreeMap<&'n str, &'n Position>, name: Word<'n>, report: &mut Report<'_>) {
    match taken.get(name.text) {
        Some(first) => {
            let message =
                format!("the workflow `{}` is already defined in {}", name.text, report.location(first));
            report.add(name.at, message, Some("rename one of the two".to_owned()));
        }
        None => drop(taken.insert(name.text, name.at)),
    }
}

fn define(workflow: Workflow, file: &SourceFile) -> Definition {
    let mut canonical = serde_json::to_value(&workflow).expect("a workflow's keys are texts");
    canonical.sort_all_objects();
    let digest = Sha256::digest(canonical.to_string());
    let hash = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Definition { workflow, source: file.text.clone(), hash }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The letters that suggestions compare for a file of `size` mistakes.
    fn compared(size: usize, file: impl Fn(usize) -> String) -> usize {
        let text = format!("name: a\ntasks:\n- {{name: x, type: noop}}\n{}", file(size));
        let files = [SourceFile { path: "inline".to_owned(), kind: FileKind::Workflow, text }];
        let mut report = Report::new(&files);
        definitions(&files, &mut report);
        assert!(report.len() >= size, "there are {} problems", report.len());
        report.budget.compared.get()
    }

    #[test]
    fn the_work_of_suggestions_grows_no_faster_than_the_file() {
        let each = |size: usize, line: fn(usize) -> String| (0..size).map(line).collect::<String>();
        let fields = |size| each(size, |number| format!("timeout_secnds_{number}: 1\n"));
        let inputs = |size| {
            "inputs:\n".to_owned()
                + &each(size, |number| format!("  a{number}: {{type: string, defualt: 1}}\n"))
        };
        let tasks =
            |size| each(size, |number| format!("- {{name: t{number}, type: nop, depends_on: [tx]}}\n"));
        for file in [&fields as &dyn Fn(usize) -> String, &inputs, &tasks] {
            let (small, large) = (compared(500, file), compared(2_000, file));
            assert!(large <= 5 * small, "{small} for 500 mistakes, {large} for 2,000");
        }
    }
}

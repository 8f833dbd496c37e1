//! Files in, definitions and diagnostics out. One bad file never stops the others.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use model::{Queues, Workflow};
use sha2::{Digest, Sha256};

use crate::Diagnostic;
use crate::allowance;
use crate::blueprint::Blueprints;
use crate::custom_type::CustomTypes;
use crate::diagnostic::Report;
use crate::library::Library;
use crate::node::Node;
use crate::queue::KnownQueues;
use crate::read::Word;
use crate::scripts::{self, Scripts};
use crate::types::TaskType;
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
    /// A custom task type, from `types/`.
    Type,
    /// A queue, from `queues/`.
    Queue,
    /// A file that a program consists of, such as a script. It is not YAML.
    Script,
}

/// A file as the caller read it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceFile {
    /// The path as shown to people. If it ends in `.yaml` or `.yml`, the name in the file must be its stem.
    pub path: String,
    /// What it defines, or that it is part of a program.
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

/// Compiles workflows together with the templates that they extend, the reusable tasks that they refer to, and the custom
/// types and queues of their tasks.
pub fn compile(files: &[SourceFile]) -> Compilation {
    compile_for(&Queues::default(), files, &|| false)
}

/// The custom task types that files declare, or everything that is wrong with those files.
pub(crate) fn custom_types(files: &[SourceFile]) -> Result<Vec<TaskType>, Vec<Diagnostic>> {
    let mut report = Report::new(files);
    let only_types = files.iter().enumerate().filter(|(_, file)| file.kind == FileKind::Type);
    let documents: Vec<Document<'_>> =
        only_types.map_while(|(index, file)| Document::parse(index, file, &mut report)).collect();
    let types = CustomTypes::read(&documents, &KnownQueues::default(), &mut report).task_types();
    let diagnostics = report.finish();
    if diagnostics.is_empty() { Ok(types) } else { Err(diagnostics) }
}

/// As [`compile`], for an installation that has these queues, and until `stop` returns true, which is asked before each file
/// and task. The result is then incomplete.
pub fn compile_for(queues: &Queues, files: &[SourceFile], stop: &dyn Fn() -> bool) -> Compilation {
    let mut report = Report::new(files);
    report.stop = Some(stop);
    let definitions = definitions(files, Some(queues), &mut report);
    Compilation { definitions, diagnostics: report.finish() }
}

/// The paths of the files that programs of these workflows may consist of (scripts, modules of functions, requirements files),
/// each with the names of the workflows. They are relative to where the paths of the workflows are, and need not exist.
pub fn referenced_files(files: &[SourceFile]) -> BTreeMap<String, BTreeSet<String>> {
    let mut report = Report::new(files);
    let mut referenced: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    // Which queues exist, the installation decides when the workflows are registered.
    for Definition { workflow, source, .. } in definitions(files, None, &mut report) {
        let is_its = |file: &&SourceFile| file.kind == FileKind::Workflow && file.text == source;
        for path in files.iter().filter(is_its).flat_map(|file| scripts::referenced(&workflow, file)) {
            referenced.entry(path).or_default().insert(workflow.name.clone());
        }
    }
    referenced
}

fn definitions(files: &[SourceFile], queues: Option<&Queues>, report: &mut Report<'_>) -> Vec<Definition> {
    let documents: Vec<Document<'_>> =
        files.iter().enumerate().map_while(|(index, file)| Document::parse(index, file, report)).collect();
    let library = Library::read(&documents, queues, report);
    let blueprints = Blueprints::read(&documents, &library, report);
    let graphs = documents.iter().filter(|document| document.file.kind == FileKind::Workflow);
    let mut context = Context { library, blueprints, scripts: Scripts::of(files), taken: BTreeMap::new() };
    // One after the other, since a short file may inherit much.
    graphs
        .map_while(|document| (!report.is_stopped()).then(|| context.definition(document, report)))
        .flatten()
        .collect()
}

/// What the workflows of a compilation share.
struct Context<'n> {
    library: Library<'n>,
    blueprints: Blueprints<'n>,
    scripts: Scripts<'n>,
    /// The names of workflows so far, and where they are defined.
    taken: BTreeMap<String, String>,
}

impl Context<'_> {
    /// What a workflow's file defines, unless there is a problem.
    fn definition(&mut self, document: &Document<'_>, report: &mut Report<'_>) -> Option<Definition> {
        let before = report.len();
        report.allowance.begin();
        let root = self.blueprints.resolve(document.root.as_ref()?, report)?;
        report.heir = matches!(root, Cow::Owned(_)).then_some(root.at.file);
        let read = workflow::read(&root, &self.library, report);
        let workflow = read.map(|(name, mut workflow)| {
            document.check_name(name, report);
            check_unique(&mut self.taken, name, report);
            self.scripts.embed(&mut workflow, document.file, name.at, report);
            workflow
        });
        report.heir = None;
        let is_valid = document.clean && report.len() == before;
        workflow.filter(|_| is_valid).map(|workflow| define(workflow, document.file))
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
        if file.kind == FileKind::Script {
            return Some(Self { file, root: None, clean: true });
        }
        let (root, findings) = yaml::parse(index, &file.text);
        let mut clean = findings.is_empty();
        report.extend(findings);
        report.allowance.begin();
        let root = root.filter(|root| {
            let repeated = allowance::texts(root).saturating_sub(file.text.len());
            let fits = report.take(repeated, |_| root.at.clone());
            clean &= fits;
            fits
        });
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

fn check_unique(taken: &mut BTreeMap<String, String>, name: Word<'_>, report: &mut Report<'_>) {
    match taken.get(name.text) {
        Some(first) => {
            let message = format!("the workflow `{}` is already defined in {first}", name.text);
            report.add(name.at, message, Some("rename one of the two".to_owned()));
        }
        None => drop(taken.insert(name.text.to_owned(), report.location(name.at))),
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
        definitions(&files, Some(&Queues::default()), &mut report);
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

//! Workflow files on disk: below `graphs` are workflows, below `tasks` the tasks that they reuse, below `templates` the
//! workflow templates that they extend, below `types` the custom task types, below `queues` the queues, and below `tests` tests
//! of the workflows. Scripts and other files of programs lie anywhere in the folder, and are read if a workflow names them.

mod listing;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use language::{Compilation, Diagnostic, FileKind, SourceFile};
use workflow_test::TestFile;

use listing::{Listing, exists};

const GRAPHS: &str = "graphs";
const TASKS: &str = "tasks";
const TESTS: &str = "tests";
const TEMPLATES: &str = "templates";
const TYPES: &str = "types";
const QUEUES: &str = "queues";

/// The folders with definitions, and what the files in each define.
const KINDS: [(&str, FileKind); 5] = [
    (GRAPHS, FileKind::Workflow),
    (TASKS, FileKind::Task),
    (TEMPLATES, FileKind::Template),
    (TYPES, FileKind::Type),
    (QUEUES, FileKind::Queue),
];

/// Definitions as they were read. One file that cannot be read is a problem and keeps no other from being compiled.
#[derive(Default)]
pub struct Definitions {
    /// Every file that could be read.
    pub files: Vec<SourceFile>,
    /// What could not: files, and folders that cannot be listed.
    unreadable: Vec<Diagnostic>,
    /// Workflows whose file or script cannot be read. Without the script, they would be others.
    incomplete: BTreeSet<String>,
}

impl Definitions {
    /// Compiles the files. The problems include what cannot be read.
    pub fn compile(&self) -> Compilation {
        let Compilation { mut definitions, diagnostics } = language::compile(&self.files);
        definitions.retain(|definition| !self.incomplete.contains(&definition.workflow.name));
        let diagnostics = self.unreadable.iter().cloned().chain(diagnostics).collect();
        Compilation { definitions, diagnostics }
    }

    /// What cannot be read.
    pub fn unreadable(&self) -> &[Diagnostic] {
        &self.unreadable
    }

    /// The path of each workflow that could be read by its name, whether it is valid or not.
    pub fn workflows(&self) -> BTreeMap<String, String> {
        let workflows = self.files.iter().filter(|file| file.kind == FileKind::Workflow);
        workflows.filter_map(|file| Some((name_of(&file.path)?, file.path.clone()))).collect()
    }

    /// The names of all workflows, of those that cannot be read too.
    pub fn workflow_names(&self) -> BTreeSet<String> {
        self.workflows().into_keys().chain(self.incomplete.iter().cloned()).collect()
    }

    /// Whether the file at a path may still be there, because it or a folder above it cannot be read.
    pub fn hides(&self, path: &str) -> bool {
        self.unreadable.iter().any(|problem| Path::new(path).starts_with(&problem.file))
    }

    /// The definitions of some kinds in a folder of workflows.
    fn of_kinds(folder: &Path, wanted: impl Fn(FileKind) -> bool) -> Self {
        let mut all = Self::default();
        for (name, kind) in KINDS.into_iter().filter(|(_, kind)| wanted(*kind)) {
            all.add(Listing::below(&folder.join(name)), kind);
        }
        all
    }

    fn add(&mut self, listing: Listing, kind: FileKind) {
        if kind == FileKind::Workflow {
            let files = listing.unreadable.iter().map(|problem| &problem.file);
            self.incomplete
                .extend(files.filter(|file| !Path::new(file).is_dir()).filter_map(|file| name_of(file)));
        }
        self.files.extend(listing.texts.into_iter().map(|(path, text)| SourceFile { path, kind, text }));
        self.unreadable.extend(listing.unreadable);
    }

    /// Adds the files that programs of the workflows consist of, of those that exist in the folder.
    fn add_scripts(&mut self, folder: &Path) {
        for (path, workflows) in language::referenced_files(&self.files) {
            let listing = Listing::of_script(Path::new(&path), folder);
            if !listing.unreadable.is_empty() {
                self.incomplete.extend(workflows);
            }
            self.add(listing, FileKind::Script);
        }
    }

    fn extend(&mut self, other: Self) {
        self.files.extend(other.files);
        self.unreadable.extend(other.unreadable);
        self.incomplete.extend(other.incomplete);
    }
}

/// All definitions of a folder of workflows, by kind and path.
pub fn read(folder: &Path) -> Result<Definitions> {
    if !exists(&folder.join(GRAPHS)) {
        bail!("{} has no folder `{GRAPHS}` with workflows", folder.display());
    }
    let mut all = Definitions::of_kinds(folder, |_| true);
    all.add_scripts(folder);
    Ok(all)
}

/// Reads folders of workflows and single files; a workflow also brings the tasks, templates, types and queues of its folder.
pub fn read_all(paths: &[PathBuf]) -> Result<Definitions> {
    let mut all = Definitions::default();
    for path in paths {
        all.extend(if path.is_dir() { read(path)? } else { read_with_shared(path)? });
    }
    all.files.sort_by(|one, other| one.path.cmp(&other.path));
    all.files.dedup_by(|one, other| one.path == other.path);
    all.unreadable.sort();
    all.unreadable.dedup();
    Ok(all)
}

/// The custom task types of a folder.
pub fn read_types(folder: &Path) -> Definitions {
    Definitions::of_kinds(folder, |kind| kind == FileKind::Type)
}

/// The test files of a folder of workflows, and the problems of those that cannot be read.
#[derive(Default)]
pub struct Tests {
    /// Every test file that could be read, by path.
    pub files: Vec<TestFile>,
    /// Files, and folders that cannot be listed.
    pub unreadable: Vec<Diagnostic>,
}

/// The test files by the folder of workflows they test: all of a folder, or single files.
pub fn read_tests(paths: &[PathBuf]) -> Result<BTreeMap<PathBuf, Tests>> {
    let mut folders: BTreeMap<PathBuf, Tests> = BTreeMap::new();
    for path in paths {
        let (folder, listing) = match path.is_dir() {
            true => (path.clone(), Listing::below(&path.join(TESTS))),
            false => (tested_by(path)?, read_single(path)?),
        };
        let tests = folders.entry(folder).or_default();
        tests.files.extend(listing.texts.into_iter().map(|(path, text)| TestFile { path, text }));
        tests.unreadable.extend(listing.unreadable);
    }
    for tests in folders.values_mut() {
        tests.files.sort_by(|one, other| one.path.cmp(&other.path));
        tests.files.dedup_by(|one, other| one.path == other.path);
        tests.unreadable.sort();
        tests.unreadable.dedup();
    }
    Ok(folders)
}

/// The folder of workflows that a file tests.
fn tested_by(path: &Path) -> Result<PathBuf> {
    let mut folders = path.ancestors().skip(1);
    match folders.find(|folder| folder.ends_with(TESTS)).and_then(Path::parent) {
        Some(folder) => Ok(folder.to_owned()),
        None => bail!("{} is not in a folder `{TESTS}` next to `{GRAPHS}`", path.display()),
    }
}

/// The name of the workflow that a file must define: the file's own.
fn name_of(path: &str) -> Option<String> {
    Some(Path::new(path).file_stem()?.to_str()?.to_owned())
}

/// Reads a file that a person named, so it must exist.
fn read_single(path: &Path) -> Result<Listing> {
    if !exists(path) {
        bail!("cannot read {}: there is no such file", path.display());
    }
    let mut listing = Listing::default();
    listing.read(path);
    Ok(listing)
}

fn read_with_shared(path: &Path) -> Result<Definitions> {
    let (place, listing) = (kind_and_folder(path), read_single(path)?);
    let (kind, folder) = place.unwrap_or((FileKind::Workflow, Path::new("")));
    let mut all = Definitions::default();
    all.add(listing, kind);
    if place.is_none() {
        return Ok(all);
    }
    all.extend(Definitions::of_kinds(folder, |other| match kind {
        FileKind::Workflow | FileKind::Template => other != FileKind::Workflow,
        FileKind::Task => matches!(other, FileKind::Type | FileKind::Queue),
        FileKind::Type => other == FileKind::Queue,
        FileKind::Queue | FileKind::Script => false,
    }));
    if matches!(kind, FileKind::Workflow | FileKind::Template) {
        all.add_scripts(if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    }
    Ok(all)
}

/// What a file defines and the folder of workflows it belongs to, by the folders that it is in: the nearest one that lies beside
/// a `graphs`, or else the file's own.
fn kind_and_folder<'p>(path: &'p Path) -> Option<(FileKind, &'p Path)> {
    let place = |folder: &'p Path| Some((kind_of(folder)?, folder.parent()?));
    let mut above = path.ancestors().skip(1).filter_map(place);
    let beside_graphs = above.find(|(_, base)| base.join(GRAPHS).is_dir());
    beside_graphs.or_else(|| path.parent().and_then(place))
}

fn kind_of(folder: &Path) -> Option<FileKind> {
    KINDS.into_iter().find(|(name, _)| folder.ends_with(name)).map(|(_, kind)| kind)
}

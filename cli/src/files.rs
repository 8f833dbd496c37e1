//! Workflow files on disk: `graphs/*.yaml` are workflows, `tasks/*.yaml` the tasks that they reuse, `templates/*.yaml`
//! the workflow templates that they extend, and `tests/*.yaml` are tests of the workflows.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use language::{FileKind, SourceFile};
use workflow_test::TestFile;

const GRAPHS: &str = "graphs";
const TASKS: &str = "tasks";
const TESTS: &str = "tests";
const TEMPLATES: &str = "templates";

/// All files of a folder of workflows, in the order of their names.
pub fn read(folder: &Path) -> Result<Vec<SourceFile>> {
    if !folder.join(GRAPHS).is_dir() {
        bail!("{} has no folder `{GRAPHS}` with workflows", folder.display());
    }
    let mut files = read_kind(&folder.join(GRAPHS), FileKind::Workflow)?;
    files.extend(read_shared(folder)?);
    Ok(files)
}

/// Reads folders of workflows and single files; a workflow also brings the tasks and templates of its folder.
pub fn read_all(paths: &[PathBuf]) -> Result<Vec<SourceFile>> {
    let mut files: Vec<SourceFile> = Vec::new();
    for path in paths {
        let more = if path.is_dir() { read(path)? } else { read_with_shared(path)? };
        files.extend(more);
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files.dedup_by(|one, other| one.path == other.path);
    Ok(files)
}

/// The test files by the folder of workflows they test: all of a folder, or single files.
pub fn read_tests(paths: &[PathBuf]) -> Result<BTreeMap<PathBuf, Vec<TestFile>>> {
    let mut folders: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for path in paths {
        let (folder, tests) = match path.is_dir() {
            true => (path.clone(), list(&path.join(TESTS))?),
            false => (tested_by(path)?, vec![path.clone()]),
        };
        folders.entry(folder).or_default().extend(tests);
    }
    let read = |(folder, mut paths): (PathBuf, Vec<PathBuf>)| {
        paths.sort();
        paths.dedup();
        let read_test =
            |path: &PathBuf| Ok(TestFile { path: path.display().to_string(), text: read_text(path)? });
        Ok((folder, paths.iter().map(read_test).collect::<Result<_>>()?))
    };
    folders.into_iter().map(read).collect()
}

/// The folder of workflows that a file tests.
fn tested_by(path: &Path) -> Result<PathBuf> {
    match path.parent().filter(|folder| folder.ends_with(TESTS)) {
        Some(folder) => Ok(folder.parent().map_or_else(PathBuf::new, Path::to_owned)),
        None => {
            bail!("{} is not in a folder `{TESTS}` next to `{GRAPHS}`", path.display())
        }
    }
}

/// The name of the workflow that a file must define: the file's own; none for a reusable task or a template.
pub fn workflow_name(file: &SourceFile) -> Option<String> {
    let stem = Path::new(&file.path).file_stem()?.to_str()?;
    (file.kind == FileKind::Workflow).then(|| stem.to_owned())
}

fn read_with_shared(path: &Path) -> Result<Vec<SourceFile>> {
    let folder = path.parent().unwrap_or(Path::new(""));
    if folder.ends_with(TASKS) {
        return Ok(vec![read_file(path, FileKind::Task)?]);
    }
    let is_template = folder.ends_with(TEMPLATES);
    let kind = if is_template { FileKind::Template } else { FileKind::Workflow };
    let mut files = vec![read_file(path, kind)?];
    if is_template || folder.ends_with(GRAPHS) {
        files.extend(read_shared(folder.parent().unwrap_or(Path::new("")))?);
    }
    Ok(files)
}

/// The reusable tasks and templates of a folder.
fn read_shared(folder: &Path) -> Result<Vec<SourceFile>> {
    let tasks = read_kind(&folder.join(TASKS), FileKind::Task)?;
    Ok([tasks, read_kind(&folder.join(TEMPLATES), FileKind::Template)?].concat())
}

fn read_kind(folder: &Path, kind: FileKind) -> Result<Vec<SourceFile>> {
    list(folder)?.iter().map(|path| read_file(path, kind)).collect()
}

/// The YAML files of a folder by name; none if the folder does not exist.
fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml"));
    paths.sort();
    Ok(paths)
}

fn read_file(path: &Path, kind: FileKind) -> Result<SourceFile> {
    Ok(SourceFile { path: path.display().to_string(), kind, text: read_text(path)? })
}

fn read_text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: (&str, FileKind) = ("t", FileKind::Task);
    const TEMPLATE: (&str, FileKind) = ("base", FileKind::Template);

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("graphs/b.yaml", "b"),
            ("graphs/a.yml", "a"),
            ("graphs/notes.md", ""),
            ("tasks/t.yaml", "t"),
            ("templates/base.yaml", "base"),
        ] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn texts(files: &[SourceFile]) -> Vec<(&str, FileKind)> {
        files.iter().map(|file| (file.text.as_str(), file.kind)).collect()
    }

    #[test]
    fn a_folder_gives_its_yaml_files_by_name() {
        let files = read(folder().path()).unwrap();
        assert_eq!(texts(&files), [("a", FileKind::Workflow), ("b", FileKind::Workflow), TASK, TEMPLATE]);
    }

    #[test]
    fn a_single_workflow_or_template_brings_the_files_it_may_use() {
        let folder = folder();
        let files = read_all(&[folder.path().join("graphs/b.yaml")]).unwrap();
        assert_eq!(texts(&files), [("b", FileKind::Workflow), TASK, TEMPLATE]);
        let files = read_all(&[folder.path().join("templates/base.yaml")]).unwrap();
        assert_eq!(texts(&files), [TASK, TEMPLATE]);
    }

    #[test]
    fn a_file_that_is_listed_twice_is_read_once() {
        let folder = folder();
        let files = read_all(&[folder.path().into(), folder.path().join("graphs/b.yaml")]).unwrap();
        assert_eq!(files.len(), 4);
    }

    #[test]
    fn files_of_tests_belong_to_the_folder_that_they_test() {
        let folder = folder();
        let test = folder.path().join("tests/b.yaml");
        fs::create_dir_all(test.parent().unwrap()).unwrap();
        fs::write(&test, "test").unwrap();
        assert_eq!(read(folder.path()).unwrap().len(), 4);
        for path in [folder.path().to_owned(), test.clone()] {
            let tests = read_tests(&[path, test.clone()]).unwrap();
            assert_eq!(tests.into_keys().collect::<Vec<_>>(), [folder.path()]);
        }
        assert!(read_tests(&[folder.path().join("graphs/b.yaml")]).is_err());
    }

    #[test]
    fn a_folder_without_graphs_and_a_missing_file_are_errors() {
        let empty = tempfile::tempdir().unwrap();
        assert!(read(empty.path()).is_err());
        assert!(read_all(&[empty.path().join("none.yaml")]).is_err());
    }
}

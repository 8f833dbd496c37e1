use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::thread;

use rustix::process::{Uid, geteuid};
use rustix::thread::set_thread_res_uid;

use super::*;

const TASK: (&str, FileKind) = ("t", FileKind::Task);
const TEMPLATE: (&str, FileKind) = ("base", FileKind::Template);
const TYPE: (&str, FileKind) = ("a.b", FileKind::Type);

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("graphs/b.yaml", "b"),
        ("graphs/a.yml", "a"),
        ("graphs/notes.md", ""),
        ("tasks/t.yaml", "t"),
        ("templates/base.yaml", "base"),
        ("types/a.b.yaml", "a.b"),
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
    let files = read(folder().path()).unwrap().files;
    let workflows = [("a", FileKind::Workflow), ("b", FileKind::Workflow)];
    assert_eq!(texts(&files), [workflows[0], workflows[1], TASK, TEMPLATE, TYPE]);
}

#[test]
fn a_single_workflow_or_template_brings_the_files_it_may_use() {
    let folder = folder();
    let files = read_all(&[folder.path().join("graphs/b.yaml")]).unwrap().files;
    assert_eq!(texts(&files), [("b", FileKind::Workflow), TASK, TEMPLATE, TYPE]);
    let files = read_all(&[folder.path().join("templates/base.yaml")]).unwrap().files;
    assert_eq!(texts(&files), [TASK, TEMPLATE, TYPE]);
    let files = read_all(&[folder.path().join("tasks/t.yaml")]).unwrap().files;
    assert_eq!(texts(&files), [TASK, TYPE], "a reusable task may be of a custom type");
}

#[test]
fn a_file_that_is_listed_twice_is_read_once() {
    let folder = folder();
    let all = read_all(&[folder.path().into(), folder.path().join("graphs/b.yaml")]).unwrap();
    assert_eq!(all.files.len(), 5);
}

#[test]
fn files_of_tests_belong_to_the_folder_that_they_test() {
    let folder = folder();
    let test = folder.path().join("tests/b.yaml");
    fs::create_dir_all(test.parent().unwrap()).unwrap();
    fs::write(&test, "test").unwrap();
    assert_eq!(read(folder.path()).unwrap().files.len(), 5);
    for path in [folder.path().to_owned(), test.clone()] {
        let tests = read_tests(&[path, test.clone()]).unwrap();
        assert_eq!(tests.into_keys().collect::<Vec<_>>(), [folder.path()]);
    }
    assert!(read_tests(&[folder.path().join("graphs/b.yaml")]).is_err());
}

#[test]
fn files_that_programs_name_are_read_and_nothing_outside_the_folder() {
    let folder = folder();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.py"), "secret").unwrap();
    let (root, scripts) = (folder.path(), folder.path().join("scripts"));
    fs::create_dir_all(&scripts).unwrap();
    fs::write(scripts.join("load.py"), "print(1)").unwrap();
    fs::write(root.join("report.py"), "def build(): pass").unwrap();
    symlink(outside.path().join("secret.py"), root.join("link.py")).unwrap();
    let task = |name: &str, config: &str| format!("- {{name: {name}, type: python, config: {{{config}}}}}\n");
    let tasks = [
        task("one", "script: scripts/load.py"),
        task("two", "function: 'report:build'"),
        task("three", "script: link.py"),
        task("four", "script: missing.py"),
    ];
    fs::write(root.join("graphs/b.yaml"), format!("name: b\ntasks:\n{}", tasks.concat())).unwrap();
    for all in [read(root).unwrap(), read_all(&[root.join("graphs/b.yaml")]).unwrap()] {
        let scripts: Vec<_> = all.files.iter().filter(|file| file.kind == FileKind::Script).collect();
        let texts: Vec<_> = scripts.iter().map(|script| script.text.as_str()).collect();
        assert_eq!(texts, ["def build(): pass", "print(1)"]);
    }
    let before = read(root).unwrap().compile();
    let definition = |compiled: &language::Compilation| compiled.definitions[0].clone();
    let files = &definition(&before).workflow.tasks[0].config["files"];
    assert_eq!(files, &serde_json::json!({"scripts/load.py": "print(1)"}));
    fs::write(scripts.join("load.py"), "print(2)").unwrap();
    let after = read(root).unwrap().compile();
    assert_ne!(definition(&before).hash, definition(&after).hash, "a changed script is a new version");
    assert_eq!(definition(&before).source, definition(&after).source);
}

/// A folder with the workflows `one` and `team/two`.
fn nested() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (place, name) in [("graphs", "one"), ("graphs/team", "two")] {
        fs::create_dir_all(folder.path().join(place)).unwrap();
        let text = format!("name: {name}\ntasks: [{{name: a, type: python, config: {{script: a.py}}}}]\n");
        fs::write(folder.path().join(format!("{place}/{name}.yaml")), text).unwrap();
    }
    fs::write(folder.path().join("a.py"), "print(1)").unwrap();
    folder
}

fn compiled(folder: &Path) -> (Vec<String>, Vec<String>) {
    names_and_problems(folder, &read(folder).unwrap())
}

/// The names of the valid workflows, and what is wrong with the others.
fn names_and_problems(folder: &Path, read: &Definitions) -> (Vec<String>, Vec<String>) {
    let Compilation { definitions, diagnostics } = read.compile();
    let names = definitions.into_iter().map(|definition| definition.workflow.name).collect();
    let problem = |problem: Diagnostic| {
        let path = Path::new(&problem.file).strip_prefix(folder).unwrap().display().to_string();
        format!("{path} {}", problem.message)
    };
    (names, diagnostics.into_iter().map(problem).collect())
}

#[test]
fn nested_folders_are_read_and_their_workflows_use_the_same_shared_files() {
    let folder = nested();
    // A link back must not make it endless.
    symlink(folder.path().join("graphs"), folder.path().join("graphs/team/again")).unwrap();
    fs::create_dir_all(folder.path().join("tests/team")).unwrap();
    fs::write(folder.path().join("tests/team/two.yaml"), "workflow: two\n").unwrap();
    assert_eq!(compiled(folder.path()), (vec!["one".to_owned(), "two".into()], vec![]));
    for all in [read(folder.path()), read_all(&[folder.path().join("graphs/team/two.yaml")])] {
        let compiled = all.unwrap().compile();
        let two = compiled.definitions.iter().find(|definition| definition.workflow.name == "two").unwrap();
        let files = &two.workflow.tasks[0].config["files"];
        assert_eq!(files, &serde_json::json!({"a.py": "print(1)"}), "scripts lie beside `graphs`");
    }
    for path in [folder.path().to_owned(), folder.path().join("tests/team/two.yaml")] {
        let tests = read_tests(&[path]).unwrap();
        assert_eq!(tests.into_keys().collect::<Vec<_>>(), [folder.path()]);
    }
}

#[test]
fn hidden_backup_and_lock_files_are_no_definitions() {
    let folder = nested();
    let graphs = folder.path().join("graphs");
    for name in [".a.yaml", "#a.yaml", "#a.yaml#", "a.yaml~", "~a.yaml", ".hidden/a.yaml", "old~/a.yaml"] {
        fs::create_dir_all(graphs.join(name).parent().unwrap()).unwrap();
        fs::write(graphs.join(name), "not: a workflow").unwrap();
    }
    symlink("me@host.1:1", graphs.join(".#a.yaml")).unwrap();
    assert_eq!(compiled(folder.path()), (vec!["one".to_owned(), "two".into()], vec![]));
}

#[test]
fn what_cannot_be_read_is_a_problem_and_everything_else_is_read() {
    let folder = nested();
    let graphs = folder.path().join("graphs");
    fs::write(graphs.join("text.yaml"), b"name: \xff").unwrap();
    fs::create_dir(graphs.join("folder.yaml")).unwrap();
    symlink("nowhere", graphs.join("link.yaml")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        graphs.join("pipe.yaml"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    fs::write(folder.path().join("types"), "a file").unwrap();
    let (names, problems) = compiled(folder.path());
    assert_eq!(names, ["one", "two"]);
    let expected = [
        "graphs/folder.yaml cannot be read: it is not a regular file",
        "graphs/link.yaml cannot be read: it is a link to nothing",
        "graphs/pipe.yaml cannot be read: it is not a regular file",
        "graphs/text.yaml cannot be read: it is not UTF-8 text",
        "types cannot be read: Not a directory (os error 20)",
    ];
    assert_eq!(problems, expected);
    let all = read(folder.path()).unwrap();
    let path = |name: &str| graphs.join(name).display().to_string();
    assert!(all.hides(&path("link.yaml")) && !all.hides(&path("one.yaml")) && !all.hides(&path("gone.yaml")));
    let names = all.workflow_names();
    assert!(names.contains("text") && !names.contains("folder"), "only a file may be a workflow: {names:?}");
}

fn permit(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Reads a folder as a user whom permissions stop; they do not stop root.
fn read_as_nobody(folder: &Path) -> Definitions {
    let read = || {
        if geteuid().is_root() {
            let nobody = Uid::from_raw(65_534);
            // Only this thread changes its user.
            set_thread_res_uid(nobody, nobody, nobody).unwrap();
        }
        read(folder).unwrap()
    };
    thread::scope(|scope| scope.spawn(read).join().unwrap())
}

#[test]
fn what_access_is_denied_to_is_a_problem_and_not_gone() {
    let folder = nested();
    permit(folder.path(), 0o755);
    let (graphs, scripts) = (folder.path().join("graphs"), folder.path().join("scripts"));
    let script = "{name: a, type: python, config: {script: scripts/b.py}}";
    fs::write(graphs.join("scripted.yaml"), format!("name: scripted\ntasks: [{script}]\n")).unwrap();
    fs::create_dir(&scripts).unwrap();
    fs::write(scripts.join("b.py"), "print(2)").unwrap();
    // A workflow with the name of a folder.
    fs::write(graphs.join("team.yaml"), "name: team\ntasks: [{name: a, type: noop}]\n").unwrap();
    let denied = |path: &str| format!("{path} cannot be read: Permission denied (os error 13)");
    let hides_two = |all: &Definitions| all.hides(&graphs.join("team/two.yaml").display().to_string());

    permit(&graphs.join("team"), 0o000);
    permit(&scripts, 0o000);
    let all = read_as_nobody(folder.path());
    permit(&graphs.join("team"), 0o755);
    permit(&scripts, 0o755);
    let (names, problems) = names_and_problems(folder.path(), &all);
    assert_eq!((names, hides_two(&all)), (vec!["one".to_owned(), "team".into()], true));
    assert_eq!(problems, ["graphs/team", "scripts/b.py"].map(denied));

    // The names of its entries are known, and nothing else about them.
    permit(&graphs, 0o444);
    let all = read_as_nobody(folder.path());
    permit(&graphs, 0o000);
    let unlisted = read_as_nobody(folder.path());
    permit(&graphs, 0o755);
    let (names, problems) = names_and_problems(folder.path(), &all);
    assert_eq!((names, hides_two(&all)), (vec![], true));
    let entries = ["graphs/one.yaml", "graphs/scripted.yaml", "graphs/team", "graphs/team.yaml"];
    assert_eq!(problems, entries.map(denied));
    assert_eq!(names_and_problems(folder.path(), &unlisted), (vec![], vec![denied("graphs")]));
    assert!(hides_two(&unlisted));
}

#[test]
fn a_workflow_whose_script_cannot_be_read_is_not_compiled_without_it() {
    let folder = nested();
    let other = "name: three\ntasks: [{name: a, type: noop}]\n";
    fs::write(folder.path().join("graphs/three.yaml"), other).unwrap();
    fs::write(folder.path().join("a.py"), b"\xff").unwrap();
    let problems = vec!["a.py cannot be read: it is not UTF-8 text".to_owned()];
    assert_eq!(compiled(folder.path()), (vec!["three".to_owned()], problems));
}

#[test]
fn a_folder_without_graphs_and_a_missing_file_are_errors() {
    let empty = tempfile::tempdir().unwrap();
    assert!(read(empty.path()).is_err());
    assert!(read_all(&[empty.path().join("none.yaml")]).is_err());
}

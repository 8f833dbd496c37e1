//! Examples whose tasks need workers, run as the guides say.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::project::{Process, Project, printed, shared_folder};

const GUIDE: &str = include_str!("../../../docs/src/guides/custom-task-types.md");

/// The folder that the guide lets tasks share.
const FOLDER: &str = "/tmp/rasters";

/// A project with all examples, and a folder that their tasks share.
fn examples() -> (Project, TempDir) {
    let (project, shared) = (Project::new(), shared_folder());
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workflows");
    copy(&examples, &project.path().join("workflows"));
    copy(&examples.join("rasters"), shared.path());
    fs::create_dir(project.path().join("bin")).unwrap();
    symlink(env!("CARGO_BIN_EXE_ebb"), project.path().join("bin/ebb")).unwrap();
    (project, shared)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The commands of the guide that begin with these words.
fn documented(beginning: &str) -> &'static str {
    let blocks = GUIDE.split("```").filter_map(|block| block.strip_prefix("sh\n"));
    blocks.into_iter().find(|block| block.starts_with(beginning)).unwrap()
}

/// Starts the worker of the guide, with the folder of the test, however full the machine is.
fn worker(project: &Project, shared: &Path) -> Process {
    let commands = documented("EBB_TASK_WRITABLE=").replace(FOLDER, shared.to_str().unwrap());
    // The shell becomes the worker, so that it ends with the test.
    let command = commands.trim_end().replace(" ebb worker", " exec ebb worker") + " --drain-above 100";
    let own = [project.path().join("bin")].into_iter();
    let path = own.chain(std::env::split_paths(&std::env::var_os("PATH").unwrap()).collect::<Vec<_>>());
    let mut shell = Command::new("bash");
    shell.args(["-c", &command]).current_dir(project.path()).stdin(Stdio::null());
    shell.env("PATH", std::env::join_paths(path).unwrap());
    Process::spawn(shell.stderr(File::create(project.path().join("worker.log")).unwrap()))
}

/// The rows of a grid.
fn rows(path: &Path) -> Vec<Vec<f64>> {
    let text = fs::read_to_string(path).unwrap();
    let rows = text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    rows.map(|row| row.split_whitespace().map(|word| word.parse().unwrap()).collect()).collect()
}

#[test]
fn a_raster_is_validated_split_classified_merged_and_published() {
    let (project, shared) = examples();
    let folder = shared.path().to_str().unwrap();
    let _dev = project.dev_with(&[], &[("EBB_TASK_WRITABLE", folder)]);
    let _worker = worker(&project, shared.path());
    let given = format!("folder={folder}");
    let watched = project.run(&["trigger", "raster", "--watch", "--input", &given]);
    let log = || fs::read_to_string(project.path().join("worker.log")).unwrap();
    assert_eq!(watched.status.code(), Some(0), "{}\n{}", printed(&watched), log());
    let run = project.latest_run();
    let shown = project.ask_json(&["run", "show", &run]);
    let task = |name: &str| {
        shown["tasks"].as_array().unwrap().iter().find(|task| task["name"] == name).unwrap().clone()
    };
    assert_eq!(task("validate")["output"], json!({"width": 20, "height": 12, "crs": "EPSG:2056"}));
    assert_eq!(task("split")["output"]["tiles"].as_array().unwrap().len(), 12);
    assert_eq!(task("merge")["output"]["pixels"], 240);
    let layer = shared.path().join("published/alps-classes.asc");
    assert_eq!(task("publish")["output"]["url"], format!("file://{}", layer.display()));
    let classes: Vec<Vec<f64>> = rows(&shared.path().join("alps.asc"))
        .into_iter()
        .map(|row| row.into_iter().map(|height| (height / 250.0).floor()).collect())
        .collect();
    assert_eq!(rows(&layer), classes);
    let published = fs::read_to_string(shared.path().join("published/layers.txt")).unwrap();
    assert_eq!(published, format!("alps-classes public {run}\n"));
    assert!(project.ask(&["logs", &run]).contains("published alps-classes"));
    let invalid = project.run(&["trigger", "raster", "--watch", "--input", &given, "--input", "grid=none"]);
    assert!(printed(&invalid).contains("there is no grid"), "{}", printed(&invalid));
    let attempts = project.ask_json(&["run", "attempts", &project.latest_run(), "validate"]);
    assert_eq!(attempts.as_array().unwrap().len(), 1, "a permanent failure is not retried: {attempts}");
}

#[test]
fn one_task_of_a_custom_type_runs_without_a_worker() {
    let (project, shared) = examples();
    let given = format!("folder={}", shared.path().display());
    let run = |extra: &[&str]| {
        let fixed = ["task", "run", "raster", "validate", "--input", &given];
        project.command(&[&fixed, extra].concat()).env("EBB_TASK_READABLE", shared.path()).output().unwrap()
    };
    let done = run(&["--exec", "raster.validate=workflows/programs/raster.py"]);
    assert_eq!(done.status.code(), Some(0), "{}", printed(&done));
    let output: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(output["width"], 20);
    let without = run(&[]);
    assert!(printed(&without).contains("--exec raster.validate=PROGRAM"), "{}", printed(&without));
    let relative =
        run(&["--input", "folder=rasters", "--exec", "raster.validate=workflows/programs/raster.py"]);
    assert!(
        printed(&relative).contains("does not fit the task type `raster.validate`"),
        "{}",
        printed(&relative)
    );
    project.write("wrong", "#!/bin/sh\necho '{}' > $EBB_OUTPUT\n");
    let program = project.path().join("wrong");
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let wrong = run(&["--exec", "raster.validate=wrong"]);
    assert_eq!(wrong.status.code(), Some(1), "{}", printed(&wrong));
    assert!(printed(&wrong).contains("the output does not fit the task type"), "{}", printed(&wrong));
}

#[test]
fn a_worker_with_a_gpu_trains_a_model() {
    let (project, _shared) = examples();
    let _dev = project.dev();
    let run = project.trigger("train");
    let mut command =
        project.command(&["worker", "--queue", "gpu", "--label", "gpu=true", "--drain-above", "100"]);
    let _worker = Process::spawn(command.stderr(Stdio::null()));
    project.ask(&["run", "watch", &run]);
    let shown = project.ask_json(&["run", "show", &run]);
    let train = &shown["tasks"][0];
    assert_eq!((&train["output"], &train["progress"]["phase"]), (&json!({"loss": 0.25}), &json!("epoch 3")));
    assert_eq!(train["progress"]["metrics"]["loss"]["value"], 0.25);
}

//! `ebb worker` in processes of its own: it runs tasks, is killed, drains, and outlives its server.

mod hosts;
mod long;
mod slots;
mod watched;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use testkit::{Port, eventually, eventually_blocking};

use crate::project::{Dev, Process, Project, printed, shared_folder};

/// An `ebb worker` of the queue `remote`.
struct RemoteWorker {
    process: Process,
    log: PathBuf,
}

impl RemoteWorker {
    /// Starts a worker with these arguments, whose tasks may use the folder and call this machine.
    fn start(project: &Project, name: &str, folder: &Path, arguments: &[&str]) -> Self {
        let log = project.path().join(format!("{name}.log"));
        let fixed = ["worker", "--queue", "remote", "--name", name, "--drain-above", "100"];
        let mut command = project.command(&[&fixed, arguments].concat());
        command.env("EBB_TASK_WRITABLE", folder).env("EBB_EGRESS_ALLOW", "127.0.0.1").stdout(Stdio::null());
        let process = Process::spawn(command.stderr(File::create(&log).unwrap()));
        Self { process, log }
    }

    fn pid(&self) -> u32 {
        self.process.id()
    }

    fn terminate(&self) {
        assert!(Command::new("kill").arg(self.pid().to_string()).status().unwrap().success());
    }

    fn ended(&mut self) -> ExitStatus {
        eventually_blocking("the worker ends", || self.process.ended())
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }
}

/// A project with a folder that its tasks share: a pipe in it lets the task `wait` go on.
struct Place {
    project: Project,
    folder: TempDir,
}

const WAIT: &str = r#"
name: wait
inputs: {folder: {type: string}}
tasks:
  - name: wait
    type: bash
    queue: remote
    config:
      env: {FOLDER: "{{ inputs.folder }}"}
      command: 'read -r word < "$FOLDER/pipe"; echo "\"$word\"" > $EBB_OUTPUT'
"#;

impl Place {
    fn new(workflow: &str, text: &str) -> Self {
        let place = Self {
            project: Project::new().with(workflow, text).with_pool("remote"),
            folder: shared_folder(),
        };
        place.make_pipe("pipe");
        place
    }

    /// Makes a pipe that tasks can read from.
    fn make_pipe(&self, name: &str) {
        let made = Command::new("mkfifo").args(["-m", "666"]).arg(self.folder.path().join(name)).status();
        assert!(made.unwrap().success());
    }

    fn trigger(&self, workflow: &str) -> String {
        let folder = format!("folder={}", self.folder.path().display());
        let run = self.project.ask_json(&["trigger", workflow, "--input", &folder]);
        run["id"].as_str().unwrap().to_owned()
    }

    fn worker(&self, name: &str, arguments: &[&str]) -> RemoteWorker {
        RemoteWorker::start(&self.project, name, self.folder.path(), arguments)
    }

    /// Lets the task that waits go on. Returns once the task has the word.
    fn go(&self, word: &str) {
        std::fs::write(self.folder.path().join("pipe"), format!("{word}\n")).unwrap();
    }
}

async fn task(dev: &Dev, run: &str, name: &str) -> Value {
    dev.get(&format!("/runs/{run}/tasks/{name}")).await
}

async fn runs(dev: &Dev, run: &str, attempt: u32) {
    eventually(&format!("attempt {attempt} runs"), async || {
        let task = task(dev, run, "wait").await;
        (task["state"] == "running" && task["attempt"] == attempt).then_some(())
    })
    .await;
}

const FAR: &str = r#"
name: far
tasks:
  - name: shell
    type: bash
    queue: remote
    config: {command: 'echo hello from afar; echo "{\"rows\": 3}" > $EBB_OUTPUT'}
  - name: snake
    type: python
    queue: remote
    depends_on: [shell]
    config:
      code: |
        import json, os
        given = json.load(open(os.environ["EBB_INPUT"]))
        json.dump(given["outputs"]["shell"]["rows"] * 2, open(os.environ["EBB_OUTPUT"], "w"))
"#;

#[test]
fn a_worker_runs_bash_and_python_and_sends_their_logs() {
    let place = Place::new("far", FAR);
    let _dev = place.project.dev();
    let token = place.project.ask(&["tokens", "create", "w", "--role", "worker"]);
    let mut worker = place.worker("w", &["--slots", "2", "--token", token.trim()]);
    let watched = place.project.run(&["trigger", "far", "--watch"]);
    assert_eq!(watched.status.code(), Some(0), "{}\n{}", printed(&watched), worker.log());
    let run = place.project.latest_run();
    let shown = place.project.ask_json(&["run", "show", &run]);
    let tasks = shown["tasks"].as_array().unwrap();
    let snake = tasks.iter().find(|task| task["name"] == "snake").unwrap();
    assert_eq!(snake["output"], 6);
    assert!(place.project.ask(&["logs", &run]).contains("hello from afar"));
    worker.terminate();
    assert!(worker.ended().success(), "{}", worker.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_task_of_a_worker_that_was_killed_runs_on_another() {
    let place =
        Place::new("wait", &WAIT.replace("    config:", "    retry_policy: {max_retries: 1}\n    config:"));
    let dev = place.project.dev();
    let first = place.worker("first", &[]);
    let run = place.trigger("wait");
    runs(&dev, &run, 1).await;
    // Like kill -9: it says nothing to anyone.
    drop(first);
    let _second = place.worker("second", &[]);
    runs(&dev, &run, 2).await;
    tokio::task::block_in_place(|| place.go("done"));
    place.project.ask(&["run", "watch", &run]);
    assert_eq!(task(&dev, &run, "wait").await["output"], "done");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_lets_a_task_finish() {
    let place = Place::new("wait", WAIT);
    let dev = place.project.dev();
    let mut worker = place.worker("w", &[]);
    let run = place.trigger("wait");
    runs(&dev, &run, 1).await;
    worker.terminate();
    eventually("the worker drains", async || worker.log().contains("1 tasks may finish").then_some(())).await;
    tokio::task::block_in_place(|| place.go("late"));
    assert!(tokio::task::block_in_place(|| worker.ended()).success(), "{}", worker.log());
    let task = task(&dev, &run, "wait").await;
    assert_eq!(
        (&task["state"], &task["attempt"], &task["output"]),
        (&"succeeded".into(), &1.into(), &"late".into())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_hands_back_what_does_not_finish() {
    let place = Place::new("wait", WAIT);
    let dev = place.project.dev();
    let mut worker = place.worker("w", &["--grace", "0"]);
    let run = place.trigger("wait");
    runs(&dev, &run, 1).await;
    worker.terminate();
    assert!(tokio::task::block_in_place(|| worker.ended()).success(), "{}", worker.log());
    assert!(worker.log().contains("Handed back attempt 1 of `wait`"), "{}", worker.log());
    let _other = place.worker("other", &[]);
    runs(&dev, &run, 2).await;
    tokio::task::block_in_place(|| place.go("again"));
    place.project.ask(&["run", "watch", &run]);
}

const TYPE: &str = r"
name: text.count
description: Counts the words of a text.
queue: remote
config:
  type: object
  required: [text]
  properties: {text: {type: string}}
output:
  type: object
  required: [words]
  properties: {words: {type: integer}}
";

const COUNT: &str = r#"
name: count
inputs: {text: {type: string, default: "one two three"}}
tasks:
  - {name: count, type: text.count, config: {text: "{{ inputs.text }}"}}
"#;

const PROGRAM: &str = r#"#!/usr/bin/env python3
import json, os
text = json.load(open(os.environ["EBB_INPUT"]))["config"]["text"]
print("counting", text)
json.dump({"words": len(text.split())}, open(os.environ["EBB_OUTPUT"], "w"))
"#;

#[test]
fn a_program_of_any_language_implements_a_custom_type() {
    let place = Place::new("count", COUNT);
    place.project.write("workflows/types/text.count.yaml", TYPE);
    let program = place.project.path().join("count-words");
    std::fs::write(&program, PROGRAM).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let _dev = place.project.dev();
    let worker = place.worker("w", &["--exec", &format!("text.count={}", program.display())]);
    let watched = place.project.run(&["trigger", "count", "--watch"]);
    assert_eq!(watched.status.code(), Some(0), "{}\n{}", printed(&watched), worker.log());
    let run = place.project.latest_run();
    let shown = place.project.ask_json(&["run", "show", &run]);
    assert_eq!(shown["tasks"][0]["output"], serde_json::json!({"words": 3}));
    assert!(place.project.ask(&["logs", &run]).contains("counting one two three"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_arrives_although_the_server_was_restarted() {
    let place = Place::new("wait", WAIT);
    let port = Port::reserve();
    let dev = place.project.dev_at(&port);
    let worker = place.worker("w", &[]);
    let run = place.trigger("wait");
    runs(&dev, &run, 1).await;
    assert!(tokio::task::block_in_place(|| dev.stops_on_request()));
    tokio::task::block_in_place(|| place.go("meanwhile"));
    let said = "Cannot report the result of attempt 1 of `wait`";
    eventually("the worker tries to report", async || worker.log().contains(said).then_some(())).await;
    let dev = place.project.dev_at(&port);
    place.project.ask(&["run", "watch", &run]);
    let task = task(&dev, &run, "wait").await;
    assert_eq!((&task["attempt"], &task["output"]), (&1.into(), &"meanwhile".into()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_of_another_tenant_gets_nothing() {
    let place = Place::new("wait", WAIT);
    let dev = place.project.dev();
    let token = place.project.ask(&["tokens", "create", "w", "--role", "worker", "--in", "acme"]);
    let run = place.trigger("wait");
    let client = reqwest::Client::new();
    let lease = |token: String| {
        let body = serde_json::json!({"worker": "w", "queue": "remote", "wait_seconds": 0});
        client.post(format!("{}/api/v1/execution/lease", dev.url)).bearer_auth(token).json(&body).send()
    };
    eventually("the task is dispatched", async || {
        (task(&dev, &run, "wait").await["state"] == "dispatched").then_some(())
    })
    .await;
    let foreign: Value = lease(token.trim().to_owned()).await.unwrap().json().await.unwrap();
    assert_eq!(foreign["items"], serde_json::json!([]), "{foreign}");
    let own: Value = lease(dev.token.clone()).await.unwrap().json().await.unwrap();
    assert_eq!(own["items"][0]["task"], "wait", "{own}");
}

#[test]
fn a_worker_whose_machine_is_full_takes_nothing_and_says_so() {
    let place = Place::new("wait", WAIT);
    let _dev = place.project.dev();
    let ended = place.project.run(&["worker", "--queue", "remote", "--drain-above", "0"]);
    assert_eq!(ended.status.code(), Some(1), "{}", printed(&ended));
    assert!(printed(&ended).contains("in use, more than this worker's limit"), "{}", printed(&ended));
}

#[test]
fn a_worker_with_wrong_settings_ends_at_once() {
    let place = Place::new("wait", WAIT);
    let _dev = place.project.dev();
    let fails = |arguments: &[&str], reason: &str| {
        // Whatever else fills the machine.
        let fixed = ["worker", "--drain-above", "100"];
        place.project.assert_fails(&[&fixed, arguments].concat(), 3, reason);
    };
    fails(&["--queue", "light"], "kind `pool`");
    let viewer = place.project.ask(&["tokens", "create", "v", "--role", "viewer"]);
    fails(&["--queue", "remote", "--token", viewer.trim()], "worker");
}

const SECRET: &str = r#"
name: secret
tasks:
  - name: use
    type: bash
    queue: remote
    config: {env: {WORD: "{{ secrets.word }}"}, command: 'echo "the word is $WORD"; [ "$WORD" = hush-hush-hush ]'}
"#;

#[test]
fn a_lease_carries_the_secrets_of_its_task_and_the_worker_masks_them() {
    let place = Place::new("secret", SECRET);
    place.project.write(".ebb/secrets/default/word", "hush-hush-hush");
    let _dev = place.project.dev();
    let worker = place.worker("w", &[]);
    let watched = place.project.run(&["trigger", "secret", "--watch"]);
    assert_eq!(watched.status.code(), Some(0), "{}\n{}", printed(&watched), worker.log());
    let logs = place.project.ask(&["logs", &place.project.latest_run()]);
    assert!(logs.contains("the word is ***") && !logs.contains("hush"), "{logs}");
}

#[test]
fn a_task_whose_secret_is_missing_fails_and_names_it() {
    let place = Place::new("secret", SECRET);
    let _dev = place.project.dev();
    let _worker = place.worker("w", &[]);
    place.project.assert_fails(&["trigger", "secret", "--watch"], 1, "`word`");
}

/// Each attack that works ends its task with an error, and so the run.
const ATTACKS: &str = r#"
name: attacks
inputs: {worker: {type: integer}, token: {type: string}, folder: {type: string}}
tasks:
  - name: environ
    type: bash
    queue: remote
    config: {env: {PID: "{{ inputs.worker }}"}, command: '! cat /proc/$PID/environ'}
  - name: arguments
    type: bash
    queue: remote
    config: {env: {PID: "{{ inputs.worker }}"}, command: 'tr "\0" " " < /proc/$PID/cmdline > seen; grep -q worker seen && ! grep -q ebb_ seen'}
  - name: variables
    type: bash
    queue: remote
    config: {command: '! env | grep -q "ebb_\|EBB_TOKEN\|EBB_URL"'}
  - name: memory
    type: bash
    queue: remote
    config: {env: {PID: "{{ inputs.worker }}"}, command: '! head -c 1 /proc/$PID/mem'}
  - name: kill
    type: bash
    queue: remote
    config: {env: {PID: "{{ inputs.worker }}"}, command: '! kill -9 $PID'}
  - name: data
    type: bash
    queue: remote
    config: {env: {DATA: "{{ inputs.folder }}"}, command: '! cat "$DATA/.ebb/dev.json" && ! ls "$DATA"'}
  - name: echo
    type: bash
    queue: remote
    config: {env: {WORD: "{{ inputs.token }}"}, command: 'echo "the token is $WORD"'}
"#;

#[test]
fn a_task_of_a_worker_reaches_neither_its_token_nor_its_memory() {
    let place = Place::new("attacks", ATTACKS);
    let _dev = place.project.dev();
    let token = place.project.ask(&["tokens", "create", "w", "--role", "worker"]).trim().to_owned();
    // The arguments of a process are visible to all: the worker must move the token elsewhere.
    let worker = place.worker("w", &["--slots", "2", "--token", &token]);
    let inputs = [
        format!("worker={}", worker.pid()),
        format!("token={token}"),
        format!("folder={}", place.project.path().display()),
    ];
    let inputs = inputs.iter().flat_map(|input| ["--input", input.as_str()]);
    let arguments: Vec<&str> = ["trigger", "attacks", "--watch"].into_iter().chain(inputs).collect();
    let watched = place.project.run(&arguments);
    let run = place.project.latest_run();
    let explained = || place.project.ask(&["explain", &run]);
    assert_eq!(watched.status.code(), Some(0), "{}\n{}", printed(&watched), explained());
    let logs = place.project.ask(&["logs", &run]);
    assert!(logs.contains("the token is ***") && !logs.contains(&token), "{logs}");
}

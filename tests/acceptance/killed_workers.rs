//! `ebb worker` processes that are killed with SIGKILL while they run a pipeline: nothing is lost, and what must not be
//! repeated begins once.
//!
//! Programs tell the test that they have begun, in a file, and each waits for its word at a pipe of its own. So it decides, by a seed, which worker dies
//! in the middle of which task, however fast the machine is. `EBB_SEED=N` chooses another seed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use api::{Access, Api, Links};
use auth::{Authenticator, Policy, PushAuth};
use bus::SystemClock;

use language::FileKind;
use model::{Clock, ErrorClass, Instant, RunId, TaskState, WorkerId};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use store::TaskRecord;
use tempfile::TempDir;
use testkit::within_deadline;

use crate::world::{ISSUER, World};

/// The queue whose tasks workers lease.
const QUEUE: &str = "tiles";

const RUNS: usize = 20;

/// The tasks of a run that workers lease.
const LEASED: usize = 10;

const WORKERS: usize = 3;
const SLOTS: &str = "3";

/// The probability that the worker of a program that has begun is killed, and the most kills.
const KILLED: f64 = 0.12;
const MAX_KILLS: usize = 25;

/// The task types, and whether their tasks must not be repeated.
const TYPES: [(&str, bool); 6] = [
    ("raster.validate", false),
    ("raster.record", true),
    ("raster.split", false),
    ("raster.tile", false),
    ("raster.merge", false),
    ("raster.publish", true),
];

const WORKFLOW: &str = r#"
name: raster
tasks:
  - {name: validate, type: raster.validate}
  - {name: record, type: raster.record, depends_on: [validate]}
  - {name: split, type: raster.split, depends_on: [validate]}
  - {name: tiles, type: fan_out, depends_on: [split], for_each: outputs.split.tiles, task: {type: raster.tile}}
  - {name: tiled, type: fan_in, depends_on: [tiles]}
  - {name: merge, type: raster.merge, depends_on: [tiled]}
  - {name: publish, type: raster.publish, depends_on: [merge]}
"#;

/// The program of every type, for the worker NAME. A tile that finds a checkpoint must find its own.
const PROGRAM: &str = r#"#!/bin/bash
set -eu
pipe=FOLDER/pipe-$EBB_RUN_ID-$EBB_TASK-$EBB_ATTEMPT
mkfifo -m 666 "$pipe"
echo "NAME $EBB_RUN_ID $EBB_TASK $EBB_ATTEMPT" >> FOLDER/begun
case $EBB_TASK in tiles__*)
    if grep -q '"phase"' "$EBB_INPUT"; then
        grep -Eq "\"phase\": *\"$EBB_RUN_ID $EBB_TASK\"" "$EBB_INPUT" || exit 125
    fi
    echo "{\"checkpoint\": {\"phase\": \"$EBB_RUN_ID $EBB_TASK\"}}" > "$EBB_MESSAGES"
esac
read -r _ < "$pipe"
case $EBB_TASK in
    split) echo '{"tiles": [1, 2, 3, 4, 5]}' > "$EBB_OUTPUT" ;;
    *) echo "\"$EBB_TASK\"" > "$EBB_OUTPUT" ;;
esac
"#;

fn type_file((name, once): (&str, bool)) -> String {
    let repeated = if once { "idempotent: false" } else { "retry_policy: {max_retries: 50}" };
    format!("name: {name}\nqueue: {QUEUE}\n{repeated}\n")
}

/// A program that has begun: its worker, and the attempt that it runs.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Begun {
    worker: String,
    run: RunId,
    task: String,
    attempt: String,
}

impl Begun {
    fn read(line: &str) -> Self {
        let [worker, run, task, attempt] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        Self { worker: worker.into(), run: run.parse().unwrap(), task: task.into(), attempt: attempt.into() }
    }

    fn must_begin_once(&self) -> bool {
        ["record", "publish"].contains(&&*self.task)
    }
}

/// An `ebb worker`, killed when this value is dropped.
struct WorkerProcess {
    name: String,
    process: Child,
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The workers, and those that were killed.
struct Workers {
    program: PathBuf,
    url: String,
    folder: TempDir,
    alive: Vec<WorkerProcess>,
    killed: BTreeSet<String>,
    /// Whether one was killed because of a program that must not be repeated.
    killed_once: bool,
    /// The pipes of programs that were let go on. Closed, one would lose what its program has not read.
    pipes: Vec<File>,
    dice: StdRng,
    client: reqwest::Client,
}

impl Workers {
    fn start(program: PathBuf, url: String, seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The programs of tasks run as users of their own.
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        let begun = folder.path().join("begun");
        std::fs::write(&begun, "").unwrap();
        std::fs::set_permissions(begun, Permissions::from_mode(0o666)).unwrap();
        let (dice, client) = (StdRng::seed_from_u64(seed), reqwest::Client::new());
        let (alive, killed, pipes) = Default::default();
        let mut workers =
            Self { program, url, folder, alive, killed, killed_once: false, pipes, dice, client };
        (0..WORKERS).for_each(|_| workers.add());
        workers
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts another worker, with a program of its own.
    fn add(&mut self) {
        let name = format!("w{}", self.alive.len() + self.killed.len());
        let program = self.path(&format!("program-{name}"));
        let folder = self.folder.path().to_str().unwrap();
        std::fs::write(&program, PROGRAM.replace("FOLDER", folder).replace("NAME", &name)).unwrap();
        std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        let process = self.command(&name, &program).spawn().unwrap();
        self.alive.push(WorkerProcess { name, process });
    }

    fn command(&self, name: &str, program: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["worker", "--queue", QUEUE, "--slots", SLOTS, "--name", name, "--drain-above", "100"]);
        for (kind, _) in TYPES {
            command.arg("--exec").arg(format!("{kind}={}", program.display()));
        }
        command.env("EBB_URL", &self.url).env("EBB_TOKEN", token()).env_remove("EBB_TENANT");
        command.env("EBB_TASK_WRITABLE", self.folder.path()).current_dir(self.folder.path());
        let log = File::create(self.path(&format!("log-{name}"))).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command
    }

    /// The programs that have begun so far, in order.
    fn begun(&self) -> Vec<Begun> {
        let text = std::fs::read_to_string(self.path("begun")).unwrap();
        text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).map(Begun::read).collect()
    }

    /// Kills the worker of a program that has begun, or lets the program go on. The first that must not be repeated is
    /// killed in any case.
    fn decide(&mut self, begun: &Begun) {
        let Some(place) = self.alive.iter().position(|worker| worker.name == begun.worker) else { return };
        let is_first_once = begun.must_begin_once() && !self.killed_once;
        let chosen = self.killed.len() < MAX_KILLS && self.dice.random_bool(KILLED);
        if chosen || is_first_once {
            self.killed_once |= begun.must_begin_once();
            let worker = self.alive.swap_remove(place);
            self.killed.insert(worker.name.clone());
            drop(worker);
            self.add();
        } else {
            let pipe = self.path(&format!("pipe-{}-{}-{}", begun.run, begun.task, begun.attempt));
            // For both, so that it opens although its program does not read yet.
            let mut pipe = OpenOptions::new().read(true).write(true).open(pipe).unwrap();
            pipe.write_all(b"\n").unwrap();
            self.pipes.push(pipe);
        }
    }

    /// What the API says.
    async fn get(&self, path: &str) -> Value {
        let request = self.client.get(format!("{}/api/v1/{path}", self.url)).bearer_auth(token());
        request.send().await.unwrap().json().await.unwrap()
    }

    /// The ids of the workers that were killed, of those that the server knows.
    async fn killed_ids(&self) -> BTreeSet<WorkerId> {
        let known = self.get("workers?limit=100").await;
        let known = known["items"].as_array().unwrap().iter();
        let killed = known.filter(|worker| self.killed.contains(worker["name"].as_str().unwrap_or_default()));
        killed.map(|worker| serde_json::from_value(worker["id"].clone()).unwrap()).collect()
    }

    /// The logs of all workers.
    fn logs(&self) -> String {
        let files = std::fs::read_dir(self.folder.path()).unwrap().map(|file| file.unwrap().path());
        let logs = files.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("log-"));
        logs.map(|path| std::fs::read_to_string(path).unwrap()).collect()
    }
}

fn token() -> String {
    let expires = SystemClock.now().timestamp() + 3600;
    ISSUER.sign(&json!({
        "iss": ISSUER.url(), "sub": "1", "aud": "api", "email": "ada@example.com", "email_verified": true, "exp": expires,
    }))
}

/// Serves the API of a world. Returns its address.
async fn serve(world: &World) -> String {
    let verifier = ISSUER.verifier("api");
    let policy = Policy::read("@example.com=admin:*").unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let access = Access::new(Authenticator::new([verifier.into()]), policy);
    let api = Api::new(world.connected(PushAuth::None), access, Links::local(&url));
    let router = trigger::router(world.app.clone(), Some(api));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    url
}

/// Declares workers dead, as the sweep does after a minute without a heartbeat.
async fn declare_dead(world: &World, dead: &BTreeSet<WorkerId>) {
    let store = world.store();
    let mut silent = store.silent(Instant::MAX_UTC, 1_000).await.unwrap();
    silent.retain(|silence| dead.contains(&silence.worker));
    let lost = store.lost(&silent, 1_000).await.unwrap().into_iter().map(|claim| {
        let (task, attempt, worker) = (claim.key.task, claim.attempt, claim.worker);
        (claim.key.run, engine::Command::Lose { task, attempt, worker })
    });
    world.runtime.settle_or_postpone(lost.collect()).await.unwrap();
    store.mark_dead(&silent, SystemClock.now()).await.unwrap();
}

/// Decides about every program that begins until all runs have ended.
async fn kill_until_all_ended(world: &World, workers: &mut Workers) {
    let (mut decided, mut pace) = (0, tokio::time::interval(Duration::from_millis(50)));
    loop {
        pace.tick().await;
        for begun in workers.begun().into_iter().skip(decided) {
            workers.decide(&begun);
            decided += 1;
        }
        declare_dead(world, &workers.killed_ids().await).await;
        if world.runs("raster").await.iter().all(|record| record.run.state.is_final()) {
            return;
        }
    }
}

/// The tasks of a run that workers lease.
async fn leased_tasks(world: &World, run: RunId) -> Vec<TaskRecord> {
    let graph = world.runtime.graph(world.run(run).await.run.version).await.unwrap().unwrap();
    let mut tasks = world.tasks(run).await;
    let fans: Vec<_> = tasks.iter().filter(|row| row.task.fan.is_some()).map(|row| row.task.index).collect();
    for fan in fans {
        tasks.extend(world.store().run_tasks(run, Some(fan), None, 1_000).await.unwrap());
    }
    tasks.retain(|row| graph.spec_at(row.task.index, row.task.child).queue == QUEUE);
    tasks
}

/// Whether a task must not be repeated and failed since the worker of its last attempt was killed.
async fn is_unknown(
    world: &World,
    workers: &Workers,
    run: RunId,
    row: &TaskRecord,
    killed: &BTreeSet<WorkerId>,
) -> bool {
    let graph = world.runtime.graph(world.run(run).await.run.version).await.unwrap().unwrap();
    let once = graph.spec_at(row.task.index, row.task.child).idempotent == Some(false);
    let name = graph.name_at(row.task.index, row.task.child);
    let last = workers.get(&format!("runs/{run}/tasks/{name}/attempts")).await["items"]
        .as_array()
        .and_then(|attempts| attempts.last().cloned())
        .unwrap_or_default();
    let lost = serde_json::from_value(last["worker"].clone()).is_ok_and(|worker| killed.contains(&worker));
    let unknown =
        row.task.failure.as_ref().is_some_and(|failure| failure.class == ErrorClass::OutcomeUnknown);
    once && lost && unknown && row.task.state == TaskState::Failed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_are_killed_lose_nothing_and_repeat_nothing_that_must_begin_once() {
    let seed = std::env::var("EBB_SEED").map_or(1, |seed| seed.parse().unwrap());
    let program = tokio::task::spawn_blocking(ebbflow_tests::build_programs).await.unwrap().join("ebb");
    let world = World::new().await;
    let types = TYPES.map(type_file);
    let queue = format!("name: {QUEUE}\nkind: pool\n");
    let others = [(FileKind::Queue, queue.as_str()), (FileKind::Workflow, WORKFLOW)];
    let files = types.iter().map(|text| (FileKind::Type, text.as_str())).chain(others);
    world.write_files(&files.collect::<Vec<_>>()).await;
    for _ in 0..RUNS {
        world.start("raster").await;
    }
    let mut workers = Workers::start(program, serve(&world).await, seed);
    within_deadline("every run ends", kill_until_all_ended(&world, &mut workers)).await;

    let (begun, killed) = (workers.begun(), workers.killed_ids().await);
    let (mut leased, mut unknown) = (0, 0);
    for record in world.runs("raster").await {
        for row in leased_tasks(&world, record.run.id).await {
            leased += 1;
            if row.task.state != TaskState::Succeeded {
                let what = format!(
                    "seed {seed}: task {} of run {}: {:?}",
                    row.task.index.0, record.run.id, row.task
                );
                assert!(
                    is_unknown(&world, &workers, record.run.id, &row, &killed).await,
                    "{what}\n{}",
                    workers.logs()
                );
                unknown += 1;
            }
        }
    }
    assert_eq!(leased, RUNS * LEASED, "every task has ended");
    assert!(unknown > 0, "seed {seed}: a task that must not be repeated met the end of its worker");
    let mut beginnings: BTreeMap<(RunId, &str), usize> = BTreeMap::new();
    for begun in &begun {
        *beginnings.entry((begun.run, &begun.task)).or_default() += 1;
    }
    for begun in begun.iter().filter(|begun| begun.must_begin_once()) {
        assert_eq!(beginnings[&(begun.run, &*begun.task)], 1, "seed {seed}: {begun:?} began again");
    }
    assert!(beginnings.values().any(|times| *times > 1), "seed {seed}: others were repeated");
    println!(
        "seed {seed}: {} kills, {} programs, {unknown} unknown outcomes",
        workers.killed.len(),
        begun.len()
    );
}

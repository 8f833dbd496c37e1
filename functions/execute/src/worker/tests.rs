//! A worker that holds a real process tree, on a clock that the test moves.
//!
//! Every process of the tree holds a connection to the test, which closes when the last of them is dead.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use host::Verdict;
use model::message::TaskDispatched;
use model::{
    Clock, ErrorClass, EventKind, RunId, Task, TaskIndex, TaskKey, TaskKind, TaskState, TenantId, VersionId,
    WorkerCommand, WorkerCommandKind,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::{Executor, Runner, Worker};

/// A shell and its child, which run until the test lets them finish, or kills them.
const TREE: &str = "exec 3<>/dev/tcp/127.0.0.1/$PORT
sleep 1000 > /dev/null 2>&1 &
echo ready >&3
read -r _ <&3";

/// The same, but the processes ignore SIGTERM.
const DEAF: &str = "trap '' TERM; ";

/// A run of one task without retries, and a worker for it.
struct World {
    base: testkit::World,
    executor: Arc<Executor>,
    worker: Arc<Worker>,
    listener: TcpListener,
    folder: TempDir,
    run: RunId,
    version: VersionId,
}

impl Deref for World {
    type Target = testkit::World;

    fn deref(&self) -> &Self::Target {
        &self.base
    }
}

impl World {
    async fn new(before: &str) -> Self {
        let command = format!("{before}{TREE}");
        Self::of(TaskKind::Bash, |port| json!({"command": command, "env": {"PORT": port}}), 0).await
    }

    /// A run of one task of that kind, with settings that may name the port of the test.
    async fn of(kind: TaskKind, config: impl Fn(String) -> Value, max_retries: u32) -> Self {
        let base = testkit::World::at("2026-01-01T00:00:00Z");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut workflow = testkit::workflow("a");
        let task = &mut workflow.tasks[0];
        (task.kind, task.retry.max_retries) = (kind, max_retries);
        task.config = config(listener.local_addr().unwrap().port().to_string());
        let version = base.register(workflow).await;
        let run = base.start("example").await;
        let worker = Worker::new(base.runtime.clone());
        let folder = tempfile::tempdir().unwrap();
        let scratch = folder.path().join("scratch");
        std::fs::create_dir(&scratch).unwrap();
        let runner = Runner::new(base.runtime.clock().clone(), ".")
            .with_egress_policy(host::EgressPolicy::allow_internal())
            .with_scratch(scratch);
        let executor = Executor::new(base.runtime.clone(), worker.clone(), runner);
        Self { base, executor: Arc::new(executor), worker, listener, folder, run, version }
    }

    /// Starts an attempt at the run's only task.
    fn begin(&self, attempt: u32) -> JoinHandle<runtime::Result<Verdict>> {
        let work = TaskDispatched {
            key: TaskKey { run: self.run, task: TaskIndex(0) },
            tenant: TenantId::DEFAULT,
            attempt,
            version: self.version,
            queue: "light".into(),
            child: None,
            give_up_at: None,
        };
        let executor = self.executor.clone();
        tokio::spawn(async move { executor.execute(&work).await })
    }

    /// The connection of a tree whose processes have all started.
    async fn ready(&self) -> BufReader<TcpStream> {
        let mut wire = BufReader::new(self.listener.accept().await.unwrap().0);
        let mut line = String::new();
        wire.read_line(&mut line).await.unwrap();
        assert_eq!(line, "ready\n");
        wire
    }

    fn pass(&self, milliseconds: i64) {
        self.clock.advance(TimeDelta::milliseconds(milliseconds));
    }

    async fn command(&self, kind: WorkerCommandKind) {
        let (actor, reason) = ("ada".into(), Some("it hangs".into()));
        let command = WorkerCommand { kind, actor, reason, at: self.clock.now() };
        assert!(self.store().command_worker(self.worker.id(), &command).await.unwrap().is_some());
    }

    /// Asks the worker to stop, with ten seconds for what runs.
    fn stop(&self) -> JoinHandle<()> {
        let worker = self.worker.clone();
        tokio::spawn(async move { worker.stop("asked to stop", Duration::from_secs(10)).await })
    }

    async fn task(&self) -> Task {
        self.tasks(self.run).await.remove(0).task
    }

    async fn is_known(&self) -> bool {
        !self.store().silent(model::Instant::MAX_UTC, 9).await.unwrap().is_empty()
    }

    /// Why the first attempt was handed back.
    async fn hand_back_reason(&self) -> String {
        let task = self.task().await;
        assert_eq!((task.state, task.attempt, task.handed_back), (TaskState::Dispatched, 2, 1));
        let events = self.events(self.run).await;
        let event = events.iter().find(|event| event.kind == EventKind::TaskHandedBack).unwrap();
        event.data["reason"].as_str().unwrap().to_owned()
    }
}

/// Lets other tasks run until a condition holds.
async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::task::yield_now().await;
    }
}

async fn allow_to_finish(wire: &mut BufReader<TcpStream>) {
    wire.write_all(b"go\n").await.unwrap();
}

async fn all_dead(mut wire: BufReader<TcpStream>) {
    let _ = wire.read_to_end(&mut Vec::new()).await;
}

#[tokio::test]
async fn running_attempts_may_finish_when_the_worker_is_asked_to_stop() {
    let world = World::new("").await;
    let attempt = world.begin(1);
    let mut wire = world.ready().await;
    let stop = world.stop();
    until(|| world.worker.shutdown_reason().is_some()).await;
    assert_eq!(world.begin(2).await.unwrap().unwrap(), Verdict::Retry("asked to stop".into()));
    allow_to_finish(&mut wire).await;
    stop.await.unwrap();
    assert_eq!(attempt.await.unwrap().unwrap(), Verdict::Done);
    assert_eq!(world.task().await.state, TaskState::Succeeded);
    assert!(!world.is_known().await, "it has deregistered");
    all_dead(wire).await;
}

#[tokio::test]
async fn an_attempt_that_does_not_finish_in_time_is_handed_back_and_leaves_no_process() {
    for before in ["", DEAF] {
        let world = World::new(before).await;
        let attempt = world.begin(1);
        let wire = world.ready().await;
        let stop = world.stop();
        until(|| world.worker.shutdown_reason().is_some()).await;
        world.pass(9_999);
        assert_eq!(world.task().await.state, TaskState::Running);
        world.pass(1);
        until(|| world.worker.claims.hand_back_reason().is_some()).await;
        // Processes that ignore SIGTERM are killed half a second after it was sent.
        while before == DEAF && !stop.is_finished() {
            world.pass(500);
            tokio::task::yield_now().await;
        }
        stop.await.unwrap();
        assert_eq!(attempt.await.unwrap().unwrap(), Verdict::Done, "its message is acknowledged");
        assert_eq!(world.hand_back_reason().await, "asked to stop");
        assert!(!world.is_known().await, "it has deregistered");
        all_dead(wire).await;
    }
}

#[tokio::test]
async fn a_killed_worker_kills_all_its_attempts_at_once_and_ends() {
    let world = World::new(DEAF).await;
    let attempt = world.begin(1);
    let wire = world.ready().await;
    world.command(WorkerCommandKind::Kill).await;
    world.pass(10_000);
    assert_eq!(attempt.await.unwrap().unwrap(), Verdict::Done);
    world.worker.ended().await;
    assert_eq!(world.hand_back_reason().await, "the worker was killed by ada: it hangs");
    assert!(!world.is_known().await);
    assert!(
        matches!(world.begin(2).await.unwrap().unwrap(), Verdict::Retry(_)),
        "another worker must run it"
    );
    all_dead(wire).await;
}

#[tokio::test]
async fn a_draining_worker_claims_nothing_and_finishes_its_attempts() {
    let world = World::new("").await;
    let attempt = world.begin(1);
    let mut wire = world.ready().await;
    world.command(WorkerCommandKind::Drain).await;
    world.pass(10_000);
    until(|| world.worker.shutdown_reason().is_some()).await;
    let later = Verdict::Retry("the worker was drained by ada: it hangs".into());
    assert_eq!(world.begin(2).await.unwrap().unwrap(), later);
    allow_to_finish(&mut wire).await;
    assert_eq!(attempt.await.unwrap().unwrap(), Verdict::Done);
    world.worker.ended().await;
    assert_eq!(world.task().await.state, TaskState::Succeeded);
}

#[tokio::test]
async fn a_command_after_the_last_heartbeat_is_received_when_the_worker_deregisters() {
    let world = World::new("").await;
    let attempt = world.begin(1);
    let mut wire = world.ready().await;
    world.command(WorkerCommandKind::Drain).await;
    allow_to_finish(&mut wire).await;
    assert_eq!(attempt.await.unwrap().unwrap(), Verdict::Done);
    world.worker.ended().await;
}

#[tokio::test]
async fn a_worker_that_was_declared_dead_stops_the_attempts_it_lost() {
    let world = World::new("").await;
    let attempt = world.begin(1);
    let wire = world.ready().await;
    let worker = world.worker.id();
    world.apply(world.run, engine::Command::Lose { task: TaskIndex(0), attempt: 1, worker }).await;
    let silent = world.store().silent(world.clock.now() + TimeDelta::days(1), 9).await.unwrap();
    world.store().mark_dead(&silent, world.clock.now()).await.unwrap();
    let before = world.task().await;
    world.pass(10_000);
    assert_eq!(attempt.await.unwrap().unwrap(), Verdict::Done);
    assert_eq!(world.task().await, before, "its report of a failure does not count");
    all_dead(wire).await;
}

#[tokio::test]
async fn an_attempt_whose_run_is_cancelled_is_stopped_at_the_next_heartbeat() {
    let world = World::new("").await;
    let attempt = world.begin(1);
    let wire = world.ready().await;
    world.cancel(world.run).await;
    world.pass(10_000);
    assert_eq!(attempt.await.unwrap().unwrap(), Verdict::Done);
    assert_eq!(world.task().await.state, TaskState::Cancelled);
    all_dead(wire).await;
}

/// A full file system that is mounted over a folder, until this value is dropped.
struct Full(PathBuf);

impl Full {
    /// None without the permission to mount.
    fn over(folder: &Path) -> Option<Self> {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=4k,nr_inodes=1", "tmpfs"])
            .arg(folder)
            .stderr(Stdio::null())
            .status();
        mounted.is_ok_and(|status| status.success()).then(|| Self(folder.to_owned()))
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[tokio::test]
async fn a_worker_whose_disk_is_full_fails_the_attempt_and_stays_up() {
    let world = World::new("").await;
    let scratch = world.folder.path().join("scratch");
    let full = Full::over(&scratch);
    if full.is_none() {
        println!(
            "skipped: no file system may be mounted here; a file is in the way of the scratch directory instead"
        );
        std::fs::remove_dir(&scratch).unwrap();
        std::fs::write(&scratch, "in the way").unwrap();
    }
    assert_eq!(world.begin(1).await.unwrap().unwrap(), Verdict::Done);
    let failure = world.task().await.failure.unwrap();
    assert_eq!(failure.class, ErrorClass::Transient);
    let says = match &full {
        Some(_) => "no space for the scratch directory at",
        None => "cannot create the scratch directory at",
    };
    assert!(failure.message.starts_with(says), "{}", failure.message);
    assert_eq!(world.worker.shutdown_reason(), None);
    assert!(!world.is_known().await, "it holds no attempt");
}

#[tokio::test]
async fn a_program_that_finds_the_disk_full_fails_and_its_log_is_kept() {
    let world = World::new("echo much > /dev/full || exit 7; ").await;
    assert_eq!(world.begin(1).await.unwrap().unwrap(), Verdict::Done);
    let failure = world.task().await.failure.unwrap();
    assert!(failure.message.contains('7'), "{}", failure.message);
    let key = TaskKey { run: world.run, task: TaskIndex(0) };
    let log = world.store().log(key, 1, 0, 99).await.unwrap();
    let is_logged = log.iter().any(|(_, line)| line.line.contains("No space left on device"));
    assert!(is_logged, "{log:?}");
    assert_eq!(world.worker.shutdown_reason(), None);
}

#[tokio::test]
async fn a_heartbeat_reports_open_circuit_breakers() {
    // No process listens on this port.
    let world = World::of(TaskKind::Http, |_| json!({"url": "http://127.0.0.1:1/"}), 20).await;
    let store = world.store();
    for attempt in 1..=10 {
        assert_eq!(world.worker.breakers.open(), [], "attempt {attempt}");
        world.begin(attempt).await.unwrap().unwrap();
        assert_eq!(world.task().await.state, TaskState::UpForRetry);
        world.pass(86_400_000);
        let due = store.due_timers(world.clock.now(), 1).await.unwrap().remove(0);
        world.apply(world.run, runtime::wake(due).1).await;
    }
    let open = world.worker.breakers.open();
    assert_eq!(open.iter().map(|breaker| breaker.host.as_str()).collect::<Vec<_>>(), ["127.0.0.1:1"]);
    assert!(world.worker.register().await.unwrap());
    assert_eq!(world.memory().worker_facts(world.worker.id()).unwrap().breakers, open);
    world.worker.release().await;
}

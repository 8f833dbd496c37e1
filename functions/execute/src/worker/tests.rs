//! A worker that holds a real process tree, on a clock that the test moves.
//!
//! Everyone in the tree holds a connection to the test: its end is the death of the last of them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bus::Bus;
use chrono::TimeDelta;
use host::Verdict;
use model::message::TaskDispatched;
use model::{
    Clock, ErrorClass, EventKind, Message, RunId, Task, TaskIndex, TaskKey, TaskKind, TaskState, TenantId,
    VersionId, WorkerCommand, WorkerCommandKind,
};
use runtime::{Runtime, Settled, StartRun};
use serde_json::{Map, Value, json};
use store::{Memory, NewVersion};
use tempfile::TempDir;
use testkit::ManualClock;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::{Executor, Worker};

/// A shell and its child, which go on until they are told to, or killed.
const TREE: &str = "exec 3<>/dev/tcp/127.0.0.1/$PORT
sleep 1000 > /dev/null 2>&1 &
echo ready >&3
read -r _ <&3";

/// The same, but nobody in it listens to TERM.
const DEAF: &str = "trap '' TERM; ";

struct Mute;

#[async_trait]
impl Bus for Mute {
    async fn publish(&self, _: &[Message]) -> Result<(), bus::Error> {
        Ok(())
    }

    async fn ping(&self) -> Result<(), bus::Error> {
        Ok(())
    }
}

/// A run of one task, which is carried out here and tried once only.
struct World {
    clock: ManualClock,
    runtime: Arc<Runtime>,
    executor: Arc<Executor>,
    worker: Arc<Worker>,
    listener: TcpListener,
    folder: TempDir,
    run: RunId,
    version: VersionId,
}

impl World {
    async fn new(before: &str) -> Self {
        let command = format!("{before}{TREE}");
        Self::of(TaskKind::Bash, |port| json!({"command": command, "env": {"PORT": port}}), 0).await
    }

    /// A run of one task of that kind, with settings that may name the port of the test.
    async fn of(kind: TaskKind, config: impl Fn(String) -> Value, max_retries: u32) -> Self {
        let clock = ManualClock::at("2026-01-01T00:00:00Z");
        let runtime =
            Arc::new(Runtime::new(Arc::new(Memory::default()), Arc::new(Mute), Arc::new(clock.clone())));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut workflow = testkit::workflow("a");
        let task = &mut workflow.tasks[0];
        (task.kind, task.retry.max_retries) = (kind, max_retries);
        task.config = config(listener.local_addr().unwrap().port().to_string());
        let (tenant, by, at) = (TenantId::DEFAULT, "test".to_owned(), clock.now());
        let new = NewVersion { tenant, workflow, source: String::new(), hash: "h".into(), by, at };
        let version = runtime.store().register(&new).await.unwrap().version;
        let request = StartRun {
            id: RunId(Uuid::from_u128(1)),
            tenant,
            workflow: "example".into(),
            inputs: Map::new(),
            labels: Map::new(),
            logical_date: None,
            origin: runtime::Origin::Api { by: "test".into() },
            priority: 0,
        };
        let run = runtime.start(request).await.unwrap().record.run.id;
        let worker = Worker::new(runtime.clone());
        let folder = tempfile::tempdir().unwrap();
        let mut executor = Executor::new(runtime.clone(), worker.clone(), ".")
            .with_egress_policy(host::EgressPolicy::allow_internal());
        executor.scratch = folder.path().join("scratch");
        std::fs::create_dir(&executor.scratch).unwrap();
        Self { clock, runtime, executor: Arc::new(executor), worker, listener, folder, run, version }
    }

    /// Begins to carry out an attempt.
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

    /// The connection to a tree that is complete.
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

    async fn settle(&self, command: engine::Command) {
        assert_eq!(self.runtime.settle(self.run, command).await.unwrap(), Settled::Applied);
    }

    async fn order(&self, kind: WorkerCommandKind) {
        let (actor, reason) = ("ada".into(), Some("it hangs".into()));
        let order = WorkerCommand { kind, actor, reason, at: self.clock.now() };
        assert!(self.runtime.store().command_worker(self.worker.id(), &order).await.unwrap().is_some());
    }

    /// Asks the worker to stop, with ten seconds for what runs.
    fn stop(&self) -> JoinHandle<()> {
        let worker = self.worker.clone();
        tokio::spawn(async move { worker.stop("asked to stop", Duration::from_secs(10)).await })
    }

    async fn task(&self) -> Task {
        self.runtime.store().run_tasks(self.run, None, None, 1).await.unwrap().remove(0).task
    }

    async fn is_known(&self) -> bool {
        !self.runtime.store().workers(TenantId::DEFAULT, None, 9).await.unwrap().is_empty()
    }

    /// Why the first attempt was handed back.
    async fn hand_back_reason(&self) -> String {
        let task = self.task().await;
        assert_eq!((task.state, task.attempt, task.handed_back), (TaskState::Dispatched, 2, 1));
        let events = self.runtime.store().events(self.run, 0, 99).await.unwrap();
        let told = events.iter().find(|(_, event)| event.kind == EventKind::TaskHandedBack).unwrap();
        told.1.data["reason"].as_str().unwrap().to_owned()
    }
}

/// Lets everyone go on until something is so.
async fn until(so: impl Fn() -> bool) {
    while !so() {
        tokio::task::yield_now().await;
    }
}

async fn let_go_on(wire: &mut BufReader<TcpStream>) {
    wire.write_all(b"go\n").await.unwrap();
}

async fn all_dead(mut wire: BufReader<TcpStream>) {
    let _ = wire.read_to_end(&mut Vec::new()).await;
}

#[tokio::test]
async fn what_runs_may_finish_when_the_worker_is_asked_to_stop() {
    let world = World::new("").await;
    let attempt = world.begin(1);
    let mut wire = world.ready().await;
    let stop = world.stop();
    until(|| world.worker.shutdown_reason().is_some()).await;
    assert_eq!(world.begin(2).await.unwrap().unwrap(), Verdict::Retry("asked to stop".into()));
    let_go_on(&mut wire).await;
    stop.await.unwrap();
    assert_eq!(attempt.await.unwrap().unwrap(), Verdict::Done);
    assert_eq!(world.task().await.state, TaskState::Succeeded);
    assert!(!world.is_known().await, "it said goodbye");
    all_dead(wire).await;
}

#[tokio::test]
async fn what_does_not_finish_in_time_is_handed_back_and_leaves_no_process() {
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
        // A process that ignores the request to end is killed half a second later, whenever that was sent.
        while before == DEAF && !stop.is_finished() {
            world.pass(500);
            tokio::task::yield_now().await;
        }
        stop.await.unwrap();
        assert_eq!(attempt.await.unwrap().unwrap(), Verdict::Done, "its message is done with");
        assert_eq!(world.hand_back_reason().await, "asked to stop");
        assert!(!world.is_known().await, "it said goodbye");
        all_dead(wire).await;
    }
}

#[tokio::test]
async fn a_worker_that_is_killed_kills_all_it_holds_at_once_and_ends() {
    let world = World::new(DEAF).await;
    let attempt = world.begin(1);
    let wire = world.ready().await;
    world.order(WorkerCommandKind::Kill).await;
    world.pass(10_000);
    assert_eq!(attempt.await.unwrap().unwrap(), Verdict::Done);
    world.worker.ended().await;
    assert_eq!(world.hand_back_reason().await, "the worker was killed by ada: it hangs");
    assert!(!world.is_known().await);
    assert!(matches!(world.begin(2).await.unwrap().unwrap(), Verdict::Retry(_)), "others shall do it");
    all_dead(wire).await;
}

#[tokio::test]
async fn a_worker_that_drains_takes_nothing_and_finishes_what_it_holds() {
    let world = World::new("").await;
    let attempt = world.begin(1);
    let mut wire = world.ready().await;
    world.order(WorkerCommandKind::Drain).await;
    world.pass(10_000);
    until(|| world.worker.shutdown_reason().is_some()).await;
    let later = Verdict::Retry("the worker was drained by ada: it hangs".into());
    assert_eq!(world.begin(2).await.unwrap().unwrap(), later);
    let_go_on(&mut wire).await;
    assert_eq!(attempt.await.unwrap().unwrap(), Verdict::Done);
    world.worker.ended().await;
    assert_eq!(world.task().await.state, TaskState::Succeeded);
}

#[tokio::test]
async fn an_order_that_comes_after_the_last_beat_is_heard_when_the_worker_leaves() {
    let world = World::new("").await;
    let attempt = world.begin(1);
    let mut wire = world.ready().await;
    world.order(WorkerCommandKind::Drain).await;
    let_go_on(&mut wire).await;
    assert_eq!(attempt.await.unwrap().unwrap(), Verdict::Done);
    world.worker.ended().await;
}

#[tokio::test]
async fn a_worker_that_comes_back_from_the_dead_stops_what_was_taken_from_it() {
    let world = World::new("").await;
    let attempt = world.begin(1);
    let wire = world.ready().await;
    let worker = world.worker.id();
    world.settle(engine::Command::Lose { task: TaskIndex(0), attempt: 1, worker }).await;
    let silent = world.runtime.store().silent(world.clock.now() + TimeDelta::days(1), 9).await.unwrap();
    world.runtime.store().forget_workers(&silent).await.unwrap();
    let before = world.task().await;
    world.pass(10_000);
    assert_eq!(attempt.await.unwrap().unwrap(), Verdict::Done);
    assert_eq!(world.task().await, before, "what it has to say of a failure does not count");
    all_dead(wire).await;
}

#[tokio::test]
async fn an_attempt_whose_run_is_cancelled_is_stopped_at_the_next_beat() {
    let world = World::new("").await;
    let attempt = world.begin(1);
    let wire = world.ready().await;
    world.settle(engine::Command::Cancel { actor: "ada".into(), reason: None }).await;
    world.pass(10_000);
    assert_eq!(attempt.await.unwrap().unwrap(), Verdict::Done);
    assert_eq!(world.task().await.state, TaskState::Cancelled);
    all_dead(wire).await;
}

/// A file system without room for anything more, over a folder; gone with this.
struct Full(PathBuf);

impl Full {
    /// None if whoever runs this may not mount one.
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
async fn a_worker_whose_disk_is_full_fails_the_attempt_and_lives() {
    let world = World::new("").await;
    let scratch = world.folder.path().join("scratch");
    let full = Full::over(&scratch);
    if full.is_none() {
        println!(
            "No file system may be mounted here: something else is in the way of the scratch directory."
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
    assert!(!world.is_known().await, "it holds nothing");
}

#[tokio::test]
async fn a_program_that_finds_the_disk_full_fails_and_its_last_words_are_kept() {
    let world = World::new("echo much > /dev/full || exit 7; ").await;
    assert_eq!(world.begin(1).await.unwrap().unwrap(), Verdict::Done);
    let failure = world.task().await.failure.unwrap();
    assert!(failure.message.contains('7'), "{}", failure.message);
    let key = TaskKey { run: world.run, task: TaskIndex(0) };
    let log = world.runtime.store().log(key, 1, 0, 99).await.unwrap();
    let said = log.iter().any(|(_, line)| line.line.contains("No space left on device"));
    assert!(said, "{log:?}");
    assert_eq!(world.worker.shutdown_reason(), None);
}

#[tokio::test]
async fn a_beat_says_which_hosts_are_not_called_for_a_while() {
    // Nobody listens there.
    let world = World::of(TaskKind::Http, |_| json!({"url": "http://127.0.0.1:1/"}), 20).await;
    let store = world.runtime.store();
    for attempt in 1..=10 {
        assert_eq!(world.worker.breakers.open(), [], "attempt {attempt}");
        world.begin(attempt).await.unwrap().unwrap();
        assert_eq!(world.task().await.state, TaskState::UpForRetry);
        world.pass(86_400_000);
        let due = store.due_timers(world.clock.now(), 1).await.unwrap().remove(0);
        world.settle(runtime::wake(due).1).await;
    }
    let open = world.worker.breakers.open();
    assert_eq!(open.iter().map(|breaker| breaker.host.as_str()).collect::<Vec<_>>(), ["127.0.0.1"]);
    assert!(world.worker.register().await.unwrap());
    let known = store.workers(TenantId::DEFAULT, None, 9).await.unwrap();
    assert_eq!(known[0].facts.as_ref().unwrap().breakers, open);
    world.worker.release().await;
}

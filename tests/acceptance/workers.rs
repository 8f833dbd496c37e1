//! Executors that are asked to stop, killed, or frozen in the middle of an attempt: processes of their own.

use std::process::Command;
use std::sync::Arc;

use bus::{Bus, SystemClock};
use model::message::WorkerKill;
use model::{EventKind, Instant, Message, RunId, RunState, TaskIndex, TaskKind, WorkerId};
use runtime::Runtime;
use serde_json::json;
use store::{Runs, Workers};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::processes::Cluster;
use crate::world::register;

/// A shell and its child, which say who carries out which attempt and go on until they are told to. Both hold the
/// connection: its end is the death of the last of them.
const TREE: &str = "exec 3<>/dev/tcp/127.0.0.1/$PORT
sleep 1000 > /dev/null 2>&1 &
echo \"$EBB_ATTEMPT $PPID\" >&3
read -r _ <&3";

/// A cluster with a run of one task that is tried once only.
struct Stage {
    cluster: Cluster,
    listener: TcpListener,
    run: RunId,
}

/// An attempt under way.
struct Attempt {
    number: u32,
    /// The executor that carries it out.
    process: u32,
    wire: BufReader<TcpStream>,
}

impl Stage {
    async fn set() -> Self {
        let cluster = Cluster::start().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut workflow = testkit::workflow("long");
        workflow.tasks[0].kind = TaskKind::Bash;
        let port = listener.local_addr().unwrap().port().to_string();
        workflow.tasks[0].config = json!({"command": TREE, "env": {"PORT": port}});
        assert_eq!(workflow.tasks[0].retry.max_retries, 0);
        register(&cluster.store, workflow).await;
        let run = cluster.request(&["example"], &json!({})).await.remove(0);
        Self { cluster, listener, run }
    }

    /// The next attempt that begins.
    async fn begun(&self) -> Attempt {
        let mut wire = BufReader::new(self.listener.accept().await.unwrap().0);
        let mut line = String::new();
        wire.read_line(&mut line).await.unwrap();
        let (number, process) = line.trim().split_once(' ').unwrap();
        Attempt { number: number.parse().unwrap(), process: process.parse().unwrap(), wire }
    }

    /// Lets an attempt finish, and sees that it is the second one and that the run succeeds by it.
    async fn succeeds_by(self, mut attempt: Attempt) -> Cluster {
        attempt.wire.write_all(b"go\n").await.unwrap();
        let record = self.cluster.finished(vec![self.run]).await.remove(0);
        assert_eq!(record.run.state, RunState::Succeeded, "{:?}", record.run.error);
        let task = self.cluster.store.run_tasks(self.run, None, None, 1).await.unwrap().remove(0).task;
        assert_eq!((task.attempt, attempt.number), (2, 2));
        self.cluster
    }

    /// The known worker with the lowest id.
    async fn first_worker(&self) -> WorkerId {
        let known = self.cluster.store.silent(Instant::MAX_UTC, 9).await.unwrap();
        known.into_iter().map(|silence| silence.worker).min().unwrap()
    }

    /// Why the first attempt was handed back.
    async fn handed_back(&self) -> String {
        let events = self.cluster.store.events(self.run, 0, 100).await.unwrap();
        let told = events.iter().find(|(_, event)| event.kind == EventKind::TaskHandedBack);
        told.expect("it was handed back").1.data["reason"].as_str().unwrap().to_owned()
    }
}

fn signal(process: u32, signal: &str) {
    assert!(Command::new("kill").args(["-s", signal, &process.to_string()]).status().unwrap().success());
}

async fn all_dead(mut attempt: Attempt) {
    let _ = attempt.wire.read_to_end(&mut Vec::new()).await;
}

/// Waits for a process of the cluster to end; answers whether it ended well.
fn ends_well(cluster: &mut Cluster, process: u32) -> bool {
    let ended = cluster.processes.iter_mut().find(|function| function.process.id() == process).unwrap();
    ended.process.wait().unwrap().success()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_executor_cannot_finish_when_it_is_asked_to_stop_goes_on_elsewhere() {
    let stage = Stage::set().await;
    let first = stage.begun().await;
    let stopped = first.process;
    signal(stopped, "TERM");
    let second = stage.begun().await;
    assert_ne!(second.process, stopped, "it runs on the other executor");
    all_dead(first).await;
    assert_eq!(stage.handed_back().await, "the worker's process was asked to stop");
    let mut cluster = stage.succeeds_by(second).await;
    assert!(ends_well(&mut cluster, stopped));
    assert_eq!(cluster.store.silent(Instant::MAX_UTC, 9).await.unwrap(), [], "all said goodbye");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_executor_that_is_killed_by_message_hands_back_what_it_holds_and_ends() {
    let stage = Stage::set().await;
    let first = stage.begun().await;
    let killed = first.process;
    let worker = stage.first_worker().await;
    let kill = WorkerKill { worker, actor: "ada".into(), reason: Some("it hangs".into()) };
    stage.cluster.broker.publish(&[Message::WorkerKill(kill)]).await.unwrap();
    let second = stage.begun().await;
    assert_ne!(second.process, killed, "it runs on the other executor");
    all_dead(first).await;
    assert_eq!(stage.handed_back().await, "the worker was killed by ada: it hangs");
    let mut cluster = stage.succeeds_by(second).await;
    assert!(ends_well(&mut cluster, killed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_executor_that_was_frozen_and_taken_for_dead_stops_what_was_taken_from_it() {
    let stage = Stage::set().await;
    let first = stage.begun().await;
    let worker = stage.first_worker().await;
    signal(first.process, "STOP");
    // As the sweep does after a minute of silence.
    let (store, broker) = (stage.cluster.store.clone(), stage.cluster.broker.clone());
    let runtime = Runtime::new(Arc::new(store), Arc::new(broker), Arc::new(SystemClock));
    let lose = engine::Command::Lose { task: TaskIndex(0), attempt: 1, worker };
    runtime.settle(stage.run, lose).await.unwrap();
    let second = stage.begun().await;
    assert_ne!(second.process, first.process, "it runs on the other executor");
    signal(first.process, "CONT");
    all_dead(first).await;
    stage.succeeds_by(second).await;
}

//! Executors that are stopped, killed or frozen in the middle of an attempt, as processes of their own.

use bus::{Bus, SystemClock};
use ebbflow_tests::signal;
use model::message::WorkerKill;
use model::{EventKind, Instant, Message, RunId, RunState, TaskIndex, TaskKind, WorkerId};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::processes::Cluster;

/// A shell and its child. They send the attempt's number and the executor's process id, and run until the test lets them
/// finish. Both hold the connection, so it closes when the last of them is dead.
const TREE: &str = "exec 3<>/dev/tcp/127.0.0.1/$PORT
sleep 1000 > /dev/null 2>&1 &
echo \"$EBB_ATTEMPT $PPID\" >&3
read -r _ <&3";

/// A cluster with a run of one task without retries.
struct LongTask {
    cluster: Cluster,
    listener: TcpListener,
    run: RunId,
}

/// An attempt that is running.
struct Attempt {
    number: u32,
    /// The process id of its executor.
    process: u32,
    connection: BufReader<TcpStream>,
}

impl LongTask {
    async fn start() -> Self {
        let cluster = Cluster::start().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut workflow = testkit::workflow("long");
        workflow.tasks[0].kind = TaskKind::Bash;
        let port = listener.local_addr().unwrap().port().to_string();
        workflow.tasks[0].config = json!({"command": TREE, "env": {"PORT": port}});
        assert_eq!(workflow.tasks[0].retry.max_retries, 0);
        workflow.tasks[0].idempotent = Some(true);
        cluster.register(workflow).await;
        let run = cluster.request(&["example"], &json!({})).await.remove(0);
        Self { cluster, listener, run }
    }

    /// Waits for the next attempt to begin.
    async fn next_attempt(&self) -> Attempt {
        let mut connection = BufReader::new(self.listener.accept().await.unwrap().0);
        let mut line = String::new();
        connection.read_line(&mut line).await.unwrap();
        let (number, process) = line.trim().split_once(' ').unwrap();
        Attempt { number: number.parse().unwrap(), process: process.parse().unwrap(), connection }
    }

    /// The worker that holds the running attempt. Others may be registered for a moment: they received the message twice.
    async fn holder(&self) -> WorkerId {
        self.cluster.tasks(self.run).await[0].task.worker.expect("a worker has claimed the attempt")
    }

    /// Lets an attempt finish, and checks that it is the second one and that the run succeeds.
    async fn succeeds_by(self, mut attempt: Attempt) -> Cluster {
        attempt.connection.write_all(b"go\n").await.unwrap();
        let record = self.cluster.finished(vec![self.run]).await.remove(0);
        assert_eq!(record.run.state, RunState::Succeeded, "{:?}", record.run.error);
        let task = self.cluster.tasks(self.run).await.remove(0).task;
        assert_eq!((task.attempt, attempt.number), (2, 2));
        self.cluster
    }

    /// Why the first attempt was handed back.
    async fn hand_back_reason(&self) -> String {
        let events = self.cluster.events(self.run).await;
        let event = events.iter().find(|event| event.kind == EventKind::TaskHandedBack);
        event.expect("it was handed back").data["reason"].as_str().unwrap().to_owned()
    }
}

/// Waits until every process of an attempt is dead.
async fn all_dead(mut attempt: Attempt) {
    let _ = attempt.connection.read_to_end(&mut Vec::new()).await;
}

fn exits_with_success(cluster: &mut Cluster, process: u32) -> bool {
    cluster.processes.iter_mut().find(|function| function.id() == process).unwrap().exits_with_success()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_that_a_stopping_executor_cannot_finish_is_handed_to_the_other_one() {
    let task = LongTask::start().await;
    let first = task.next_attempt().await;
    let stopped = first.process;
    signal("-TERM", stopped);
    let second = task.next_attempt().await;
    assert_ne!(second.process, stopped, "it runs on the other executor");
    all_dead(first).await;
    assert_eq!(task.hand_back_reason().await, "the worker's process was asked to stop");
    let mut cluster = task.succeeds_by(second).await;
    assert!(exits_with_success(&mut cluster, stopped));
    let workers = cluster.store().silent(Instant::MAX_UTC, 9).await.unwrap();
    assert_eq!(workers, [], "both workers have deregistered");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_executor_that_a_message_kills_hands_back_its_attempts_and_exits() {
    let task = LongTask::start().await;
    let first = task.next_attempt().await;
    let killed = first.process;
    let worker = task.holder().await;
    let kill = WorkerKill { worker, actor: "ada".into(), reason: Some("it hangs".into()) };
    task.cluster.bus.publish(&[Message::WorkerKill(kill)]).await.unwrap();
    let second = task.next_attempt().await;
    assert_ne!(second.process, killed, "it runs on the other executor");
    all_dead(first).await;
    assert_eq!(task.hand_back_reason().await, "the worker was killed by ada: it hangs");
    let mut cluster = task.succeeds_by(second).await;
    assert!(exits_with_success(&mut cluster, killed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_executor_that_was_frozen_and_declared_dead_stops_the_attempt_it_lost() {
    let task = LongTask::start().await;
    let first = task.next_attempt().await;
    let worker = task.holder().await;
    signal("-STOP", first.process);
    // As the sweep does after a minute without a heartbeat.
    let lose = engine::Command::Lose { task: TaskIndex(0), attempt: 1, worker };
    let sweep = task.cluster.process(SystemClock).await;
    sweep.settle(task.run, lose).await.unwrap();
    let second = task.next_attempt().await;
    assert_ne!(second.process, first.process, "it runs on the other executor");
    signal("-CONT", first.process);
    all_dead(first).await;
    task.succeeds_by(second).await;
}

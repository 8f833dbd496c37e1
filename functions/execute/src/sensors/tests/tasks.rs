//! A task whose sensor cannot poll.

use model::{Task, TaskIndex, TaskKey};

use super::*;

impl Bench {
    async fn task(&self, run: RunId) -> Task {
        self.tasks(run).await.remove(0).task
    }

    /// Polls for the first task of a run, as the sweep requests it. Returns how often that wrote the run.
    async fn poll_for(&self, run: RunId) -> i32 {
        let before = self.world.run(run).await.run;
        let task = self.task(run).await;
        let target = PollTarget::Task {
            key: TaskKey { run, task: TaskIndex(0) },
            attempt: 1,
            version: before.version,
            child: None,
            since: self.clock.now(),
            failed: task.failure.is_some(),
        };
        let due = PollDue { tenant: TenantId::DEFAULT, queue: "light".into(), target };
        self.executor.poll(&due).await.unwrap();
        self.world.run(run).await.run.revision - before.revision
    }
}

#[tokio::test]
async fn a_task_shows_why_its_source_is_down_and_is_written_only_when_that_changes() {
    let port = testkit::Port::reserve();
    let bench = Bench::new();
    bench
        .write(&format!(
            "name: waits\ntasks:\n  - {{name: poll, type: sensor, config: {{http: {{url: '{}/'}}}}}}\n",
            port.url()
        ))
        .await;
    let run = bench.start("waits").await;
    assert_eq!(bench.poll_for(run).await, 1);
    let task = bench.task(run).await;
    assert_eq!(task.state, model::TaskState::Sleeping, "it polls again");
    assert!(task.failure.is_some_and(|failure| failure.class == ErrorClass::Transient));
    assert_eq!(bench.poll_for(run).await, 0, "it is still down");
    let listener = TcpListener::bind(("127.0.0.1", port.number())).await.unwrap();
    let routes = Router::new().route("/", get(async || StatusCode::NOT_FOUND));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    assert_eq!(bench.poll_for(run).await, 1);
    assert_eq!(bench.task(run).await.failure, None, "it answers, although the condition does not hold");
    assert_eq!(bench.poll_for(run).await, 0);
}

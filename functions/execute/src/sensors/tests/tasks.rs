//! What is said of a task whose sensor cannot poll.

use model::{Task, TaskIndex, TaskKey};

use super::*;

impl Bench {
    async fn task(&self, run: RunId) -> Task {
        let store = self.executor.runtime.store();
        store.run_tasks(run, None, None, 1).await.unwrap().remove(0).task
    }

    /// Looks for the first task of a run, as the sweep asks for it. Answers how often the run was written meanwhile.
    async fn look_for(&self, run: RunId) -> i32 {
        let store = self.executor.runtime.store();
        let before = store.run(TenantId::DEFAULT, run).await.unwrap().unwrap().run;
        let task = self.task(run).await;
        let watch = Watch::Task {
            key: TaskKey { run, task: TaskIndex(0) },
            attempt: 1,
            version: before.version,
            child: None,
            since: self.clock.now(),
            failed: task.failure.is_some(),
        };
        let due = PollDue { tenant: TenantId::DEFAULT, queue: "light".into(), watch };
        self.executor.poll(&due).await.unwrap();
        store.run(TenantId::DEFAULT, run).await.unwrap().unwrap().run.revision - before.revision
    }
}

#[tokio::test]
async fn a_task_whose_source_is_down_says_why_until_it_is_back_and_is_written_only_when_that_changes() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let bench = Bench::new();
    bench
        .write(&format!(
            "name: waits\ntasks:\n  - {{name: poll, type: sensor, config: {{http: {{url: 'http://{address}/'}}}}}}\n"
        ))
        .await;
    let run = bench.start("waits", None).await;
    assert_eq!(bench.look_for(run).await, 1);
    let task = bench.task(run).await;
    assert_eq!(task.state, model::TaskState::Sleeping, "it looks again");
    assert!(task.failure.is_some_and(|failure| failure.class == ErrorClass::Transient));
    assert_eq!(bench.look_for(run).await, 0, "it is down as before");
    let listener = TcpListener::bind(address).await.unwrap();
    let routes = Router::new().route("/", get(async || StatusCode::NOT_FOUND));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    assert_eq!(bench.look_for(run).await, 1);
    assert_eq!(bench.task(run).await.failure, None, "it answers, though not as is wanted");
    assert_eq!(bench.look_for(run).await, 0);
}

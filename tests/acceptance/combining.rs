//! Commands that come together share transactions.

use engine::Command;
use model::TaskIndex;
use model::message::TaskResult;
use serde_json::Value;

use crate::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_reports_at_once_take_few_transactions() {
    let world = World::new().await;
    let names: Vec<String> = (0..100).map(|index| format!("t{index}")).collect();
    let mut workflow = testkit::workflow(&names.join(", "));
    // Work goes to a queue that nobody serves: the test completes the tasks itself.
    workflow.tasks.iter_mut().for_each(|task| task.queue = "nobody".into());
    world.register(workflow).await;
    let run = world.trigger("example").await;
    let before = world.run(run).await.run.revision;
    let started_at = world.runtime.clock().now();
    let reports: Vec<_> = (0..100)
        .map(|task| {
            let (runtime, result) = (world.runtime.clone(), TaskResult::Succeeded(Value::Null));
            let task = TaskIndex(task);
            let report = Command::Report { task, attempt: 1, worker: None, started_at, result };
            tokio::spawn(async move { runtime.settle(run, report).await.unwrap() })
        })
        .collect();
    for report in reports {
        assert_eq!(report.await.unwrap(), runtime::Settled::Applied);
    }
    let run = world.run(run).await.run;
    assert_eq!(run.state, model::RunState::Succeeded);
    // Each transaction writes the run once.
    let transactions = run.revision - before;
    assert!(transactions <= 20, "{transactions} transactions for 100 reports");
}

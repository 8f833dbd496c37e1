//! Commands that arrive together share transactions.

use engine::Command;
use futures::future::join_all;
use model::message::TaskResult;
use model::{RunId, RunState, TaskIndex};
use runtime::{Settled, StartRun};
use serde_json::Value;
use sqlx::Connection;
use testkit::start_run;

use crate::world::World;

fn success(world: &World, task: u32) -> Command {
    let (task, result) = (TaskIndex(task), TaskResult::Succeeded(Value::Null));
    Command::Report { task, attempt: 1, worker: None, started_at: world.now(), result }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_reports_at_once_take_three_transactions() {
    let world = World::new().await;
    let names: Vec<String> = (0..100).map(|index| format!("t{index}")).collect();
    let mut workflow = testkit::workflow(&names.join(", "));
    // No worker serves this queue: the test reports the results itself.
    workflow.tasks.iter_mut().for_each(|task| task.queue = "nobody".into());
    world.register(workflow).await;
    let run = world.start("example").await;
    let before = world.run(run).await.run.revision;
    // All of them are polled by one task, so none is settled before all are submitted: the first two open a transaction
    // each, and the others share the next one, on any machine.
    let reports = (0..100).map(|task| world.runtime.settle(run, success(&world, task)));
    for settled in join_all(reports).await {
        assert_eq!(settled.unwrap(), Settled::Applied);
    }
    let run = world.run(run).await.run;
    assert_eq!(run.state, RunState::Succeeded);
    // Each transaction writes the run once.
    assert!(run.revision - before <= 3, "{} transactions for 100 reports", run.revision - before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_a_hundred_runs_requested_at_once_is_created_once() {
    let world = World::new().await;
    world.register(testkit::workflow("a, b")).await;
    let requests: Vec<StartRun> = (0..100).map(|_| start_run("example")).collect();
    let start = |request: &StartRun| world.runtime.start(request.clone());
    // Each is requested twice. Which ones share a transaction depends on the machine; the tests of the inbox cover that.
    let started = join_all(requests.iter().chain(&requests).map(start)).await;
    let new = started.into_iter().filter(|started| started.as_ref().unwrap().new);
    assert_eq!(new.count(), 100);
    for request in &requests {
        assert_eq!(world.state(request.id).await, RunState::Succeeded);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_with_endless_conflicts_does_not_delay_the_others_of_its_batch() {
    let world = World::new().await;
    let mut workflow = testkit::workflow("a");
    workflow.tasks[0].queue = "nobody".into();
    world.register(workflow).await;
    let mut runs = Vec::new();
    for _ in 0..20 {
        runs.push(world.start("example").await);
    }
    let unlucky = runs[7];
    refuse_changes_of(&world, unlucky).await;
    let reports = runs.iter().map(|run| world.runtime.settle(*run, success(&world, 0)));
    for (run, settled) in runs.iter().zip(join_all(reports).await) {
        assert_eq!(settled.is_ok(), *run != unlucky, "{settled:?}");
    }
}

/// Makes every change of a run fail with a serialization conflict.
async fn refuse_changes_of(world: &World, run: RunId) {
    let mut connection = sqlx::PgConnection::connect(world.database_url()).await.unwrap();
    let refuse = format!(
        "create function refuse() returns trigger language plpgsql
             as $$ begin raise exception 'conflict' using errcode = '40001'; end $$;
         create trigger refuse before update on runs for each row when (new.id = '{run}')
             execute function refuse();"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(refuse)).execute(&mut connection).await.unwrap();
}

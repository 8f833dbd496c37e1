//! What comes together shares transactions.

use engine::Command;
use model::message::TaskResult;
use model::{RunId, TaskIndex};
use runtime::StartRun;
use serde_json::Value;
use sqlx::Connection;

use crate::world::{World, request};

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_runs_asked_for_at_once_take_few_transactions_and_each_comes_once() {
    let world = World::new().await;
    world.register(testkit::workflow("a, b")).await;
    let ids: Vec<RunId> = (0..100).map(|number| RunId(uuid::Uuid::from_u128(4_711 + number))).collect();
    let starts: Vec<_> = ids
        .iter()
        .map(|id| {
            let (runtime, request) = (world.runtime.clone(), StartRun { id: *id, ..request("example") });
            tokio::spawn(async move { runtime.start(request).await.unwrap().new })
        })
        .collect();
    for start in starts {
        assert!(start.await.unwrap());
    }
    for id in &ids {
        let again = world.runtime.start(StartRun { id: *id, ..request("example") }).await.unwrap();
        assert!(!again.new);
        assert_eq!(world.state(*id).await, model::RunState::Succeeded);
    }
    let mut connection = sqlx::PgConnection::connect(&world.database.url).await.unwrap();
    let count = "select count(distinct xmin::text) from run_facts";
    let transactions: i64 = sqlx::query_scalar(count).fetch_one(&mut connection).await.unwrap();
    // How many come together depends on the machine; that some do does not.
    assert!(transactions < 90, "{transactions} transactions for 100 runs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_meets_conflicts_for_ever_holds_up_nobody_who_came_with_it() {
    let world = World::new().await;
    let mut workflow = testkit::workflow("a");
    workflow.tasks[0].queue = "nobody".into();
    world.register(workflow).await;
    let mut runs = Vec::new();
    for _ in 0..20 {
        runs.push(world.trigger("example").await);
    }
    let unlucky = runs[7];
    refuse_changes_of(&world, unlucky).await;
    let started_at = world.runtime.clock().now();
    let reports = runs.iter().map(|run| {
        let result = TaskResult::Succeeded(Value::Null);
        let report = Command::Report { task: TaskIndex(0), attempt: 1, worker: None, started_at, result };
        world.runtime.settle(*run, report)
    });
    for (run, settled) in runs.iter().zip(futures::future::join_all(reports).await) {
        assert_eq!(settled.is_ok(), *run != unlucky, "{settled:?}");
    }
}

/// Lets every change of a run look like one that came too late.
async fn refuse_changes_of(world: &World, run: RunId) {
    let mut connection = sqlx::PgConnection::connect(&world.database.url).await.unwrap();
    let refuse = format!(
        "create function refuse() returns trigger language plpgsql
             as $$ begin raise exception 'too late' using errcode = '40001'; end $$;
         create trigger refuse before update on runs for each row when (new.id = '{run}')
             execute function refuse();"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(refuse)).execute(&mut connection).await.unwrap();
}

//! Completing a task writes as many rows as it has neighbours, however large the run is.

use model::RunState;
use model::message::TaskResult;
use serde_json::Value;

use crate::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_diamond_a_chain_and_a_wide_join_succeed() {
    let world = World::new().await;
    let chain: Vec<String> = (0..10).map(|index| format!("t{index}")).collect();
    for graph in ["a -> b, a -> c, b -> d, c -> d", &chain.join(" -> "), &wide(1_000)] {
        world.register(testkit::workflow(graph)).await;
        let run = world.start("example").await;
        world.bus.idle().await;
        assert_eq!(world.run(run).await.run.state, RunState::Succeeded);
        let released = world
            .events(run)
            .await
            .iter()
            .filter(|event| event.kind == model::EventKind::TaskDispatched)
            .count();
        assert_eq!(released, world.tasks(run).await.len(), "each task was released once");
    }
}

fn wide(width: usize) -> String {
    (0..width).map(|index| format!("p{index} -> join")).collect::<Vec<_>>().join(", ")
}

/// Rows written by completing one parent of a join of `width` parents.
async fn rows_written(width: usize) -> i64 {
    let world = World::new().await;
    // No worker serves this queue: the test reports the result itself.
    let mut workflow = testkit::workflow(&wide(width));
    workflow.tasks.iter_mut().for_each(|task| task.queue = "nobody".into());
    world.register(workflow).await;
    let run = world.start("example").await;
    world.bus.idle().await;
    let counter = counter::install(world.database_url()).await;
    world.report(run, 0, 1, TaskResult::Succeeded(Value::Null)).await;
    counter.rows(&[]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn completing_one_task_writes_as_many_rows_in_a_wide_run_as_in_a_narrow_one() {
    let (narrow, wide) = (rows_written(10).await, rows_written(500).await);
    assert_eq!(narrow, wide);
    assert!(wide <= 8, "{wide} rows for one completion");
}

pub(crate) mod counter {
    //! Counts written rows with triggers on every table.

    use sqlx::postgres::PgPool;

    pub(crate) struct Counter(PgPool);

    const INSTALL: &str = "
        create table written (name text not null);
        grant insert on written to public;
        create function count_written() returns trigger language plpgsql as $$
        begin insert into written values (tg_argv[0]); return null; end $$;
        do $$ declare t text; begin
            for t in select relname from pg_class where relnamespace = 'public'::regnamespace
                     and relkind in ('r', 'p') and not relispartition
                     and relname not in ('written', '_sqlx_migrations') loop
                execute format('create trigger count_written after insert or update or delete on %I
                                for each row execute function count_written(%L)', t, t);
            end loop;
        end $$;";

    pub(crate) async fn install(url: &str) -> Counter {
        let pool = PgPool::connect(url).await.unwrap();
        sqlx::raw_sql(INSTALL).execute(&pool).await.unwrap();
        Counter(pool)
    }

    impl Counter {
        /// The rows written so far, except those of some tables.
        pub(crate) async fn rows(&self, except: &[&str]) -> i64 {
            let count = sqlx::query_scalar("select count(*) from written where name <> all($1)");
            let count = count.bind(except).fetch_one(&self.0).await.unwrap();
            self.0.close().await;
            count
        }
    }
}

//! Fan-outs on a real database: wide ones finish, and cost no more per child than narrow ones.

use model::{EventKind, RunState};
use serde_json::json;

use crate::rows::counter;
use crate::world::World;

const WIDE: &str = "
name: wide
inputs: {n: {type: integer}}
tasks:
  - {name: list, type: transform, config: {expression: range(inputs.n) | list}}
  - {name: split, type: fan_out, depends_on: [list], for_each: outputs.list, task: {type: noop}}
  - {name: merge, type: fan_in, depends_on: [split]}
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fan_out_of_ten_thousand_children_succeeds_and_is_collected() {
    let world = World::new().await;
    world.write(WIDE).await;
    let run = world.start_with("wide", &json!({"n": 10_000})).await.unwrap();
    let record = world.finished(run).await.run;
    assert_eq!(record.state, RunState::Succeeded, "{:?}", record.error);
    assert_eq!(record.counts.total(), 10_003);
    assert_eq!(world.output(run, 1).await, json!({"count": 10_000, "succeeded": 10_000, "failed": 0}));
    assert_eq!(world.output(run, 2).await["count"], 10_000);
    let events = world.events(run).await;
    let released = events.iter().filter(|event| event.kind == EventKind::TaskDispatched);
    assert_eq!(released.count(), 10_000, "each child was released once");
}

/// Tables that are written once for each transaction. How many children share one depends on the machine.
const PER_TRANSACTION: [&str; 3] = ["limits", "outbox", "runs"];

async fn rows_per_child(n: i64) -> f64 {
    let world = World::new().await;
    world.write(WIDE).await;
    let counter = counter::install(world.database_url()).await;
    let run = world.start_with("wide", &json!({"n": n})).await.unwrap();
    assert_eq!(world.state(run).await, RunState::Succeeded);
    counter.rows(&PER_TRANSACTION).await as f64 / n as f64
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_of_a_wide_fan_out_writes_no_more_rows_than_one_of_a_narrow_one() {
    let (narrow, wide) = (rows_per_child(100).await, rows_per_child(2_000).await);
    assert!(wide <= 1.3 * narrow, "{wide:.1} rows written for each of 2,000, {narrow:.1} for each of 100");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_see_their_item_and_their_outputs_are_aggregated() {
    let world = World::new().await;
    let text = "
name: each
tasks:
  - name: split
    type: fan_out
    for_each: '[{\"n\": 2}, {\"n\": 3}, {\"n\": 4}]'
    max_parallel: 2
    task: {type: echo, config: {twice: \"{{ item.n * 2 }}\", index: \"{{ index }}\", by: \"{{ task.name }}\"}}
  - {name: all, type: fan_in, depends_on: [split], aggregation: collect}
  - {name: sum, type: fan_in, depends_on: [split], aggregation: sum, field: twice}
  - {name: last, type: fan_in, depends_on: [split], aggregation: last}
";
    world.write(text).await;
    let run = world.start("each").await;
    assert_eq!(world.state(run).await, RunState::Succeeded);
    let child = |n: u32, index: u32| json!({"twice": 2 * n, "index": index, "by": format!("split__{index}")});
    let all = json!({"count": 3, "results": [child(2, 0), child(3, 1), child(4, 2)]});
    assert_eq!(world.output(run, 1).await, all);
    assert_eq!(world.output(run, 2).await, json!({"count": 3, "total": 18}));
    assert_eq!(world.output(run, 3).await, child(4, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_for_each_that_is_not_a_list_fails_the_fan_out_with_the_reason() {
    let world = World::new().await;
    let text = "
name: none
tasks:
  - {name: split, type: fan_out, for_each: run.id, task: {type: noop}}
";
    world.write(text).await;
    let run = world.start("none").await;
    let record = world.finished(run).await.run;
    let expected = "task `split` failed: `for_each` must be a list, and `run.id` is a text";
    assert_eq!((record.state, record.error.as_deref()), (RunState::Failed, Some(expected)));
}

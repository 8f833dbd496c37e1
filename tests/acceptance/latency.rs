//! How long one step takes to lead to the next, on an idle system.

use chrono::TimeDelta;
use model::RunState;

use crate::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_step_leads_to_the_next_within_ten_milliseconds() {
    let world = World::new().await;
    let names: Vec<String> = (0..10).map(|index| format!("t{index}")).collect();
    world.register(testkit::workflow(&names.join(" -> "))).await;
    let mut gaps: Vec<TimeDelta> = Vec::new();
    for _ in 0..20 {
        let run = world.trigger("example").await;
        world.broker.idle().await;
        assert_eq!(world.run(run).await.run.state, RunState::Succeeded);
        let tasks = world.tasks(run).await;
        let step =
            |pair: &[store::TaskRecord]| pair[1].task.started_at.unwrap() - pair[0].task.finished_at.unwrap();
        gaps.extend(tasks.windows(2).map(step));
    }
    gaps.sort();
    let (p50, p99) = (gaps[gaps.len() / 2], gaps[gaps.len() * 99 / 100]);
    println!(
        "step latency: p50 {} µs, p99 {} µs",
        p50.num_microseconds().unwrap(),
        p99.num_microseconds().unwrap()
    );
    assert!(p50 <= TimeDelta::milliseconds(10), "p50 is {p50}");
}

//! Diamonds, many at once: two tasks end at the same time, and what joins them begins once.

use std::time::Duration;

use anyhow::Result;

use super::chain::IN_FLIGHT;
use super::load;
use super::percentiles::Percentiles;
use super::report::{Figure, Outcome};
use super::workflows;
use super::world::Bench;

pub(super) async fn run(bench: &Bench) -> Result<Outcome> {
    let world = bench.world().await?;
    world.register(&[workflows::diamond("diamond")]).await?;
    let span = bench.size(Duration::from_secs(10), Duration::from_secs(2));
    let load = load::keep_busy(bench, world, "diamond", IN_FLIGHT, span).await?;
    let times = Percentiles::of(load.run_times);
    let figures = vec![
        Figure::new("tasks ended", load.rate, "/s"),
        Figure::new("a run, p50", times.at(50), "ms"),
        Figure::new("a run, p99", times.at(99), "ms"),
        Figure::new("undone transactions per step", load.counters.rollbacks as f64 / load.steps, ""),
    ];
    Ok(Outcome::new("diamond", format!("a start, two branches, a join; {IN_FLIGHT} runs at once"), figures))
}

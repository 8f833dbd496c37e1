//! Several processes of each function: whether they are in each other's way.

use std::time::Duration;

use anyhow::Result;

use super::chain::IN_FLIGHT;
use super::report::{Figure, Outcome};
use super::world::Bench;
use super::{load, wide, workflows};

pub(super) async fn run(bench: &Bench) -> Result<Outcome> {
    let what = "chains of 10, with one and with two processes of each function; then one fan-out of 10,000";
    let one = load(bench, 1).await?;
    let two = load(bench, 2).await?;
    let wide = wide_rate(bench).await?;
    let undone = |load: &load::Load| load.counters.rollbacks as f64 / load.steps;
    let figures = vec![
        Figure::new("tasks ended, one of each", one.rate, "/s"),
        Figure::new("tasks ended, two of each", two.rate, "/s"),
        Figure::new("two against one", two.rate / one.rate, "×"),
        Figure::new("undone transactions per step, one", undone(&one), "").at_most(0.01),
        Figure::new("undone transactions per step, two", undone(&two), "").at_most(0.01),
        Figure::new("transactions per step, two", two.counters.commits as f64 / two.steps, ""),
        Figure::new("tasks of one wide run, two of each", wide, "/s"),
        Figure::new("one wide run against many runs, two of each", wide / two.rate, "×").at_least(0.6),
    ];
    Ok(Outcome::new("instances", what, figures)
        .noting("pushes go over HTTP here, through a balancer in this process; all share the same cores"))
}

/// How many tasks of a single run end in a second, with two processes of each function.
async fn wide_rate(bench: &Bench) -> Result<f64> {
    let size = bench.size(10_000, 1_000);
    let world = bench.processes(2).await?;
    world.register(&[workflows::wide("wide")]).await?;
    wide::time(&world, 100, 3).await?; // Caches fill.
    let seconds = wide::time(&world, size, 1).await?;
    world.close().await?;
    Ok(size as f64 / seconds)
}

async fn load(bench: &Bench, instances: usize) -> Result<load::Load> {
    let world = bench.processes(instances).await?;
    world.register(&[workflows::chain("chain", 10)]).await?;
    let span = bench.size(Duration::from_secs(10), Duration::from_secs(2));
    load::keep_busy(bench, world, "chain", IN_FLIGHT, span).await
}

//! Several processes of each function: whether they are in each other's way.

use std::time::Duration;

use anyhow::Result;

use super::chain::IN_FLIGHT;
use super::load;
use super::processes::Programs;
use super::report::{Figure, Outcome};
use super::workflows;
use super::world::Bench;

pub(super) async fn run(bench: &Bench) -> Result<Outcome> {
    let what = "chains of 10, with one and with two processes of each function";
    let Some(programs) = Programs::find() else {
        return Ok(Outcome::new("instances", what, Vec::new()).noting(Programs::MISSING));
    };
    let one = load(bench, &programs, 1).await?;
    let two = load(bench, &programs, 2).await?;
    let figures = vec![
        Figure::new("tasks ended, one of each", one.rate, "/s"),
        Figure::new("tasks ended, two of each", two.rate, "/s"),
        Figure::new("two against one", two.rate / one.rate, "×"),
        Figure::new("undone transactions per step, one", one.counters.rollbacks as f64 / one.steps, ""),
        Figure::new("undone transactions per step, two", two.counters.rollbacks as f64 / two.steps, ""),
        Figure::new("transactions per step, two", two.counters.commits as f64 / two.steps, ""),
    ];
    Ok(Outcome::new("instances", what, figures)
        .noting("pushes go over HTTP here, through a balancer in this process; all share the same cores"))
}

async fn load(bench: &Bench, programs: &Programs, instances: usize) -> Result<load::Load> {
    let world = bench.processes(programs, instances).await?;
    world.register(&[workflows::chain("chain", 10)]).await?;
    let span = bench.size(Duration::from_secs(10), Duration::from_secs(2));
    load::keep_busy(bench, world, "chain", IN_FLIGHT, span).await
}

//! Diamonds, many at once: two tasks end at the same time, and what joins them begins once.

use std::time::Duration;

use anyhow::Result;

use super::chain::IN_FLIGHT;
use super::load;
use super::report::Outcome;
use super::workflows;
use super::world::Bench;

pub(super) async fn run(bench: &Bench) -> Result<Outcome> {
    let world = bench.world().await?;
    world.register(&[workflows::diamond("diamond")]).await?;
    let span = bench.size(Duration::from_secs(10), Duration::from_secs(2));
    let load = load::keep_busy(bench, world, "diamond", IN_FLIGHT, span).await?;
    Ok(Outcome::new(
        "diamond",
        format!("a start, two branches, a join; {IN_FLIGHT} runs at once"),
        load.figures(),
    ))
}

//! From one step to the next, when nothing else is under way.

use anyhow::Result;
use serde_json::Map;

use super::percentiles::Percentiles;
use super::report::{Figure, Outcome};
use super::workflows;
use super::world::Bench;

pub(super) async fn run(bench: &Bench) -> Result<Outcome> {
    let runs = bench.size(100, 20);
    let world = bench.world().await?;
    world.register(&[workflows::chain("chain", 10)]).await?;
    for _ in 0..runs {
        world.trigger("chain", Map::new()).await?;
        world.drain().await?;
    }
    let (gaps, wholes): (Vec<f64>, Vec<f64>) = world.gauge.steps().await?.into_iter().unzip();
    let (gaps, wholes) = (Percentiles::of(gaps), Percentiles::of(wholes));
    world.close().await?;
    let figures = vec![
        Figure::new("one step to the next, p50", gaps.at(50), "ms").at_most(2.0),
        Figure::new("one step to the next, p99", gaps.at(99), "ms").at_most(8.0),
        Figure::new("one step to the next, most", gaps.most(), "ms"),
        Figure::new("a whole step, p50", wholes.at(50), "ms"),
        Figure::new("a whole step, p99", wholes.at(99), "ms"),
    ];
    Ok(Outcome::new("latency", format!("{runs} chains of 10 tasks, one after the other"), figures))
}

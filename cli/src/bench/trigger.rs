//! How long it takes until a run that was asked for is accepted, and cannot be lost any more.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Map;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use super::percentiles::Percentiles;
use super::report::{Figure, Outcome};
use super::workflows;
use super::world::{Bench, World};

/// Requests in a second.
const RATE: u32 = 200;

pub(super) async fn run(bench: &Bench) -> Result<Outcome> {
    let seconds = bench.size(15, 3);
    let world = bench.world().await?;
    world.register(&[workflows::chain("one", 1)]).await?;
    ask(&world, RATE / 2).await?; // Connections are made.
    let answers = Percentiles::of(ask(&world, RATE * seconds).await?);
    world.drain().await?;
    world.close().await?;
    let figures = vec![
        Figure::new("accepted, p50", answers.at(50), "ms").at_most(3.0),
        Figure::new("accepted, p99", answers.at(99), "ms").at_most(20.0),
        Figure::new("accepted, most", answers.most(), "ms"),
    ];
    Ok(Outcome::new(
        "trigger",
        format!("runs of one task by the API, {RATE} in a second for {seconds} s"),
        figures,
    ))
}

/// Asks for so many runs at the rate, whether or not the earlier ones were answered. Answers how long each took from
/// when it was due, in milliseconds.
async fn ask(world: &World, runs: u32) -> Result<Vec<f64>> {
    let mut ticks = interval(Duration::from_secs(1) / RATE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut asked: JoinSet<crate::client::Result<f64>> = JoinSet::new();
    for _ in 0..runs {
        let due = ticks.tick().await.into_std();
        let post = world.post("one", Map::new());
        asked.spawn(async move {
            post.await?;
            Ok(Instant::now().duration_since(due).as_secs_f64() * 1e3)
        });
    }
    Ok(asked.join_all().await.into_iter().collect::<crate::client::Result<_>>()?)
}

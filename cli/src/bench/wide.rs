//! A wide fan-out against narrow ones: what a task costs must not depend on how many stand beside it.

use std::time::Instant;

use anyhow::Result;
use serde_json::{Map, Value};

use super::percentiles::Percentiles;
use super::report::{Figure, Outcome};
use super::workflows;
use super::world::{Bench, World};

pub(super) async fn run(bench: &Bench) -> Result<Outcome> {
    let wide = bench.size(10_000, 2_000);
    let narrow = 100;
    let world = bench.world().await?;
    world.register(&[workflows::wide("wide")]).await?;
    time(&world, narrow, 3).await?; // Caches fill.
    let alone: Vec<f64> = {
        let mut times = Vec::new();
        for _ in 0..20 {
            times.push(time(&world, narrow, 1).await?);
        }
        times
    };
    let narrow_cost = Percentiles::of(alone).at(50) / narrow as f64;
    let wide_cost = time(&world, wide, 1).await? / wide as f64;
    let many_cost = time(&world, narrow, wide / narrow).await? / wide as f64;
    world.close().await?;
    let figures = vec![
        Figure::new("cost of a task, wide against 100", wide_cost / narrow_cost, "×").at_most(1.3),
        Figure::new("a task of a fan-out of 100", narrow_cost * 1e6, "µs"),
        Figure::new("a task of the wide one", wide_cost * 1e6, "µs"),
        Figure::new("tasks of the wide one", 1.0 / wide_cost, "/s"),
        Figure::new("tasks of as many in fan-outs of 100 at once", 1.0 / many_cost, "/s"),
        Figure::new("the wide one against many at once", many_cost / wide_cost, "×").at_least(0.6),
    ];
    Ok(Outcome::new(
        "wide",
        format!("a fan-out of {wide}, 20 of {narrow} in turn, and {} at once", wide / narrow),
        figures,
    ))
}

/// How many seconds it takes to run fan-outs of a size, so many at once.
pub(super) async fn time(world: &World, size: usize, runs: usize) -> Result<f64> {
    let items = Value::from((0..size).collect::<Vec<usize>>());
    let inputs = Map::from_iter([("items".to_owned(), items)]);
    let started = Instant::now();
    let posts = (0..runs).map(|_| world.trigger("wide", inputs.clone()));
    futures::future::try_join_all(posts).await?;
    world.drain().await?;
    Ok(started.elapsed().as_secs_f64())
}

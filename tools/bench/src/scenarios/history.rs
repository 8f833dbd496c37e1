//! A database with many finished runs, compared with an empty one.

use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::Result;
use api::page::Page;
use api::views::RunView;
use serde_json::Map;

use super::throughput::IN_FLIGHT;
use crate::percentiles::Percentiles;
use crate::report::{Figure, Outcome};
use crate::world::{Bench, World};
use crate::{load, workflows};

/// Runs written by one statement.
const BATCH: u32 = 50_000;

/// The filters that people use most on the list of runs.
const LISTS: [&[(&str, &str)]; 4] =
    [&[], &[("state", "succeeded")], &[("state", "failed")], &[("workflow", "one"), ("state", "succeeded")]];

pub(super) async fn run(bench: &Bench) -> Result<Outcome> {
    let runs: u32 = bench.size(1_000_000, 20_000);
    let span = bench.size(Duration::from_secs(15), Duration::from_secs(2));
    let empty = load::keep_busy(bench, prepared(bench).await?, "chain", IN_FLIGHT, span).await?;
    let world = prepared(bench).await?;
    fill(bench, &world, "one", 0..runs, runs).await?;
    world.database.vacuum().await?;
    let pages = Percentiles::of(read_pages(&world, bench.size(50, 5)).await?);
    bench.progress("measuring history: the load");
    let full = load::keep_busy(bench, world, "chain", IN_FLIGHT, span).await?;
    let figures = vec![
        Figure::new("tasks completed, full vs. empty history", full.rate / empty.rate, "×").at_least(0.9),
        Figure::new("tasks completed, empty", empty.rate, "/s"),
        Figure::new("tasks completed, full", full.rate, "/s"),
        Figure::new("a page of runs, p50", pages.at(50), "ms"),
        Figure::new("a page of runs, p95", pages.at(95), "ms").at_most(50.0),
    ];
    Ok(Outcome::new("history", format!("{runs} finished runs of one task"), figures))
}

async fn prepared(bench: &Bench) -> Result<World> {
    let world = bench.world().await?;
    world.register(&[workflows::chain("chain", 10), workflows::chain("one", 1)]).await?;
    Ok(world)
}

/// Copies one real run of a workflow: `copies` out of `all`.
pub(super) async fn fill(
    bench: &Bench,
    world: &World,
    workflow: &str,
    copies: Range<u32>,
    all: u32,
) -> Result<()> {
    world.trigger(workflow, Map::new()).await?;
    world.drain().await?;
    for first in copies.clone().step_by(BATCH as usize) {
        bench.progress(&format!("{first} of {all} runs are written"));
        world.database.copy_run(first, BATCH.min(copies.end - first), all).await?;
    }
    Ok(())
}

/// The times of the first `pages` pages of several lists of the API, in milliseconds.
async fn read_pages(world: &World, pages: u32) -> Result<Vec<f64>> {
    let (client, mut times) = (world.client(), Vec::new());
    for list in LISTS {
        let mut cursor = None;
        for _ in 0..pages {
            let mut query: Vec<(&str, String)> =
                list.iter().map(|(name, text)| (*name, (*text).into())).collect();
            query.push(("limit", "50".into()));
            query.extend(cursor.take().map(|cursor| ("cursor", cursor)));
            let started = Instant::now();
            let page: Page<RunView> = client.get(&["runs"], &query).await?;
            times.push(started.elapsed().as_secs_f64() * 1e3);
            cursor = page.next_cursor;
        }
    }
    Ok(times)
}

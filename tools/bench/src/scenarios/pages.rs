//! Every page of the console, on a database with many runs.

use std::time::Instant;

use anyhow::{Context, Result};
use api::page::Page;
use api::views::RunView;
use serde_json::Map;

use super::history;
use crate::percentiles::Percentiles;
use crate::report::{Figure, Outcome};
use crate::workflows;
use crate::world::{Bench, World};

/// The workflows that share the runs.
const WORKFLOWS: u32 = 20;

/// The files that a browser fetches for the first page.
const FETCHED: [&str; 4] = ["/", "/style.css", "/console.js", "/icon.svg"];

/// The pages with a fixed address, and the name of each figure.
const PAGES: [(&str, &str); 21] = [
    ("home", "/"),
    ("workflows", "/workflows"),
    ("workflows, searched", "/workflows?q=flow-1"),
    ("workflow", "/workflows/flow-7"),
    ("workflow: versions", "/workflows/flow-7/versions"),
    ("workflow: source", "/workflows/flow-7/source"),
    ("workflow: run", "/workflows/flow-7/trigger"),
    ("workflow: backfill", "/workflows/flow-7/backfill"),
    ("runs", "/runs"),
    ("runs, filtered", "/runs?workflow=flow-7&state=failed"),
    ("queues and limits", "/operations"),
    ("workers", "/operations/workers"),
    ("timers", "/operations/timers"),
    ("schedules", "/operations/schedules"),
    ("triggers", "/operations/triggers"),
    ("backfills", "/operations/backfills"),
    ("dead letters", "/operations/dead-letters"),
    ("breakers", "/operations/breakers"),
    ("audit log", "/operations/audit"),
    ("health", "/operations/health"),
    ("palette", "/palette"),
];

/// The goal for each page, in milliseconds.
const MAX_TIME: f64 = 100.0;

/// The goal for the size of the first page, in kilobytes.
const MAX_SIZE: f64 = 100.0;

pub(super) async fn run(bench: &Bench) -> Result<Outcome> {
    let (runs, children) = bench.size((1_000_000, 10_000_usize), (20_000, 500));
    let world = bench.world().await?;
    let names: Vec<String> = (0..WORKFLOWS).map(|number| format!("flow-{number}")).collect();
    let mut written: Vec<_> = names.iter().map(|name| workflows::chain(name, 1)).collect();
    written.extend([workflows::chain("chain", 50), workflows::wide("wide")]);
    world.register(&written).await?;
    let share = runs / WORKFLOWS;
    for (name, first) in names.iter().zip((0..runs).step_by(share as usize)) {
        history::fill(bench, &world, name, first..first + share, runs).await?;
    }
    world.trigger("wide", workflows::items(children)).await?;
    world.trigger("chain", Map::new()).await?;
    world.drain().await?;
    world.database.vacuum().await?;
    let mut figures = Vec::new();
    for (name, path) in pages(&world).await? {
        bench.progress(&format!("measuring pages: {path}"));
        let times = Percentiles::of(read(&world, &path, bench.size(100, 5)).await?);
        figures.push(Figure::new(name, times.at(95), "ms").at_most(MAX_TIME));
    }
    figures.push(Figure::new("the first page", first_page(&world).await?, "KB").at_most(MAX_SIZE));
    world.close().await?;
    let what = format!("{runs} finished runs of {WORKFLOWS} workflows; each page, p95");
    Ok(Outcome::new("pages", what, figures))
}

/// Every page: the name of its figure, and its address.
async fn pages(world: &World) -> Result<Vec<(&'static str, String)>> {
    let (wide, chain) = (newest(world, "wide").await?, newest(world, "chain").await?);
    let old = format!("/runs?workflow=flow-7&state=succeeded&cursor={}", late_cursor(world).await?);
    let mut pages: Vec<(&str, String)> = PAGES.map(|(name, path)| (name, path.to_owned())).into();
    pages.extend([
        ("runs, a page far back", old),
        ("run of 50 tasks", format!("/runs/{chain}")),
        ("run: timeline", format!("/runs/{chain}?tab=events")),
        ("run: inputs and outputs", format!("/runs/{chain}?tab=data")),
        ("run: try an expression", format!("/runs/{chain}?tab=try&expression=inputs")),
        ("run of a large fan-out", format!("/runs/{wide}")),
        ("run: children", format!("/runs/{wide}?parent=spread")),
        ("run: timeline of a large fan-out", format!("/runs/{wide}?tab=events")),
        ("task", format!("/runs/{chain}/tasks/t7")),
        ("task: child", format!("/runs/{wide}/tasks/spread__7")),
    ]);
    Ok(pages)
}

/// The newest run of a workflow.
async fn newest(world: &World, workflow: &str) -> Result<String> {
    let query = [("workflow", workflow.to_owned()), ("limit", "1".to_owned())];
    let page: Page<RunView> = world.client().get(&["runs"], &query).await?;
    Ok(page.items.first().context("there is a run")?.id.to_string())
}

/// The cursor of a page of runs far from the first one.
async fn late_cursor(world: &World) -> Result<String> {
    let mut cursor = None;
    for _ in 0..5 {
        let mut query = vec![("workflow", "flow-7".to_owned()), ("limit", "100".to_owned())];
        query.push(("state", "succeeded".to_owned()));
        query.extend(cursor.take().map(|cursor| ("cursor", cursor)));
        let page: Page<RunView> = world.client().get(&["runs"], &query).await?;
        cursor = page.next_cursor;
    }
    cursor.context("there are more runs")
}

/// How long a page takes, measured `times` times, in milliseconds.
async fn read(world: &World, path: &str, times: u32) -> Result<Vec<f64>> {
    let mut took = Vec::new();
    for _ in 0..times {
        let started = Instant::now();
        world.page(path).await?;
        took.push(started.elapsed().as_secs_f64() * 1e3);
    }
    Ok(took)
}

/// The size of the first page with its assets, in kilobytes.
async fn first_page(world: &World) -> Result<f64> {
    let mut bytes = 0;
    for path in FETCHED {
        bytes += world.page(path).await?.len();
    }
    Ok(bytes as f64 / 1e3)
}

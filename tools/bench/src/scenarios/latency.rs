//! The latency of a step, a request, a registration and the start of a process.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Map;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::percentiles::Percentiles;
use crate::processes::Processes;
use crate::report::{Figure, Outcome};
use crate::world::{Bench, World};
use crate::{usage, workflows};

/// The offered load, in requests per second.
const RATE: u32 = 200;

/// Workflows in one request.
const WORKFLOWS: usize = 500;

/// From one step to the next, when nothing else is running.
pub(super) async fn latency(bench: &Bench) -> Result<Outcome> {
    let runs = bench.size(100, 20);
    let world = bench.world().await?;
    world.register(&[workflows::chain("chain", 10)]).await?;
    for _ in 0..runs {
        world.trigger("chain", Map::new()).await?;
        world.drain().await?;
    }
    let (gaps, wholes): (Vec<f64>, Vec<f64>) = world.database.steps().await?.into_iter().unzip();
    let (gaps, wholes) = (Percentiles::of(gaps), Percentiles::of(wholes));
    world.close().await?;
    let figures = vec![
        Figure::new("one step to the next, p50", gaps.at(50), "ms").at_most(2.0),
        Figure::new("one step to the next, p99", gaps.at(99), "ms").at_most(8.0),
        Figure::new("one step to the next, maximum", gaps.at(100), "ms"),
        Figure::new("whole step, p50", wholes.at(50), "ms"),
        Figure::new("whole step, p99", wholes.at(99), "ms"),
    ];
    Ok(Outcome::new("latency", format!("{runs} chains of 10 tasks, one after the other"), figures))
}

/// From the request for a run until it is accepted and durable.
pub(super) async fn trigger(bench: &Bench) -> Result<Outcome> {
    let seconds = bench.size(15, 3);
    let world = bench.world().await?;
    world.register(&[workflows::chain("one", 1)]).await?;
    request(&world, RATE / 2).await?; // Opens connections.
    let responses = Percentiles::of(request(&world, RATE * seconds).await?);
    world.drain().await?;
    world.close().await?;
    let figures = vec![
        Figure::new("accepted, p50", responses.at(50), "ms").at_most(3.0),
        Figure::new("accepted, p99", responses.at(99), "ms").at_most(20.0),
        Figure::new("accepted, maximum", responses.at(100), "ms"),
    ];
    let what = format!("runs of one task through the API, {RATE} per second for {seconds} s");
    Ok(Outcome::new("trigger", what, figures))
}

/// Requests runs at a constant rate, without waiting for earlier responses. Returns how long each response took from
/// when its request was due, in milliseconds.
async fn request(world: &World, runs: u32) -> Result<Vec<f64>> {
    let mut ticks = interval(Duration::from_secs(1) / RATE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut requests = JoinSet::new();
    for _ in 0..runs {
        let due = ticks.tick().await.into_std();
        let post = world.trigger("one", Map::new());
        requests.spawn(async move {
            post.await?;
            Ok(Instant::now().duration_since(due).as_secs_f64() * 1e3)
        });
    }
    requests.join_all().await.into_iter().collect()
}

/// Many workflows in one request.
pub(super) async fn register(bench: &Bench) -> Result<Outcome> {
    let written: Vec<_> = (0..WORKFLOWS).map(|number| workflows::chain(&format!("w{number}"), 10)).collect();
    let world = bench.world().await?;
    let mut times = Vec::new();
    for _ in 0..2 {
        let started = Instant::now();
        world.register(&written).await?;
        times.push(started.elapsed().as_secs_f64());
    }
    world.close().await?;
    let figures = vec![
        Figure::new("registered", times[0], "s").at_most(5.0),
        Figure::new("the same again, unchanged", times[1], "s"),
    ];
    Ok(Outcome::new("register", format!("{WORKFLOWS} workflows of 10 tasks in one request"), figures))
}

/// From the start of a function's process until it is ready, and its memory while it is idle.
pub(super) async fn start(bench: &Bench) -> Result<Outcome> {
    let rounds = bench.size(10, 2);
    let scratch = bench.scratch().await?;
    store::Postgres::migrate(&scratch.url()).await?;
    let (mut took, mut memory) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let processes = Processes::start(&scratch.url(), 1, &[]).await?;
        for function in processes.functions() {
            took.push(function.took.as_secs_f64() * 1e3);
            memory.extend(usage::memory(&function.process_id().to_string()));
        }
    }
    scratch.drop().await?;
    let (took, memory) = (Percentiles::of(took), Percentiles::of(memory));
    let figures = vec![
        Figure::new("start to ready, p50", took.at(50), "ms").at_most(50.0),
        Figure::new("start to ready, maximum", took.at(100), "ms"),
        Figure::new("memory of an idle function, maximum", memory.at(100), "MB").at_most(25.0),
    ];
    Ok(Outcome::new("start", format!("each function as a process, {rounds} times"), figures))
}

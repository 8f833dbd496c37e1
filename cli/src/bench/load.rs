//! Keeping many runs under way, and what that cost.

use std::time::{Duration, Instant};

use anyhow::Result;
use clock::{Clock, SystemClock};
use gauge::{Counters, Statement};
use serde_json::Map;
use tokio::task::JoinSet;
use tokio::time::interval;

use super::usage::{self, Processors};
use super::world::{Bench, World};

/// How often to look how many runs are under way.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What a load was.
pub(super) struct Load {
    /// Steps that ended in a second while runs were kept coming.
    pub(super) rate: f64,
    /// Steps that ended in all, until everything had.
    pub(super) steps: f64,
    /// Runs that were started.
    pub(super) runs: f64,
    pub(super) messages: f64,
    /// Processor time for each step while runs were kept coming, in microseconds.
    pub(super) used: Option<Processors>,
    /// The most memory of this process, in megabytes.
    pub(super) memory: Option<f64>,
    pub(super) run_times: Vec<f64>,
    /// None where they cannot be counted.
    pub(super) statements: Option<Vec<Statement>>,
    pub(super) counters: Counters,
}

/// Keeps `in_flight` runs of a workflow under way for a while, on a world that ends with it.
pub(super) async fn keep_busy(
    bench: &Bench,
    world: World,
    workflow: &str,
    in_flight: i64,
    span: Duration,
) -> Result<Load> {
    // Caches fill, statements are prepared, connections are made.
    start_runs(&world, workflow, in_flight, span / 5).await?;
    let counts = world.gauge.count_statements().await?;
    let (server, name) = (bench.server().await?, world.database());
    let before = (server.counters(&name).await?, world.broker.published(), Processors::now());
    let from = SystemClock.now();
    let (runs, memory) = start_runs(&world, workflow, in_flight, span).await?;
    let (to, used) = (SystemClock.now(), Processors::now());
    world.drain().await?;
    let messages = (world.broker.published() - before.1) as f64;
    let statements = if counts { Some(world.gauge.statements().await?) } else { None };
    let within = world.gauge.tasks_ended(from, to).await? as f64;
    let steps = world.gauge.tasks_ended(from, SystemClock.now()).await? as f64;
    let run_times = world.gauge.run_times().await?;
    let used = used.zip(before.2).map(|(after, before)| after.since(before).per(within / 1e6));
    // Sessions tell what they did when they end.
    let scratch = world.stop().await?;
    server.until_left(&name).await?;
    let counters = server.counters(&name).await?.since(before.0);
    scratch.drop().await?;
    let seconds = (to - from).as_seconds_f64();
    let rate = within / seconds;
    Ok(Load { rate, steps, runs, messages, used, memory, run_times, statements, counters })
}

/// Starts runs for so long, as many as are missing. Answers how many that were, and the most memory meanwhile.
async fn start_runs(
    world: &World,
    workflow: &str,
    in_flight: i64,
    span: Duration,
) -> Result<(f64, Option<f64>)> {
    let (started, mut ticks) = (Instant::now(), interval(LOOK_EVERY));
    let (mut runs, mut memory) = (0.0, None);
    let mut posts: JoinSet<crate::client::Result<()>> = JoinSet::new();
    while started.elapsed() < span {
        let missing = in_flight - world.gauge.unfinished().await? - posts.len() as i64;
        for _ in 0..missing {
            posts.spawn(world.post(workflow, Map::new()));
            runs += 1.0;
        }
        memory = memory.into_iter().chain(usage::memory("self")).reduce(f64::max);
        ticks.tick().await;
        while let Some(posted) = posts.try_join_next() {
            posted??;
        }
    }
    while let Some(posted) = posts.join_next().await {
        posted??;
    }
    Ok((runs, memory))
}

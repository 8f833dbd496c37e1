//! Keeps many runs in progress, and measures what that costs.

use std::time::{Duration, Instant};

use crate::database::{Counters, Database, Statement};
use anyhow::Result;
use bus::SystemClock;
use model::Clock;
use serde_json::Map;
use tokio::task::JoinSet;
use tokio::time::interval;

use crate::percentiles::Percentiles;
use crate::report::Figure;
use crate::usage::{self, Processors};
use crate::world::{Bench, World};

/// How often to start the missing runs.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The measurements of a load.
pub(crate) struct Load {
    /// Steps per second while runs were being started.
    pub(crate) rate: f64,
    /// All steps, until every run had ended.
    pub(crate) steps: f64,
    pub(crate) runs: f64,
    pub(crate) messages: f64,
    /// Processor time per step while runs were being started, in microseconds.
    pub(crate) used: Option<Processors>,
    /// The peak memory of this process, in megabytes.
    pub(crate) memory: Option<f64>,
    pub(crate) run_times: Vec<f64>,
    /// None where they cannot be counted.
    pub(crate) statements: Option<Vec<Statement>>,
    pub(crate) counters: Counters,
}

impl Load {
    /// First the tasks per second, then what a step cost.
    pub(crate) fn figures(&self) -> Vec<Figure> {
        let per_step = |count: f64| count / self.steps;
        let times = Percentiles::of(self.run_times.clone());
        let mut figures = vec![
            Figure::new("tasks completed", self.rate, "/s"),
            Figure::new("run, p50", times.at(50), "ms"),
            Figure::new("run, p99", times.at(99), "ms"),
            Figure::new("messages per step", per_step(self.messages), "").at_most(2.0),
            Figure::new("transactions per step", per_step(self.counters.commits as f64), "").at_most(1.0),
            Figure::new("rolled-back transactions per step", per_step(self.counters.rollbacks as f64), ""),
            Figure::new("disk syncs per step", per_step(self.counters.syncs as f64), ""),
            Figure::new("runs started", self.runs, ""),
        ];
        if let Some(used) = &self.used {
            figures.push(Figure::new("CPU time of ebb per step", used.own, "µs"));
            figures.push(Figure::new("total CPU time per step", used.all, "µs"));
        }
        if let Some(statements) = &self.statements {
            let calls: i64 = statements.iter().map(|statement| statement.calls).sum();
            figures.push(Figure::new("statements per step", per_step(calls as f64), ""));
        }
        figures
    }
}

/// Counts what a world costs its database.
pub(crate) struct Meter {
    /// Whether this Postgres counts statements.
    counts: bool,
    server: Database,
    before: Counters,
}

/// What a world has cost its database.
pub(crate) struct Cost {
    /// None where they cannot be counted.
    pub(crate) statements: Option<Vec<Statement>>,
    pub(crate) counters: Counters,
}

impl Cost {
    /// The number of statements, if they were counted.
    pub(crate) fn calls(&self) -> Option<i64> {
        Some(self.statements.as_ref()?.iter().map(|statement| statement.calls).sum())
    }
}

impl Meter {
    /// Begins to count what this world does.
    pub(crate) async fn start(bench: &Bench, world: &World) -> Result<Self> {
        let counts = world.database.reset_statements().await;
        let server = bench.server().await?;
        let before = server.counters(world.name()).await?;
        Ok(Self { counts, server, before })
    }

    /// Closes the world: sessions report their totals when they end.
    pub(crate) async fn stop(self, world: World) -> Result<Cost> {
        let (statements, own) = match self.counts {
            true => (Some(world.database.statements().await?), world.database.own_statements().await?),
            false => (None, 0),
        };
        let name = world.name().to_owned();
        let scratch = world.stop().await?;
        self.server.wait_until_unused(&name).await?;
        let counters = self.server.counters(&name).await?.since(self.before);
        // The benchmark's own statements are transactions, too.
        let counters = Counters { commits: counters.commits - own, ..counters };
        scratch.drop().await?;
        Ok(Cost { statements, counters })
    }
}

/// Keeps `in_flight` runs of a workflow in progress for `span`, then closes the world.
pub(crate) async fn keep_busy(
    bench: &Bench,
    world: World,
    workflow: &str,
    in_flight: i64,
    span: Duration,
) -> Result<Load> {
    let (meter, begun) = (Meter::start(bench, &world).await?, SystemClock.now());
    let published = world.broker.published();
    // Warm-up: caches fill, statements are prepared, connections are opened. It counts for the cost of a step, since
    // sessions report their totals late, but not for the rate.
    let (first_runs, _) = start_runs(&world, workflow, in_flight, span / 5).await?;
    let (from, used) = (SystemClock.now(), Processors::now());
    let (runs, memory) = start_runs(&world, workflow, in_flight, span).await?;
    let (to, used) = (SystemClock.now(), used.zip(Processors::now()));
    world.drain().await?;
    let messages = (world.broker.published() - published) as f64;
    let within = world.database.tasks_finished(from, to).await? as f64;
    let steps = world.database.tasks_finished(begun, SystemClock.now()).await? as f64;
    let run_times = world.database.run_times().await?;
    let used = used.map(|(before, after)| after.since(before).per(within / 1e6));
    let Cost { statements, counters } = meter.stop(world).await?;
    let runs = first_runs + runs;
    let seconds = (to - from).as_seconds_f64();
    let rate = within / seconds;
    Ok(Load { rate, steps, runs, messages, used, memory, run_times, statements, counters })
}

/// Starts the missing runs again and again for `span`. Returns how many it started, and the peak memory.
async fn start_runs(
    world: &World,
    workflow: &str,
    in_flight: i64,
    span: Duration,
) -> Result<(f64, Option<f64>)> {
    let (started, mut ticks) = (Instant::now(), interval(POLL_INTERVAL));
    let (mut runs, mut memory) = (0.0, None);
    let mut posts: JoinSet<Result<()>> = JoinSet::new();
    while started.elapsed() < span {
        let missing = in_flight - world.database.unfinished_runs().await? - posts.len() as i64;
        for _ in 0..missing {
            posts.spawn(world.trigger(workflow, Map::new()));
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

//! Keeping many runs under way, and what that cost.

use std::time::{Duration, Instant};

use anyhow::Result;
use clock::{Clock, SystemClock};
use gauge::{Counters, Statement};
use serde_json::Map;
use tokio::task::JoinSet;
use tokio::time::interval;

use super::percentiles::Percentiles;
use super::report::Figure;
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

impl Load {
    /// What there is to say of it: first how many tasks ended, then what a step cost.
    pub(super) fn figures(&self) -> Vec<Figure> {
        let per_step = |count: f64| count / self.steps;
        let times = Percentiles::of(self.run_times.clone());
        let mut figures = vec![
            Figure::new("tasks ended", self.rate, "/s"),
            Figure::new("a run, p50", times.at(50), "ms"),
            Figure::new("a run, p99", times.at(99), "ms"),
            Figure::new("messages per step", per_step(self.messages), "").at_most(2.0),
            Figure::new("transactions per step", per_step(self.counters.commits as f64), "").at_most(1.0),
            Figure::new("undone transactions per step", per_step(self.counters.rollbacks as f64), ""),
            Figure::new("writes through to disk per step", per_step(self.counters.syncs as f64), ""),
            Figure::new("runs started", self.runs, ""),
        ];
        if let Some(used) = &self.used {
            figures.push(Figure::new("processor time of ebb per step", used.own, "µs"));
            figures.push(Figure::new("processor time of all per step", used.all, "µs"));
        }
        if let Some(statements) = &self.statements {
            let calls: i64 = statements.iter().map(|statement| statement.calls).sum();
            figures.push(Figure::new("statements per step", per_step(calls as f64), ""));
        }
        figures
    }
}

/// Keeps `in_flight` runs of a workflow under way for a while, on a world that ends with it.
pub(super) async fn keep_busy(
    bench: &Bench,
    world: World,
    workflow: &str,
    in_flight: i64,
    span: Duration,
) -> Result<Load> {
    let counts = world.gauge.count_statements().await?;
    let (server, name) = (bench.server().await?, world.database());
    let (begun, before) = (SystemClock.now(), server.counters(&name).await?);
    let published = world.broker.published();
    // Caches fill, statements are prepared, connections are made. This counts for what a step costs, since sessions tell
    // late what they did; not for how many there are in a second.
    let (first_runs, _) = start_runs(&world, workflow, in_flight, span / 5).await?;
    let (from, used) = (SystemClock.now(), Processors::now());
    let (runs, memory) = start_runs(&world, workflow, in_flight, span).await?;
    let (to, used) = (SystemClock.now(), used.zip(Processors::now()));
    world.drain().await?;
    let messages = (world.broker.published() - published) as f64;
    let within = world.gauge.tasks_ended(from, to).await? as f64;
    let steps = world.gauge.tasks_ended(begun, SystemClock.now()).await? as f64;
    let run_times = world.gauge.run_times().await?;
    let (statements, own) = match counts {
        true => (Some(world.gauge.statements().await?), world.gauge.own_statements().await?),
        false => (None, 0),
    };
    let used = used.map(|(before, after)| after.since(before).per(within / 1e6));
    let scratch = world.stop().await?;
    server.until_left(&name).await?;
    let counters = server.counters(&name).await?.since(before);
    // Each look of our own was a transaction too.
    let counters = Counters { commits: counters.commits - own, ..counters };
    scratch.drop().await?;
    let runs = first_runs + runs;
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

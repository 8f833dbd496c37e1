//! Many listeners, slow clients, rejected tokens and forged cursors at once, while other callers start runs. Everything goes
//! to loopback, and is limited in time and in requests.

mod forged;
mod slow;
mod strangers;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use super::history;
use crate::percentiles::Percentiles;
use crate::processes::{Function, Processes};
use crate::report::{Figure, Outcome};
use crate::world::{Bench, World};
use crate::{usage, workflows};
use strangers::Strangers;

/// Runs that other callers start per second.
const RATE: u32 = 20;

/// The share of the requests with rejected tokens that must have been sent and answered in time.
const MIN_RATE: f64 = 0.95;

/// The share of them that may remain without a response: the server closes idle connections where there are too many.
const MAX_UNANSWERED: f64 = 0.001;

/// Lists that are read, and streams that are resumed, with forged cursors per second.
const MIN_FORGED: f64 = 1.0;

/// The function that serves the API.
const API: &str = "trigger";

/// How many there are of each.
#[derive(Clone, Copy)]
struct Size {
    listeners: usize,
    slow_clients: usize,
    /// Requests with rejected tokens per second.
    rejected: u32,
    history: u32,
    span: Duration,
}

const FULL: Size = Size {
    listeners: 500,
    slow_clients: 1_000,
    rejected: 10_000,
    history: 1_000_000,
    span: Duration::from_secs(60),
};

const QUICK: Size =
    Size { listeners: 20, slow_clients: 40, rejected: 200, history: 2_000, span: Duration::from_secs(3) };

pub(super) async fn run(bench: &Bench) -> Result<Outcome> {
    let size = bench.size(FULL, QUICK);
    check_open_files(size.listeners + size.slow_clients)?;
    let world = bench.processes(1).await?;
    world.register(&[workflows::chain("chain", 10), workflows::chain("one", 1)]).await?;
    history::fill(bench, &world, "one", 0..size.history, size.history).await?;
    world.database.vacuum().await?;
    bench.progress("measuring crowd: alone");
    let alone = start_runs(&world, size.span / 4).await?;
    bench.progress("measuring crowd: together");
    let strangers = Strangers::arrive(world.server(), size).await?;
    // Where this is not possible, the peak since the start counts.
    functions(&world).for_each(|function| drop(usage::forget_peak(&function.process_id().to_string())));
    let together = start_runs(&world, size.span).await?;
    strangers.wait_for_listeners(size.listeners).await;
    let (api, others) = (peak_memory(&world, |name| name == API), peak_memory(&world, |name| name != API));
    let seen = strangers.leave().await;
    let accepted = alone.len() + together.len();
    world.drain().await?;
    let succeeded = world.database.succeeded_runs("chain").await?;
    ensure!(succeeded == accepted as i64, "{accepted} runs were accepted, and {succeeded} have succeeded");
    world.close().await?;
    let (alone, together) = (Percentiles::of(alone), Percentiles::of(together));
    let per_second = |count: u64| count as f64 / seen.seconds;
    let mut figures = vec![
        Figure::new("run accepted, p99", together.at(99), "ms").at_most(250.0),
        Figure::new("run accepted, p50", together.at(50), "ms"),
        Figure::new("run accepted, p99, alone", alone.at(99), "ms"),
        Figure::new("runs accepted, all succeeded", accepted as f64, ""),
        Figure::new("server errors", seen.server_errors as f64, "").at_most(0.0),
        Figure::new("requests refused with 503", seen.busy as f64, "").at_most(0.0),
        Figure::new("tokens rejected", per_second(seen.rejected), "/s")
            .at_least(f64::from(size.rejected) * MIN_RATE),
        Figure::new("tokens accepted", seen.believed as f64, "").at_most(0.0),
        Figure::new("requests without a response", seen.failed as f64, "")
            .at_most(seen.rejected as f64 * MAX_UNANSWERED),
        Figure::new("lists read with forged cursors", per_second(seen.forged), "/s").at_least(MIN_FORGED),
        Figure::new("event streams resumed with forged cursors", per_second(seen.resumed), "/s")
            .at_least(MIN_FORGED),
        Figure::new("listeners that received events", seen.listeners as f64, "")
            .at_least(size.listeners as f64),
        Figure::new("listeners that were connected until the end", seen.connected as f64, "")
            .at_least(size.listeners as f64),
        Figure::new("gaps in what listeners received", seen.gaps as f64, "").at_most(0.0),
        Figure::new("connections of slow clients", seen.slow_clients as f64, ""),
    ];
    for (name, memory) in [("peak memory of the API", api), ("peak memory of another function", others)] {
        figures.extend(memory.map(|memory| Figure::new(name, memory, "MB").at_most(200.0)));
    }
    let what = format!(
        "{} listeners of a tenant, {} clients that send or read slowly, {} rejected tokens per second and forged cursors over \
         {} runs, while {RATE} runs per second are started",
        size.listeners, size.slow_clients, size.rejected, size.history
    );
    Ok(Outcome::new("crowd", what, figures))
}

/// The processes of all functions.
fn functions(world: &World) -> impl Iterator<Item = &Function> {
    world.functions().into_iter().flat_map(Processes::functions)
}

/// The most memory that one of the functions with such names had, in megabytes.
fn peak_memory(world: &World, is_meant: impl Fn(&str) -> bool) -> Option<f64> {
    let meant = functions(world).filter(|function| is_meant(function.name()));
    meant.filter_map(|function| usage::peak_memory(&function.process_id().to_string())).reduce(f64::max)
}

/// Starts runs at a constant rate. Returns how long each took to be accepted, in milliseconds.
async fn start_runs(world: &World, span: Duration) -> Result<Vec<f64>> {
    let mut ticks = interval(Duration::from_secs(1) / RATE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (started, mut posts) = (Instant::now(), JoinSet::new());
    while started.elapsed() < span {
        let due = ticks.tick().await.into_std();
        let post = world.trigger_once("chain");
        posts.spawn(async move { post.await.map(|()| due.elapsed().as_secs_f64() * 1e3) });
    }
    let times: Vec<Result<f64>> = posts.join_all().await;
    times.into_iter().collect()
}

/// Fails if this process may not open enough files; the server's process has the same limit.
fn check_open_files(connections: usize) -> Result<()> {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let limit = limit.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    let needed = connections + 500;
    ensure!(
        limit.is_none_or(|limit| limit >= needed),
        "this needs {needed} open files, and the limit is {}: run `ulimit -n {needed}` first",
        limit.unwrap_or_default()
    );
    Ok(())
}

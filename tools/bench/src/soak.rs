//! `soak`: a mixed load for any length, while processes are killed. What should stay flat is sampled, drawn and judged:
//! memory, connections, dead rows, idle transactions and latency.

mod chart;
mod mix;
mod sample;
mod summary;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bus::SystemClock;
use chrono::{DurationRound, TimeDelta};
use clap::Args;
use model::Clock;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

use crate::world::{Bench, World};
use mix::Mix;
use sample::{Sample, Sampler};
pub(crate) use summary::Summary;

/// How often missing runs are started.
const TOP_UP_INTERVAL: Duration = Duration::from_millis(100);

/// The number of samples in a soak; at least a second is between two.
const SAMPLES: u32 = 240;

/// How long no run may end after the load, lost workers included.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(300);

/// The processes of each function.
const INSTANCES: usize = 2;

/// A shorter soak measures no idle minute, runs no programs, and its curves are not judged.
const MIN_JUDGED: Duration = Duration::from_secs(300);

#[derive(Args)]
pub(crate) struct Soak {
    /// How long to keep the load up
    #[arg(long, default_value_t = 20.0, value_name = "N")]
    minutes: f64,
    /// How many runs to keep in progress
    #[arg(long, default_value_t = 50, value_name = "N")]
    runs: usize,
    /// Kill a process with SIGKILL this often; 0 kills none
    #[arg(long, default_value_t = 30.0, value_name = "SECONDS")]
    kill_every: f64,
    /// The folder for soak.csv, soak.svg and soak.md
    #[arg(long, default_value = "soak", value_name = "DIR")]
    out: PathBuf,
    /// A server to use instead of an embedded one; a database is created there, and dropped
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
}

impl Soak {
    fn length(&self) -> Result<Duration> {
        let seconds = self.minutes * 60.0;
        if !(1.0..=30.0 * 86_400.0).contains(&seconds) {
            bail!("--minutes is {}; it must be from 0.02 (a second) to 43200 (30 days)", self.minutes);
        }
        Ok(Duration::from_secs_f64(seconds))
    }

    /// How often to kill a process.
    fn kill_interval(&self) -> Result<Option<Duration>> {
        match self.kill_every {
            0.0 => Ok(None),
            seconds if (0.1..=86_400.0).contains(&seconds) => Ok(Some(Duration::from_secs_f64(seconds))),
            other => bail!("--kill-every is {other}; it must be 0 or from 0.1 to 86400 seconds"),
        }
    }
}

#[tokio::main]
pub(crate) async fn run(args: &Soak) -> Result<Summary> {
    let bench = Bench::start(false, args.database_url.clone()).await?;
    let summary = soak(&bench, args).await;
    bench.close().await;
    summary
}

async fn soak(bench: &Bench, args: &Soak) -> Result<Summary> {
    let (length, kills) = (args.length()?, args.kill_interval()?);
    std::fs::create_dir_all(&args.out).with_context(|| format!("cannot create {}", args.out.display()))?;
    let is_judged = length >= MIN_JUDGED;
    let mut world = bench.processes(INSTANCES).await?;
    let ticking = tick_every_minute(&world)?;
    bench.progress("soaking: the idle minute before");
    let idle_before = if is_judged { idle_minute(&world).await? } else { None };
    let mut mix = Mix::register(&world, is_judged).await?;
    let samples = load(bench, &mut world, &mut mix, args.runs, length, kills).await?;
    bench.progress("soaking: the last runs end");
    pause_schedules(&world).await?;
    // What was lost with the last process is found now, not at the next full minute.
    world.functions().context("the functions are processes")?.ticker()?.tick();
    drain(&world, &mut mix).await?;
    let ended = world.database.ended().await?;
    bench.progress("soaking: the idle minute after");
    let idle_after = if is_judged { idle_minute(&world).await? } else { None };
    ticking.abort();
    world.close().await?;
    let idle = idle_before.zip(idle_after);
    let (minutes, runs) = (args.minutes, args.runs);
    let summary = Summary { minutes, runs, is_judged, mix: mix.counts, ended, idle, samples };
    summary.write(&args.out)?;
    Ok(summary)
}

/// Keeps the load up, kills processes, and samples.
async fn load(
    bench: &Bench,
    world: &mut World,
    mix: &mut Mix,
    runs: usize,
    length: Duration,
    kills: Option<Duration>,
) -> Result<Vec<Sample>> {
    let (started, mut sampler, mut samples) = (Instant::now(), Sampler::default(), Vec::new());
    let mut top_ups = every(TOP_UP_INTERVAL);
    let mut sampling = every((length / SAMPLES).max(Duration::from_secs(1)));
    let mut killing = every(kills.unwrap_or(length * 2));
    killing.tick().await;
    let mut victim = 0;
    while started.elapsed() < length {
        tokio::select! {
            _ = top_ups.tick() => mix.top_up(world, runs).await?,
            _ = killing.tick() => {
                let functions = world.functions_mut().context("the functions are processes")?.functions_mut();
                // One function after the other. The first process of each lives through, so that a leak shows.
                let count = functions.len() / INSTANCES;
                functions[victim % count * INSTANCES + 1].replace()?;
                victim += 1;
                mix.counts.kills += 1;
            }
            _ = sampling.tick() => {
                let sample = sampler.take(started.elapsed(), world, mix).await?;
                bench.progress(&format!("soaking: {:.0} s, {} runs in progress", sample.seconds, sample.in_progress));
                samples.push(sample);
            }
        }
    }
    Ok(samples)
}

/// Ticks that come late are left out.
fn every(period: Duration) -> tokio::time::Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Waits until every run has ended. Cancels those that wait to be cancelled.
async fn drain(world: &World, mix: &mut Mix) -> Result<()> {
    let (mut fewest, mut last_end, mut ticks) = (i64::MAX, Instant::now(), every(TOP_UP_INTERVAL));
    loop {
        mix.top_up(world, 0).await?;
        let unfinished = world.database.unfinished_runs().await?;
        if unfinished == 0 && mix.is_idle() {
            return Ok(());
        }
        if unfinished < fewest {
            (fewest, last_end) = (unfinished, Instant::now());
        }
        if last_end.elapsed() > DRAIN_TIMEOUT {
            // They are counted as lost.
            return Ok(());
        }
        ticks.tick().await;
    }
}

/// Ticks the sweep now and at every full minute.
fn tick_every_minute(world: &World) -> Result<tokio::task::JoinHandle<()>> {
    let ticker = world.functions().context("the functions are processes")?.ticker()?;
    Ok(tokio::spawn(async move {
        loop {
            ticker.tick();
            let (now, minute) = (SystemClock.now(), TimeDelta::minutes(1));
            SystemClock.wait_until(now.duration_trunc(minute).unwrap_or(now) + minute).await;
        }
    }))
}

/// Stops the schedule, so that runs can end.
async fn pause_schedules(world: &World) -> Result<()> {
    let body = json!({"reason": "the soak has ended"});
    let _: Value =
        world.client().post(&["schedules", mix::SCHEDULED, "pause"], HeaderMap::new(), &body).await?;
    Ok(())
}

/// The number of Ebbflow's statements from half a minute before a tick to half a minute after it; none where they cannot be
/// counted.
async fn idle_minute(world: &World) -> Result<Option<i64>> {
    let minute = TimeDelta::minutes(1);
    let now = SystemClock.now();
    let from = now.duration_trunc(minute).unwrap_or(now) + minute * 3 / 2;
    SystemClock.wait_until(from).await;
    if !world.database.reset_statements().await {
        return Ok(None);
    }
    SystemClock.wait_until(from + minute).await;
    let statements = world.database.statements().await?;
    Ok(Some(statements.iter().map(|statement| statement.calls).sum()))
}

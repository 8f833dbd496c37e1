//! Tasks per second: chains, diamonds, fan-outs, and several processes of each function.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures::future::try_join_all;

use crate::load::{self, Load};
use crate::percentiles::Percentiles;
use crate::report::{Figure, Outcome, StatementCost};
use crate::world::{Bench, World};
use crate::{usage, workflows};

/// Tasks of a chain.
const LENGTH: usize = 10;

/// Runs in progress at the same time.
pub(super) const IN_FLIGHT: i64 = 256;

async fn chain_load(bench: &Bench) -> Result<Load> {
    let world = bench.world().await?;
    world.register(&[workflows::chain("chain", LENGTH)]).await?;
    let span = bench.size(Duration::from_secs(15), Duration::from_secs(2));
    load::keep_busy(bench, world, "chain", IN_FLIGHT, span).await
}

pub(super) async fn chain(bench: &Bench) -> Result<Outcome> {
    Ok(chain_outcome("chain", &chain_load(bench).await?))
}

/// The same, with every statement.
pub(super) async fn statements(bench: &Bench) -> Result<Outcome> {
    Ok(chain_outcome("statements", &chain_load(bench).await?))
}

fn chain_outcome(name: &'static str, load: &Load) -> Outcome {
    let mut figures = load.figures();
    let finished = figures.remove(0).at_least(10_000.0);
    figures.insert(0, finished);
    let what = format!("chains of {LENGTH} tasks that do nothing, {IN_FLIGHT} runs at once");
    let outcome = Outcome::new(name, what, figures);
    let Some(statements) = &load.statements else {
        return outcome.with_note("this Postgres has no pg_stat_statements: statements are not counted");
    };
    Outcome { statements: statements.iter().map(|it| StatementCost::of(it, load.steps)).collect(), ..outcome }
}

/// The memory of this process: `ebb dev`, and the load generator.
pub(super) async fn memory(bench: &Bench) -> Result<Outcome> {
    let idle = usage::memory("self");
    let load = chain_load(bench).await?;
    let figures = match idle.zip(load.memory) {
        Some((idle, max)) => {
            vec![
                Figure::new("before", idle, "MB"),
                Figure::new("under load, maximum", max, "MB").at_most(150.0),
            ]
        }
        None => Vec::new(),
    };
    let outcome = Outcome::new("memory", "this process under the load of `chain`, without Postgres", figures);
    Ok(match idle {
        Some(_) => outcome,
        None => outcome.with_note("not measured: this system has no /proc"),
    })
}

/// Two tasks end at the same time, and the task that joins them starts once.
pub(super) async fn diamond(bench: &Bench) -> Result<Outcome> {
    let world = bench.world().await?;
    world.register(&[workflows::diamond("diamond")]).await?;
    let span = bench.size(Duration::from_secs(10), Duration::from_secs(2));
    let load = load::keep_busy(bench, world, "diamond", IN_FLIGHT, span).await?;
    let what = format!("a start, two branches, a join; {IN_FLIGHT} runs at once");
    Ok(Outcome::new("diamond", what, load.figures()))
}

/// A wide fan-out compared with narrow ones: the cost of a task must not depend on the number of its siblings.
pub(super) async fn wide(bench: &Bench) -> Result<Outcome> {
    let (wide, narrow) = (bench.size(10_000, 2_000), 100);
    let world = bench.world().await?;
    world.register(&[workflows::wide("wide")]).await?;
    time_fan_outs(&world, narrow, 3).await?; // Fills caches.
    let mut alone = Vec::new();
    for _ in 0..20 {
        alone.push(time_fan_outs(&world, narrow, 1).await?);
    }
    let narrow_cost = Percentiles::of(alone).at(50) / narrow as f64;
    let wide_cost = time_fan_outs(&world, wide, 1).await? / wide as f64;
    let many_cost = time_fan_outs(&world, narrow, wide / narrow).await? / wide as f64;
    world.close().await?;
    let figures = vec![
        Figure::new("cost per task, one wide fan-out vs. fan-outs of 100", wide_cost / narrow_cost, "×")
            .at_most(1.3),
        Figure::new("a task of a fan-out of 100", narrow_cost * 1e6, "µs"),
        Figure::new("a task of the wide fan-out", wide_cost * 1e6, "µs"),
        Figure::new("tasks of the wide fan-out", 1.0 / wide_cost, "/s"),
        Figure::new("tasks of concurrent fan-outs of 100", 1.0 / many_cost, "/s"),
        Figure::new("wide vs. concurrent", many_cost / wide_cost, "×").at_least(0.6),
    ];
    let what = format!("a fan-out of {wide}, 20 of {narrow} in turn, and {} at once", wide / narrow);
    Ok(Outcome::new("wide", what, figures))
}

/// Runs `runs` fan-outs of `size` tasks at once. Returns how many seconds that takes.
async fn time_fan_outs(world: &World, size: usize, runs: usize) -> Result<f64> {
    let inputs = workflows::items(size);
    let started = Instant::now();
    try_join_all((0..runs).map(|_| world.trigger("wide", inputs.clone()))).await?;
    world.drain().await?;
    Ok(started.elapsed().as_secs_f64())
}

/// Several processes of each function, which must not slow each other down.
pub(super) async fn instances(bench: &Bench) -> Result<Outcome> {
    let what = "chains of 10, with one and with two processes of each function; then one fan-out of 10,000";
    let one = load_on(bench, 1).await?;
    let two = load_on(bench, 2).await?;
    let wide = wide_rate(bench).await?;
    let rollbacks = |load: &Load| load.counters.rollbacks as f64 / load.steps;
    let figures = vec![
        Figure::new("tasks completed, one of each", one.rate, "/s"),
        Figure::new("tasks completed, two of each", two.rate, "/s"),
        Figure::new("two vs. one", two.rate / one.rate, "×"),
        Figure::new("rolled-back transactions per step, one", rollbacks(&one), "").at_most(0.01),
        Figure::new("rolled-back transactions per step, two", rollbacks(&two), "").at_most(0.01),
        Figure::new("transactions per step, two", two.counters.commits as f64 / two.steps, ""),
        Figure::new("tasks of one wide run, two of each", wide, "/s"),
        Figure::new("one wide run vs. many runs, two of each", wide / two.rate, "×").at_least(0.6),
    ];
    Ok(Outcome::new("instances", what, figures)
        .with_note("pushes go over HTTP here, through a balancer in this process; all share the same cores"))
}

async fn load_on(bench: &Bench, instances: usize) -> Result<Load> {
    let world = bench.processes(instances).await?;
    world.register(&[workflows::chain("chain", LENGTH)]).await?;
    let span = bench.size(Duration::from_secs(10), Duration::from_secs(2));
    load::keep_busy(bench, world, "chain", IN_FLIGHT, span).await
}

/// Tasks per second of a single run, with two processes of each function.
async fn wide_rate(bench: &Bench) -> Result<f64> {
    let size = bench.size(10_000, 1_000);
    let world = bench.processes(2).await?;
    world.register(&[workflows::wide("wide")]).await?;
    time_fan_outs(&world, 100, 3).await?; // Fills caches.
    let seconds = time_fan_outs(&world, size, 1).await?;
    world.close().await?;
    Ok(size as f64 / seconds)
}

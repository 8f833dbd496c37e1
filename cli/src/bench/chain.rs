//! Steps in a second: chains of ten tasks that do nothing, many at once.

use std::time::Duration;

use anyhow::Result;

use super::load::{self, Load};
use super::percentiles::Percentiles;
use super::report::{Figure, Outcome, StatementCost};
use super::workflows;
use super::world::Bench;

/// Tasks of a run.
const LENGTH: usize = 10;

/// Runs under way at the same time.
pub(super) const IN_FLIGHT: i64 = 256;

/// The load that several scenarios are about.
pub(super) async fn load(bench: &Bench) -> Result<Load> {
    let world = bench.world().await?;
    world.register(&[workflows::chain("chain", LENGTH)]).await?;
    let span = bench.size(Duration::from_secs(15), Duration::from_secs(2));
    load::keep_busy(bench, world, "chain", IN_FLIGHT, span).await
}

pub(super) async fn run(bench: &Bench) -> Result<Outcome> {
    Ok(outcome("chain", load(bench).await?))
}

/// The same with the statements, for a document.
pub(super) async fn statements(bench: &Bench) -> Result<Outcome> {
    Ok(outcome("statements", load(bench).await?))
}

fn outcome(name: &'static str, load: Load) -> Outcome {
    let per_step = |count: f64| count / load.steps;
    let times = Percentiles::of(load.run_times);
    let mut figures = vec![
        Figure::new("tasks ended", load.rate, "/s").at_least(10_000.0),
        Figure::new("a run, p50", times.at(50), "ms"),
        Figure::new("a run, p99", times.at(99), "ms"),
        Figure::new("messages per step", per_step(load.messages), "").at_most(2.0),
        Figure::new("transactions per step", per_step(load.counters.commits as f64), "").at_most(1.0),
        Figure::new("undone transactions per step", per_step(load.counters.rollbacks as f64), ""),
        Figure::new("writes through to disk per step", per_step(load.counters.syncs as f64), ""),
        Figure::new("runs started", load.runs, ""),
    ];
    if let Some(used) = load.used {
        figures.push(Figure::new("processor time of ebb per step", used.own, "µs"));
        figures.push(Figure::new("processor time of all per step", used.all, "µs"));
    }
    let what = format!("chains of {LENGTH} tasks that do nothing, {IN_FLIGHT} runs at once");
    let outcome = Outcome::new(name, what, figures);
    let Some(statements) = load.statements else {
        return outcome.noting("this Postgres has no pg_stat_statements: statements are not counted");
    };
    let calls: i64 = statements.iter().map(|statement| statement.calls).sum();
    let mut outcome = outcome;
    outcome.figures.push(Figure::new("statements per step", calls as f64 / load.steps, ""));
    outcome.statements = statements.iter().map(|it| StatementCost::of(it, load.steps)).collect();
    outcome
}

//! Steps in a second: chains of ten tasks that do nothing, many at once.

use std::time::Duration;

use anyhow::Result;

use super::load::{self, Load};
use super::report::{Outcome, StatementCost};
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
    let mut figures = load.figures();
    let ended = figures.remove(0).at_least(10_000.0);
    figures.insert(0, ended);
    let what = format!("chains of {LENGTH} tasks that do nothing, {IN_FLIGHT} runs at once");
    let outcome = Outcome::new(name, what, figures);
    let Some(statements) = &load.statements else {
        return outcome.noting("this Postgres has no pg_stat_statements: statements are not counted");
    };
    Outcome { statements: statements.iter().map(|it| StatementCost::of(it, load.steps)).collect(), ..outcome }
}

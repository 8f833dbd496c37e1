//! What this process holds: everything that `ebb dev` is, and what drives it.

use anyhow::Result;

use super::report::{Figure, Outcome};
use super::world::Bench;
use super::{chain, usage};

pub(super) async fn run(bench: &Bench) -> Result<Outcome> {
    let idle = usage::memory("self");
    let load = chain::load(bench).await?;
    let named = [("before", idle, None), ("under load, most", load.memory, Some(150.0))];
    let figure = |(name, memory, goal): (_, Option<f64>, Option<f64>)| {
        let figure = Figure::new(name, memory?, "MB");
        Some(goal.map_or(figure.clone(), |goal| figure.at_most(goal)))
    };
    let figures: Vec<Figure> = named.into_iter().filter_map(figure).collect();
    let outcome = Outcome::new("memory", "this process under the load of `chain`, Postgres apart", figures);
    Ok(match idle {
        Some(_) => outcome,
        None => outcome.noting("not measured: this system does not tell in /proc"),
    })
}

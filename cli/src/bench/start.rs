//! From the start of a function's process until it is ready, and what it holds while it does nothing.

use anyhow::Result;

use super::percentiles::Percentiles;
use super::processes::Processes;
use super::report::{Figure, Outcome};
use super::usage;
use super::world::Bench;

pub(super) async fn run(bench: &Bench) -> Result<Outcome> {
    let rounds = bench.size(10, 2);
    let what = format!("each function as a process, {rounds} times");
    let scratch = bench.scratch().await?;
    store::Postgres::migrate(&scratch.url()).await?;
    let (mut took, mut memory) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let processes = Processes::start(&scratch.url(), 1).await?;
        for (_, function) in processes.each() {
            took.push(function.took.as_secs_f64() * 1e3);
            memory.extend(usage::memory(&function.process().to_string()));
        }
    }
    scratch.drop().await?;
    let (took, memory) = (Percentiles::of(took), Percentiles::of(memory));
    let figures = vec![
        Figure::new("start to ready, p50", took.at(50), "ms").at_most(50.0),
        Figure::new("start to ready, most", took.most(), "ms"),
        Figure::new("memory of an idle function, most", memory.most(), "MB").at_most(25.0),
    ];
    Ok(Outcome::new("start", what, figures))
}

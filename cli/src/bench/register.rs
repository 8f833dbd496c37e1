//! Registering many workflows with one request.

use std::time::Instant;

use anyhow::Result;

use super::report::{Figure, Outcome};
use super::workflows;
use super::world::Bench;

const WORKFLOWS: usize = 500;

pub(super) async fn run(bench: &Bench) -> Result<Outcome> {
    let written: Vec<_> = (0..WORKFLOWS).map(|number| workflows::chain(&format!("w{number}"), 10)).collect();
    let world = bench.world().await?;
    let mut times = Vec::new();
    for _ in 0..2 {
        let started = Instant::now();
        world.register(&written).await?;
        times.push(started.elapsed().as_secs_f64());
    }
    world.close().await?;
    let figures = vec![
        Figure::new("registered", times[0], "s").at_most(5.0),
        Figure::new("the same again, unchanged", times[1], "s"),
    ];
    Ok(Outcome::new("register", format!("{WORKFLOWS} workflows of 10 tasks in one request"), figures))
}

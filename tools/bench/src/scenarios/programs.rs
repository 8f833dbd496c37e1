//! The programs of tasks: what their containment costs, and the packages of Python.

use std::time::Instant;

use anyhow::Result;
use api::page::Page;
use api::views::RunView;
use bus::SystemClock;
use model::Clock;
use serde_json::Map;

use crate::percentiles::Percentiles;
use crate::report::{Figure, Outcome};
use crate::workflows;
use crate::world::{Bench, World};

/// Small packages in pure Python, without dependencies.
const PACKAGES: [&str; 3] = ["six==1.16.0", "idna==3.7", "toml==0.10.2"];

/// How long programs take with containment, compared with how long they take without it.
pub(super) async fn containment(bench: &Bench) -> Result<Outcome> {
    let (programs, rounds) = bench.size((500, 3), (20, 1));
    let (mut on, mut off) = (Vec::new(), Vec::new());
    // In turns, so that both meet the same disturbances.
    for _ in 0..rounds {
        off.push(time_programs(bench, "off", programs).await?);
        on.push(time_programs(bench, "on", programs).await?);
    }
    let (on, off) = (Percentiles::of(on).at(1), Percentiles::of(off).at(1));
    let figures = vec![
        Figure::new("programs, contained vs. not", on / off, "×").at_most(1.3),
        Figure::new("programs, contained", on, "s"),
        Figure::new("programs, not contained", off, "s"),
    ];
    let what = format!("{programs} `bash` tasks that do nothing; the fastest of {rounds} rounds");
    Ok(Outcome::new("containment", what, figures))
}

/// How many seconds `programs` programs take with that setting of `EBB_CONTAINMENT`.
async fn time_programs(bench: &Bench, setting: &'static str, programs: usize) -> Result<f64> {
    let world = bench.processes_with(1, &[("EBB_CONTAINMENT", setting)]).await?;
    world.register(&[workflows::programs("programs")]).await?;
    world.trigger("programs", workflows::items(10)).await?; // Fills caches.
    world.drain().await?;
    let started = Instant::now();
    world.trigger("programs", workflows::items(programs)).await?;
    world.drain().await?;
    let seconds = started.elapsed().as_secs_f64();
    world.close().await?;
    Ok(seconds)
}

/// How much longer Python takes with packages in an environment that exists already.
pub(super) async fn python(bench: &Bench) -> Result<Outcome> {
    let rounds = bench.size(40, 3);
    let what = format!("a Python program that does nothing, with {} packages and with none", PACKAGES.len());
    let world = bench.world().await?;
    world.register(&[workflows::python("bare", &[]), workflows::python("packed", &PACKAGES)]).await?;
    // Builds the environment.
    if let Some(error) = first_run(&world).await? {
        world.close().await?;
        let packages = PACKAGES.join(", ");
        let why = format!(
            "since the environment with {packages} cannot be built, which needs a package index: {error}"
        );
        return Ok(Outcome::not_measured("python", what, why));
    }
    let since = SystemClock.now();
    for _ in 0..rounds {
        for workflow in ["bare", "packed"] {
            world.trigger(workflow, Map::new()).await?;
            world.drain().await?;
        }
    }
    let times = async |workflow: &str| {
        anyhow::Ok(Percentiles::of(world.database.run_times_since(workflow, since).await?))
    };
    let (bare, packed) = (times("bare").await?, times("packed").await?);
    world.close().await?;
    let figures = vec![
        Figure::new("added by packages, p50", packed.at(50) - bare.at(50), "ms").at_most(30.0),
        Figure::new("run without packages, p50", bare.at(50), "ms"),
        Figure::new("run with packages, p50", packed.at(50), "ms"),
    ];
    Ok(Outcome::new("python", what, figures))
}

/// Runs the workflow with packages once. Returns its error, if it failed.
async fn first_run(world: &World) -> Result<Option<String>> {
    world.trigger("packed", Map::new()).await?;
    if world.drain().await.is_ok() {
        return Ok(None);
    }
    let failed: Page<RunView> = world.client().get(&["runs"], &[("state", "failed".into())]).await?;
    let error = failed.items.into_iter().find_map(|run| run.error);
    Ok(Some(error.unwrap_or_else(|| "its run did not succeed".to_owned())))
}

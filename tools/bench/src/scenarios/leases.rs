//! Tasks that workers lease: how soon a waiting lease returns, how many tasks workers complete, and what an idle one costs.

mod idle;
mod worker;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use api::runs::StartBody;
use api::views::RunView;
use bus::SystemClock;
use ebb::client::Client;
use futures::future::{try_join, try_join_all};
use model::Clock;
use reqwest::header::HeaderMap;
use tokio::time::interval;

use crate::load::Meter;
use crate::percentiles::Percentiles;
use crate::report::{Figure, Outcome, StatementCost};
use crate::workflows;
use crate::world::{Bench, World};
use worker::Timings;

/// The workers of the load, and the slots of each.
const WORKERS: usize = 4;
const SLOTS: usize = 32;

/// The runs whose tasks they lease. A run's row is locked while tasks of it begin and end.
const RUNS: usize = 8;

/// How long a lease waits before its task becomes ready.
const IDLE_FOR: Duration = Duration::from_millis(20);

/// Longer than a lease may wait.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(75);

pub(super) async fn run(bench: &Bench) -> Result<Outcome> {
    let rounds = bench.size(300, 20);
    let tasks: usize = bench.size(20_000, 400);
    bench.progress("measuring leases: one that waits");
    let returned = Percentiles::of(wait_for_tasks(bench, rounds).await?);
    bench.progress("measuring leases: the load");
    let load = complete_tasks(bench, tasks).await?;
    let mut figures = vec![
        Figure::new("a waiting lease returns, p99", returned.at(99), "ms").at_most(50.0),
        Figure::new("a waiting lease returns, p50", returned.at(50), "ms"),
        Figure::new("a waiting lease returns, maximum", returned.at(100), "ms"),
        Figure::new("leased tasks completed", tasks as f64 / load.seconds, "/s").at_least(2_000.0),
    ];
    figures.extend(load.figures);
    if !bench.quick {
        bench.progress("watching an idle worker");
        let requests = idle::measure(bench).await?;
        figures.push(Figure::new("requests of an idle worker", requests, "/min").at_most(1.2));
    }
    let what = format!(
        "{rounds} leases that wait, one after the other; {tasks} tasks that do nothing in {RUNS} runs, leased by {WORKERS} \
         workers with {SLOTS} slots each"
    );
    let outcome = Outcome { statements: load.statements, ..Outcome::new("leases", what, figures) };
    let note = "with --quick, the requests of an idle worker are not measured";
    Ok(if bench.quick { outcome.with_note(note) } else { outcome })
}

/// A client whose requests may wait.
fn patient_client(world: &World) -> Result<Arc<Client>> {
    Ok(Arc::new(Client::with_timeout(world.server().clone(), REQUEST_TIMEOUT)?))
}

/// From the decision that makes a task ready to the response of the lease that waited for it, in milliseconds.
async fn wait_for_tasks(bench: &Bench, rounds: usize) -> Result<Vec<f64>> {
    let world = bench.world().await?;
    world.register(&[workflows::leased("far")]).await?;
    let (client, mut pause) = (patient_client(&world)?, interval(IDLE_FOR));
    let mut times = Vec::new();
    for _ in 0..rounds {
        let waiting = async {
            let lease = worker::lease(&client, "waiting", 1, worker::MAX_WAIT_SECONDS).await?;
            anyhow::Ok((lease, SystemClock.now()))
        };
        let trigger = async {
            pause.reset();
            pause.tick().await;
            let path = ["workflows", "far", "runs"];
            let run: RunView = client.post(&path, HeaderMap::new(), &StartBody::default()).await?;
            anyhow::Ok(run)
        };
        let ((lease, at), run) = try_join(waiting, trigger).await?;
        ensure!(lease.items.len() == 1 && lease.items[0].run == run.id, "a lease brought another task");
        times.push((at - run.created_at).as_seconds_f64() * 1e3);
        worker::complete(&client, "waiting", &lease.items[0]).await?;
    }
    world.drain().await?;
    world.close().await?;
    Ok(times)
}

/// What a load of leased tasks came to.
struct Load {
    seconds: f64,
    figures: Vec<Figure>,
    statements: Vec<StatementCost>,
}

/// Lets workers complete as many tasks as fast as they can.
async fn complete_tasks(bench: &Bench, tasks: usize) -> Result<Load> {
    let world = bench.world().await?;
    world.register(&[workflows::all_leased("far")]).await?;
    let client = patient_client(&world)?;
    start_runs(&world, WORKERS * SLOTS).await?; // Fills caches.
    work(&client, WORKERS * SLOTS).await?;
    world.drain().await?;
    start_runs(&world, tasks).await?;
    let meter = Meter::start(bench, &world).await?;
    let started = Instant::now();
    let timings = work(&client, tasks).await?;
    let seconds = timings.last_report.map_or(0.0, |last| (last - started).as_secs_f64());
    world.drain().await?;
    let cost = meter.stop(world).await?;
    let (per_task, leases) = (|count: f64| count / tasks as f64, timings.leases.len());
    let (lease, report) = (Percentiles::of(timings.leases), Percentiles::of(timings.reports));
    let mut figures = vec![
        Figure::new("lease, p50", lease.at(50), "ms"),
        Figure::new("lease, p99", lease.at(99), "ms"),
        Figure::new("report, p50", report.at(50), "ms"),
        Figure::new("report, p99", report.at(99), "ms"),
        Figure::new("tasks per lease", tasks as f64 / leases.max(1) as f64, ""),
        Figure::new("transactions per task", per_task(cost.counters.commits as f64), ""),
        Figure::new("rolled-back transactions per task", per_task(cost.counters.rollbacks as f64), ""),
        Figure::new("disk syncs per task", per_task(cost.counters.syncs as f64), ""),
    ];
    if let Some(calls) = cost.calls() {
        figures.push(Figure::new("statements per task", per_task(calls as f64), ""));
    }
    let statements = cost.statements.iter().flatten().map(|it| StatementCost::of(it, tasks as f64)).collect();
    Ok(Load { seconds, figures, statements })
}

/// Starts runs with this number of tasks in all, which are ready once it returns.
async fn start_runs(world: &World, tasks: usize) -> Result<()> {
    let inputs = workflows::items(tasks / RUNS);
    try_join_all((0..RUNS).map(|_| world.trigger("far", inputs.clone()))).await?;
    let mut ticks = interval(IDLE_FOR);
    while world.database.offers().await? < tasks as i64 {
        ticks.tick().await;
    }
    Ok(())
}

/// Lets all workers complete this number of tasks.
async fn work(client: &Arc<Client>, tasks: usize) -> Result<Timings> {
    let left = Arc::new(AtomicUsize::new(tasks));
    let workers = (0..WORKERS).map(|number| {
        let worker = worker::run(client.clone(), format!("worker-{number}"), SLOTS, left.clone());
        async move { tokio::spawn(worker).await? }
    });
    Ok(try_join_all(workers).await?.into_iter().reduce(Timings::and).unwrap_or_default())
}

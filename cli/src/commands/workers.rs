//! `ebb workers`, `ebb worker`: lists, runs and stops workers.

use std::process::ExitCode;

use anyhow::{Result, bail};
use api::views::{WorkerState, WorkerView};
use api::workers::WorkerCommandBody;
use reqwest::header::HeaderMap;
use serde_json::json;

use super::connect;
use crate::args::{Shared, StopWorker, Worker};
use crate::output::{self, Colour, Palette};

const STATE_COLUMN: usize = 1;

pub(super) async fn list(shared: &Shared) -> Result<ExitCode> {
    let workers: Vec<WorkerView> = connect(shared)?.all(&["workers"]).await?;
    output::print_list(shared, &json!({"items": workers}), &workers, "no worker is registered", |items| {
        table(items, Palette::of_stdout())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a worker in this process, or stops another.
pub(super) async fn worker(shared: &Shared, arguments: Worker) -> Result<ExitCode> {
    match arguments {
        Worker { stop: Some(stop), .. } => stop_worker(shared, stop).await,
        Worker { run: Some(run), .. } => crate::worker::run(shared, run).await,
        Worker { .. } => bail!("name the queue to serve: ebb worker --queue NAME"),
    }
}

async fn stop_worker(shared: &Shared, arguments: StopWorker) -> Result<ExitCode> {
    let (id, command, reason, effect) = match arguments {
        StopWorker::Kill { id, reason } => (id, "kill", reason, "stops its attempts and ends"),
        StopWorker::Drain { id, reason } => {
            (id, "drain", reason, "takes no more work and ends when its attempts have ended")
        }
    };
    let path = ["workers", &id.to_string(), command];
    let worker: WorkerView =
        connect(shared)?.post(&path, HeaderMap::new(), &WorkerCommandBody { reason }).await?;
    output::print(shared, &worker, || format!("worker {id} {effect}, after its next heartbeat"))?;
    Ok(ExitCode::SUCCESS)
}

fn table(workers: &[WorkerView], palette: Palette) -> String {
    let head = [
        "WORKER",
        "STATE",
        "QUEUE",
        "SLOTS",
        "LABELS",
        "HOST",
        "VERSION",
        "CPU",
        "MEMORY",
        "DISK",
        "DONE",
        "LAST SEEN",
        "ATTEMPTS",
    ];
    let rows = workers.iter().map(|worker| {
        let unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".into());
        let more = worker.holding - worker.attempts.len() as i64;
        let attempts = worker
            .attempts
            .iter()
            .map(|claim| format!("{} of {} (attempt {})", claim.task, claim.run, claim.attempt))
            .chain(Some(more).filter(|more| *more > 0).map(|more| format!("{more} more")));
        let usage = worker.usage.unwrap_or_default();
        let labels = worker.labels.iter().map(|(name, value)| format!("{name}={value}"));
        let id = worker.id.to_string();
        vec![
            worker.name.as_ref().map_or_else(|| id.clone(), |name| format!("{name} ({id})")),
            worker.state.name().into(),
            worker.queue.clone().unwrap_or_else(|| "any".into()),
            known(worker.slots),
            labels.collect::<Vec<_>>().join(" "),
            unknown(&worker.host),
            unknown(&worker.version),
            percent(usage.cpu),
            percent(usage.memory),
            percent(usage.disk),
            known(worker.tasks_done),
            output::time(worker.heartbeat_at),
            attempts.collect::<Vec<_>>().join(", "),
        ]
    });
    output::painted_table(head, rows, |worker, column, cell| match column {
        STATE_COLUMN => palette.paint(colour(workers[worker].state), cell),
        _ => cell,
    })
}

fn known(number: Option<impl ToString>) -> String {
    number.map_or_else(|| "-".into(), |number| number.to_string())
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".into(), |share| format!("{:.0} %", share * 100.0))
}

fn colour(state: WorkerState) -> Colour {
    match state {
        WorkerState::Idle | WorkerState::Busy => Colour::Busy,
        WorkerState::Draining => Colour::Quiet,
        WorkerState::Killed | WorkerState::Dead => Colour::Bad,
    }
}

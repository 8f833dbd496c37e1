//! `ebb workers`, `ebb worker kill|drain`: lists and stops workers.

use std::process::ExitCode;

use anyhow::Result;
use api::views::{WorkerState, WorkerView};
use api::workers::WorkerCommandBody;
use reqwest::header::HeaderMap;
use serde_json::json;

use super::connect;
use crate::args::{Shared, Worker};
use crate::output::{self, Colour, Palette};

const STATE_COLUMN: usize = 1;

pub(super) async fn list(shared: &Shared) -> Result<ExitCode> {
    let workers: Vec<WorkerView> = connect(shared)?.all(&["workers"]).await?;
    output::print_list(
        shared,
        &json!({"items": workers}),
        &workers,
        "no worker holds an attempt",
        |items| table(items, Palette::of_stdout()),
    )?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn stop(shared: &Shared, arguments: Worker) -> Result<ExitCode> {
    let (id, command, reason, effect) = match arguments {
        Worker::Kill { id, reason } => (id, "kill", reason, "stops its attempts and ends"),
        Worker::Drain { id, reason } => {
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
    let head = ["WORKER", "STATE", "QUEUE", "HOST", "VERSION", "LAST SEEN", "ATTEMPTS"];
    let rows = workers.iter().map(|worker| {
        let unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".into());
        let attempts = worker
            .attempts
            .iter()
            .map(|claim| format!("{} of {} (attempt {})", claim.task, claim.run, claim.attempt));
        vec![
            worker.id.to_string(),
            worker.state.name().into(),
            worker.queue.clone().unwrap_or_else(|| "any".into()),
            unknown(&worker.host),
            unknown(&worker.version),
            output::time(worker.heartbeat_at),
            attempts.collect::<Vec<_>>().join(", "),
        ]
    });
    output::painted_table(head, rows, |worker, column, cell| match column {
        STATE_COLUMN => palette.paint(colour(workers[worker].state), cell),
        _ => cell,
    })
}

fn colour(state: WorkerState) -> Colour {
    match state {
        WorkerState::Alive => Colour::Busy,
        WorkerState::Draining => Colour::Quiet,
        WorkerState::Killed | WorkerState::Silent => Colour::Bad,
    }
}

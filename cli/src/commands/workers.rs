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

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(more: serde_json::Value) -> WorkerView {
        let mut worker = json!({
            "id": "00000000-0000-0000-0000-000000000007", "function": "remote", "state": "idle",
            "started_at": "2027-01-15T08:00:00Z", "heartbeat_at": "2027-01-15T08:00:00Z",
            "attempts": [], "holding": 0, "labels": {}, "breakers": [],
        });
        worker.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(worker).unwrap()
    }

    #[test]
    fn a_worker_is_listed_with_its_slots_labels_usage_and_work() {
        let busy = worker(json!({
            "name": "gpu-1", "queue": "tiles", "state": "busy", "slots": 4, "host": "vm", "version": "0.1.0",
            "labels": {"gpu": true, "memory_gb": 80}, "tasks_done": 12,
            "usage": {"cpu": 0.254, "memory": 0.5, "disk": 0.96},
            "attempts": [{"run": "018f0000-0000-7000-8000-000000000001", "task": "cut", "attempt": 2, "link": "/x"}],
            "holding": 3,
        }));
        let shown = table(&[busy, worker(json!({}))], Palette { on: false });
        let rows: Vec<Vec<&str>> = shown.lines().map(|line| cells(line).collect()).collect();
        let head = "WORKER STATE QUEUE SLOTS LABELS HOST VERSION CPU MEMORY DISK DONE".split(' ');
        assert_eq!(rows[0], head.chain(["LAST SEEN", "ATTEMPTS"]).collect::<Vec<_>>());
        let named = "gpu-1 (00000000-0000-0000-0000-000000000007)";
        let run = "cut of 018f0000-0000-7000-8000-000000000001 (attempt 2), 2 more";
        let (labels, seen) = ("gpu=true memory_gb=80", output::time(seen_at()));
        let expected = [
            named,
            "busy",
            "tiles",
            "4",
            labels,
            "vm",
            "0.1.0",
            "25 %",
            "50 %",
            "96 %",
            "12",
            seen.as_str(),
            run,
        ];
        assert_eq!(rows[1], expected);
        // One of the installation's own workers, which has none of these.
        let unknown = ["idle", "any", "-", "?", "?", "-", "-", "-", "-"];
        assert_eq!(rows[2][1..10], unknown, "{shown}");
    }

    fn seen_at() -> model::Instant {
        model::Instant::from_timestamp(1_800_000_000, 0).unwrap()
    }

    /// The cells of a line, which two spaces or more separate.
    fn cells(line: &str) -> impl Iterator<Item = &str> {
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty())
    }
}

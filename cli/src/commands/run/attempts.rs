//! `ebb run attempts`: the result of each attempt at a task.

use std::process::ExitCode;

use anyhow::Result;
use api::views::{AttemptView, ErrorView};
use model::RunId;
use model::progress::{CPU_SECONDS, PEAK_MEMORY_BYTES};

use crate::args::Shared;
use crate::client::Client;
use crate::output::{self, Palette};

const STATE_COLUMN: usize = 1;

pub(super) async fn show(shared: &Shared, client: &Client, id: RunId, task: &str) -> Result<ExitCode> {
    let attempts: Vec<AttemptView> =
        client.all(&["runs", &id.to_string(), "tasks", task, "attempts"]).await?;
    if shared.json {
        output::json(&attempts)?;
    } else {
        output::line(table(&attempts, Palette::of_stdout()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn table(attempts: &[AttemptView], palette: Palette) -> String {
    let head = [
        "ATTEMPT", "STATE", "WORKER", "STARTED", "TOOK", "CPU", "MEMORY", "EXIT", "ERROR", "DECISION", "NEXT",
    ];
    let rows = attempts.iter().map(|one| {
        vec![
            one.attempt.to_string(),
            one.state.name().into(),
            one.worker.map(|worker| worker.to_string()).unwrap_or_default(),
            one.started_at.map(output::time).unwrap_or_default(),
            output::took(one.started_at, one.finished_at),
            metric(one, CPU_SECONDS).map(|seconds| format!("{seconds:.2} s")).unwrap_or_default(),
            metric(one, PEAK_MEMORY_BYTES).map(mebibytes).unwrap_or_default(),
            one.error.as_ref().map(exit).unwrap_or_default(),
            one.error.as_ref().map(error).unwrap_or_default(),
            one.decision.clone().unwrap_or_default(),
            one.next_attempt_at.map(output::time).unwrap_or_default(),
        ]
    });
    output::painted_table(head, rows, |attempt, column, cell| match column {
        STATE_COLUMN => palette.paint(output::task_sign(attempts[attempt].state).1, cell),
        _ => cell,
    })
}

/// The newest value of a metric of an attempt.
fn metric(attempt: &AttemptView, name: &str) -> Option<f64> {
    Some(attempt.progress.as_ref()?.metrics.get(name)?.value)
}

fn mebibytes(bytes: f64) -> String {
    format!("{:.0} MiB", bytes / (1024.0 * 1024.0))
}

/// The exit code, or the signal: `3`, `signal 9`.
fn exit(error: &ErrorView) -> String {
    let signal = error.signal.map(|signal| format!("signal {signal}"));
    error.exit_code.map(|code| code.to_string()).or(signal).unwrap_or_default()
}

fn error(error: &ErrorView) -> String {
    format!("{}: {}", error.class, output::first_line(&error.message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_attempt_is_a_row() {
        let attempts: Vec<AttemptView> = serde_json::from_value(json!([
            {
                "attempt": 1, "state": "failed", "worker": null, "started_at": "2027-01-15T08:00:00Z",
                "finished_at": "2027-01-15T08:00:03Z", "decision": "attempt 2 of 3 follows",
                "error": {"class": "killed", "message": "killed by signal 9", "signal": 9},
                "delay_ms": 30_000, "next_attempt_at": "2027-01-15T08:00:33Z",
            },
            {
                "attempt": 2, "state": "failed", "worker": null, "started_at": "2027-01-15T08:00:33Z",
                "finished_at": "2027-01-15T08:00:34Z", "decision": "exit code 127 is not retried",
                "error": {"class": "program_failed", "message": "exited with code 127", "exit_code": 127},
                "progress": {
                    "attempt": 2, "at": "2027-01-15T08:00:34Z", "fraction": null, "message": null, "phase": null,
                    "metrics": {
                        "ebb.cpu_seconds": {"value": 0.421}, "ebb.peak_memory_bytes": {"value": 52_428_800},
                    },
                },
            },
        ]))
        .unwrap();
        let shown = table(&attempts, Palette { on: false });
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 3, "{shown}");
        for part in ["signal 9", "killed: killed by signal 9", "attempt 2 of 3 follows", "08:00:33"] {
            assert!(lines[1].contains(part), "{part} is missing in {shown}");
        }
        for part in [
            "127",
            "0.42 s",
            "50 MiB",
            "program_failed: exited with code 127",
            "exit code 127 is not retried",
        ] {
            assert!(lines[2].contains(part), "{part} is missing in {shown}");
        }
    }
}

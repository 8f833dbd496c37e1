//! Metrics of runs, counted once their transaction has committed.

use std::time::Instant as Stopwatch;

use metrics::{counter, histogram};
use model::{Changes, ErrorClass, EventKind, Instant, Message, TaskKind};
use store::DueTimer;
use tracing::warn;

/// The changes of a transaction, in existing runs and in those that it created.
pub(crate) fn committed(changes: &[Changes], created: &[Changes]) {
    if !created.is_empty() {
        counter!("ebbflow_runs_started_total").increment(created.len() as u64);
    }
    for change in changes.iter().chain(created) {
        for message in &change.outbox {
            match message {
                Message::RunFinished(end) => {
                    let took = end.finished_at - change.run.created_at;
                    histogram!("ebbflow_run_seconds").record(took.as_seconds_f64());
                }
                Message::TaskFinished(end) => {
                    let task = change.tasks.iter().find(|task| task.index == end.task);
                    if let Some(started_at) = task.and_then(|task| task.started_at) {
                        let took = end.finished_at - started_at;
                        histogram!("ebbflow_task_seconds").record(took.as_seconds_f64());
                    }
                }
                _ => {}
            }
        }
        not_taken(change);
        let retries = retries(change);
        if retries > 0 {
            counter!("ebbflow_retries_total").increment(retries as u64);
        }
    }
}

/// Attempts that no worker took in time. Alerts count these lines.
fn not_taken(change: &Changes) {
    let class = ErrorClass::NotTaken.name();
    for event in change.events.iter().filter(|event| event.data["class"] == class) {
        counter!("ebbflow_attempts_not_taken_total").increment(1);
        let (run, tenant, workflow) = (change.run.id, change.run.tenant.0, &change.run.workflow);
        let message = event.data["message"].as_str().unwrap_or_default();
        warn!(event = "attempt_not_taken", %run, tenant, workflow, "Attempt {} of a task of run {run} was not taken: {message}", event.attempt);
    }
}

/// How many failed attempts are followed by another, with or without a delay.
fn retries(change: &Changes) -> usize {
    change.events.iter().filter(|event| event.kind == EventKind::TaskRetrying).count()
}

/// Runs and tasks that ended.
pub(crate) fn ends(messages: &[Message]) {
    for message in messages {
        match message {
            Message::RunFinished(end) => {
                let labels = [("workflow", end.workflow.clone()), ("state", end.state.name().to_owned())];
                counter!("ebbflow_runs_ended_total", &labels).increment(1);
            }
            Message::TaskFinished(end) => {
                let kind = end.kind.as_ref().map_or("unknown", TaskKind::label);
                let labels = [("kind", kind), ("state", end.state.name())];
                counter!("ebbflow_tasks_ended_total", &labels).increment(1);
            }
            _ => {}
        }
    }
}

/// A transaction met a conflict and is repeated.
pub(crate) fn conflict() {
    counter!("ebbflow_conflicts_total").increment(1);
}

/// Messages could not be published, for now.
pub(crate) fn unpublished() {
    counter!("ebbflow_publish_failures_total").increment(1);
}

/// How late timers fire.
pub(crate) fn lateness(due: &[DueTimer], now: Instant) {
    for due in due {
        histogram!("ebbflow_timer_lateness_seconds").record((now - due.timer.wake_at).as_seconds_f64());
    }
}

/// How late the run of a schedule is.
pub(crate) fn drift(late: chrono::TimeDelta) {
    histogram!("ebbflow_schedule_drift_seconds").record(late.as_seconds_f64().max(0.0));
}

/// How long settling took.
pub(crate) fn settled(since: Stopwatch) {
    histogram!("ebbflow_settle_seconds").record(since.elapsed().as_secs_f64());
}

#[cfg(test)]
mod tests {
    use engine::{Command, Graph, RunSlice};
    use model::{Admission, Run, RunId, TaskIndex, TenantId, VersionId, WorkerId};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_retry_without_delay_counts() {
        let mut workflow = testkit::workflow("a");
        workflow.tasks[0].idempotent = Some(true);
        let graph = Graph::compile(workflow).unwrap();
        let (id, now) = (RunId(Uuid::nil()), Instant::default());
        let run = Run::new(id, TenantId::DEFAULT, "example", VersionId(1), graph.len(), now);
        let (task, attempt, worker) = (TaskIndex(0), 1, WorkerId(Uuid::nil()));
        let mut slice = RunSlice::create(&graph, run, "test");
        slice.propagate();
        slice.admit(task, Admission::Acquired);
        slice.decide(&Command::Claim { task, attempt, worker });
        slice.decide(&Command::Lose { task, attempt, worker });
        slice.propagate();
        slice.admit(task, Admission::Acquired);
        let changes = slice.close().unwrap().changes;
        assert!(changes.timers.is_empty(), "it is tried again at once");
        assert_eq!(retries(&changes), 1);
    }
}

//! The catalogue of all metrics. Tests compare the code, both exports and the alerts with it.

/// The kind of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Only increases while the process runs.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts durations in buckets, in seconds.
    Histogram,
}

/// A metric: its name, kind, labels and description.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// The name, with its unit.
    pub name: &'static str,
    /// Counter, gauge or histogram.
    pub kind: Kind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// The description, for people.
    pub help: &'static str,
}

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, labels, help }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, labels, help }
}

const fn histogram(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Histogram, labels, help }
}

/// All metrics. Those about the whole store (from `ebbflow_runs` on) are exported by the sweep alone.
pub const METRICS: [Metric; 32] = [
    counter("ebbflow_http_requests_total", &["path", "status"], "HTTP requests."),
    histogram("ebbflow_http_request_seconds", &["path"], "Duration of HTTP requests."),
    histogram("ebbflow_delivery_seconds", &["type"], "Time from a message's publication to its delivery."),
    counter("ebbflow_runs_started_total", &[], "Runs created."),
    counter("ebbflow_runs_ended_total", &["workflow", "state"], "Runs that reached a final state."),
    histogram("ebbflow_run_seconds", &[], "Time from a run's creation to its end."),
    counter("ebbflow_tasks_ended_total", &["kind", "state"], "Tasks that reached a final state, by type."),
    histogram("ebbflow_task_seconds", &[], "Time from the start of a task's last attempt to its end."),
    counter("ebbflow_attempts_total", &["kind", "outcome"], "Attempts run by this worker."),
    histogram("ebbflow_attempt_seconds", &["kind"], "Duration of attempts."),
    counter("ebbflow_retries_total", &[], "Failed attempts that are followed by another one."),
    histogram("ebbflow_settle_seconds", &[], "Time to decide and commit, including conflicts."),
    counter("ebbflow_conflicts_total", &[], "Transactions that were repeated because of a conflict."),
    counter("ebbflow_publish_failures_total", &[], "Publish calls that failed and are retried."),
    histogram("ebbflow_timer_lateness_seconds", &[], "Time from a timer's due time to its firing."),
    histogram("ebbflow_schedule_drift_seconds", &[], "Time from a schedule's due time to its run."),
    counter("ebbflow_database_errors_total", &[], "Database calls that failed."),
    gauge(
        "ebbflow_database_connections",
        &["state"],
        "Database connections of this instance: used, idle and max.",
    ),
    counter("ebbflow_dead_letters_total", &[], "Dead-lettered messages."),
    counter("ebbflow_heartbeats_missed_total", &[], "Heartbeats that a worker could not send."),
    counter("ebbflow_attempts_not_taken_total", &[], "Attempts that no worker took in time."),
    counter("ebbflow_attempts_lost_total", &[], "Attempts lost with dead workers."),
    counter("ebbflow_findings_total", &["fault"], "Inconsistencies found by inspections."),
    gauge("ebbflow_breakers_open", &[], "Tasks and hosts whose circuit breaker is open."),
    gauge("ebbflow_runs", &["state"], "Unfinished runs."),
    gauge("ebbflow_tasks", &["tenant", "state"], "Tasks of unfinished runs."),
    gauge("ebbflow_queue_depth", &["tenant"], "Tasks that are ready and not claimed."),
    gauge("ebbflow_queue_age_seconds", &["tenant"], "Age of the oldest task that waits for a slot."),
    gauge(
        "ebbflow_workers",
        &["queue"],
        "Workers that respond: those of pools, and of execute while they hold attempts.",
    ),
    gauge("ebbflow_outbox_age_seconds", &[], "Age of the oldest unpublished message in the outbox."),
    gauge("ebbflow_timer_overdue_seconds", &[], "How long the oldest due timer is overdue."),
    gauge("ebbflow_dead_letters_kept", &[], "Dead letters that await a decision; counts up to 1000."),
];

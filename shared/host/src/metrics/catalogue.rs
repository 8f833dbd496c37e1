//! Every metric there is. Tests hold the code, the page and the alerts against this list.

/// What kind of number it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It only grows while the process lives.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Seconds, sorted into buckets.
    Histogram,
}

/// A metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// What it is called.
    pub name: &'static str,
    /// What kind of number it is.
    pub kind: Kind,
    /// By what it is told apart.
    pub labels: &'static [&'static str],
    /// What it means.
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

/// Every metric. Those of the store as a whole (from `ebbflow_runs` on) are shown by the sweep alone.
pub const METRICS: [Metric; 30] = [
    counter("ebbflow_http_requests_total", &["path", "status"], "Requests that were answered."),
    histogram("ebbflow_http_request_seconds", &["path"], "How long answering took."),
    histogram("ebbflow_delivery_seconds", &["type"], "From when a message was published to its arrival."),
    counter("ebbflow_runs_started_total", &[], "Runs that came into being."),
    counter("ebbflow_runs_ended_total", &["workflow", "state"], "Runs that ended."),
    histogram("ebbflow_run_seconds", &[], "From the creation of a run to its end."),
    counter("ebbflow_tasks_ended_total", &["state"], "Tasks that ended."),
    histogram("ebbflow_task_seconds", &[], "From the start of a task's last attempt to its end."),
    counter("ebbflow_attempts_total", &["kind", "outcome"], "Attempts that were carried out."),
    histogram("ebbflow_attempt_seconds", &["kind"], "How long carrying out an attempt took."),
    counter("ebbflow_retries_total", &[], "Attempts that failed and are followed by another."),
    histogram("ebbflow_settle_seconds", &[], "How long deciding and committing took, conflicts included."),
    counter("ebbflow_conflicts_total", &[], "Transactions that were made anew since another came first."),
    counter("ebbflow_publish_failures_total", &[], "Publishes that failed and are tried again."),
    histogram("ebbflow_timer_lateness_seconds", &[], "From when a timer was due to when it fired."),
    histogram("ebbflow_schedule_drift_seconds", &[], "From when a schedule was due to its run."),
    counter("ebbflow_database_errors_total", &[], "Times that the database was away or refused."),
    gauge(
        "ebbflow_database_connections",
        &["state"],
        "Connections of this instance: used, idle, and the most.",
    ),
    counter("ebbflow_dead_letters_total", &[], "Messages that were kept as dead letters."),
    counter("ebbflow_heartbeats_missed_total", &[], "Beats that a worker could not make."),
    counter("ebbflow_attempts_lost_total", &[], "Attempts that were taken from dead workers."),
    counter("ebbflow_findings_total", &["fault"], "Times that something was found that should not be."),
    gauge("ebbflow_breakers_open", &[], "Hosts to which no calls are made for a while since they fail."),
    gauge("ebbflow_runs", &["state"], "Unfinished runs."),
    gauge("ebbflow_tasks", &["tenant", "state"], "Tasks of unfinished runs."),
    gauge("ebbflow_queue_depth", &["tenant"], "Tasks that could be carried out and that nobody has taken."),
    gauge("ebbflow_queue_age_seconds", &["tenant"], "How long the longest has been waiting for a place."),
    gauge("ebbflow_outbox_age_seconds", &[], "How old the oldest message is that was not published."),
    gauge("ebbflow_timer_overdue_seconds", &[], "How long the oldest timer has been due."),
    gauge("ebbflow_dead_letters_kept", &[], "Dead letters that wait for somebody to decide, 1000 at most."),
];

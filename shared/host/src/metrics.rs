//! Metrics, exported as Prometheus' text format and as OTLP from the same snapshot.

pub mod catalogue;
mod otlp;
mod prometheus;
mod registry;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use metrics::{counter, gauge, histogram};
use model::Instant;
use store::{ANY_QUEUE, Fault, Load, Store};

pub use catalogue::{Kind, METRICS};
pub use otlp::Exporter;
pub(crate) use otlp::{Resource, attributes, nanos};
use registry::{Family, Registry};

static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::default);

/// Installs the recorder. A second call, as when several functions share a process, does nothing.
pub fn init() {
    if metrics::set_global_recorder(&*REGISTRY).is_err() {
        return;
    }
    // Metrics without labels are exported as zero from the start, so that alerts on them have data.
    for metric in METRICS.iter().filter(|metric| metric.labels.is_empty()) {
        match metric.kind {
            Kind::Counter => counter!(metric.name).absolute(0),
            Kind::Gauge => gauge!(metric.name).set(0.0),
            Kind::Histogram => {}
        }
    }
    for fault in Fault::ALL {
        counter!("ebbflow_findings_total", "fault" => fault.name()).absolute(0);
    }
}

fn snapshot() -> Vec<Family> {
    REGISTRY.snapshot()
}

/// The metrics in Prometheus' text format; empty without a recorder.
pub fn page() -> String {
    prometheus::page(&snapshot())
}

/// Counts a response by path and status, with its duration.
pub(crate) fn request(path: &str, status: StatusCode, took: Duration) {
    let labels = [("path", path.to_owned()), ("status", status.as_str().to_owned())];
    counter!("ebbflow_http_requests_total", &labels).increment(1);
    histogram!("ebbflow_http_request_seconds", "path" => path.to_owned()).record(took.as_secs_f64());
}

/// Records the time from a message's publication to its delivery.
pub(crate) fn delivered(kind: &'static str, published_at: Instant, now: Instant) {
    let seconds = (now - published_at).as_seconds_f64().max(0.0);
    histogram!("ebbflow_delivery_seconds", "type" => kind).record(seconds);
}

/// Counts a dead-lettered message.
pub(crate) fn dead_lettered() {
    counter!("ebbflow_dead_letters_total").increment(1);
}

/// Sets the gauges of the database connection pool.
pub(crate) fn pool(store: &dyn Store) {
    if let Some(pool) = store.pool() {
        gauge!("ebbflow_database_connections", "state" => "used").set(pool.open.saturating_sub(pool.idle));
        gauge!("ebbflow_database_connections", "state" => "idle").set(pool.idle);
        gauge!("ebbflow_database_connections", "state" => "max").set(pool.most);
    }
}

/// Sets the gauges of the store's load. The load lists every state, so that a gauge returns to zero.
pub(crate) fn load(load: &Load, now: Instant) {
    let age = |since: Option<Instant>| since.map_or(0.0, |since| (now - since).as_seconds_f64().max(0.0));
    for (state, runs) in &load.runs {
        gauge!("ebbflow_runs", "state" => state.name()).set(f64::from(*runs));
    }
    for tenant in &load.tenants {
        for (state, tasks) in &tenant.tasks {
            let labels = [("tenant", tenant.name.clone()), ("state", state.name().to_owned())];
            gauge!("ebbflow_tasks", &labels).set(f64::from(*tasks));
        }
        gauge!("ebbflow_queue_depth", "tenant" => tenant.name.clone()).set(f64::from(tenant.depth()));
        gauge!("ebbflow_queue_age_seconds", "tenant" => tenant.name.clone()).set(age(tenant.waits_since));
    }
    set_workers(&load.workers);
    gauge!("ebbflow_outbox_age_seconds").set(age(load.unsent));
    gauge!("ebbflow_timer_overdue_seconds").set(age(load.timer));
    gauge!("ebbflow_breakers_open").set(f64::from(load.breakers));
    gauge!("ebbflow_dead_letters_kept").set(f64::from(load.dead_letters));
}

/// Queues without workers are not in the load: their gauge returns to zero. One gauge exists before there are any workers, so that an
/// alert can ask whether there are none.
fn set_workers(workers: &BTreeMap<String, u32>) {
    static SEEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    seen.extend(workers.keys().cloned().chain([ANY_QUEUE.to_owned()]));
    for queue in seen.iter() {
        let number = workers.get(queue).copied().unwrap_or(0);
        gauge!("ebbflow_workers", "queue" => queue.clone()).set(f64::from(number));
    }
}

#[cfg(test)]
mod tests;

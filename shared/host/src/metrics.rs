//! Numbers for whoever watches: counted wherever things happen, shown on one page in Prometheus' text format.

pub mod catalogue;
mod otlp;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use model::Instant;
use store::{Fault, Load, Store};

pub use catalogue::{Kind, METRICS};
pub use otlp::{Exporter, as_otlp};
pub(crate) use otlp::{attributes, nanos};

/// What seconds are sorted into.
const SECONDS: [f64; 13] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 60.0, 300.0, 3600.0];

/// So many requests may be measured before the measurements are added up, where nobody reads the page.
const UPKEEP: u32 = 4_096;

static PAGE: OnceLock<PrometheusHandle> = OnceLock::new();
static MEASURED: AtomicU32 = AtomicU32::new(0);

/// Starts counting. A second start, as when several functions share a process, changes nothing.
pub fn init() {
    let builder = PrometheusBuilder::new().set_buckets(&SECONDS).expect("there are buckets");
    let Ok(page) = builder.install_recorder() else { return };
    let _ = PAGE.set(page);
    for metric in METRICS {
        match metric.kind {
            Kind::Counter => describe_counter!(metric.name, metric.help),
            Kind::Gauge => describe_gauge!(metric.name, metric.help),
            Kind::Histogram => describe_histogram!(metric.name, Unit::Seconds, metric.help),
        }
        // What has not happened yet is there as a zero, so that an alert about it is one about something.
        match metric.kind {
            Kind::Counter if metric.labels.is_empty() => counter!(metric.name).absolute(0),
            Kind::Gauge if metric.labels.is_empty() => gauge!(metric.name).set(0.0),
            _ => {}
        }
    }
    for fault in Fault::ALL {
        counter!("ebbflow_findings_total", "fault" => fault.name()).absolute(0);
    }
}

/// The page as it stands; empty where counting was not started here.
pub fn page() -> String {
    PAGE.get().map(PrometheusHandle::render).unwrap_or_default()
}

/// A request was answered.
pub(crate) fn request(path: &str, status: StatusCode, took: Duration) {
    let labels = [("path", path.to_owned()), ("status", status.as_str().to_owned())];
    counter!("ebbflow_http_requests_total", &labels).increment(1);
    histogram!("ebbflow_http_request_seconds", "path" => path.to_owned()).record(took.as_secs_f64());
    if MEASURED.fetch_add(1, Ordering::Relaxed).is_multiple_of(UPKEEP)
        && let Some(page) = PAGE.get()
    {
        page.run_upkeep();
    }
}

/// A message arrived, so long after it was published.
pub(crate) fn delivered(kind: &'static str, published_at: Instant, now: Instant) {
    let seconds = (now - published_at).as_seconds_f64().max(0.0);
    histogram!("ebbflow_delivery_seconds", "type" => kind).record(seconds);
}

/// A message was dead-lettered.
pub(crate) fn dead_lettered() {
    counter!("ebbflow_dead_letters_total").increment(1);
}

/// How many connections of the pool are open, idle and allowed.
pub(crate) fn pool(store: &dyn Store) {
    if let Some(pool) = store.pool() {
        gauge!("ebbflow_database_connections", "state" => "used").set(pool.open.saturating_sub(pool.idle));
        gauge!("ebbflow_database_connections", "state" => "idle").set(pool.idle);
        gauge!("ebbflow_database_connections", "state" => "most").set(pool.most);
    }
}

/// How much of everything there is. What is no more was there before, and is shown as none.
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
    gauge!("ebbflow_outbox_age_seconds").set(age(load.unsent));
    gauge!("ebbflow_timer_overdue_seconds").set(age(load.timer));
    gauge!("ebbflow_dead_letters_kept").set(f64::from(load.dead_letters));
}

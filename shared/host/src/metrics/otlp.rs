//! Metrics and spans for a collector: OTLP over HTTP, as JSON.

mod pace;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use bus::SystemClock;
use chrono::TimeDelta;
use model::{Clock, Instant};
use serde_json::{Value, json};

use super::catalogue::Kind;
use super::registry::{self, BOUNDS, Family, Labels};
use crate::config::{OtlpAuth, OtlpConfig};
use crate::database_login::{AccessTokens, Passwords};
use crate::traces::{self, SpanBuffer};
use pace::{Due, Pace};

/// How often metrics are sent.
const METRICS_INTERVAL: TimeDelta = TimeDelta::seconds(60);

/// How often spans are sent, unless a full batch is ready sooner.
const SPANS_INTERVAL: TimeDelta = TimeDelta::seconds(5);

const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a response waits for the collector.
const RESPONSE_DELAY: Duration = Duration::from_secs(2);

/// A process that continues this much too late had no CPU.
const LATE: TimeDelta = TimeDelta::seconds(5);

/// Google's endpoint accepts no more points in one request.
const MAX_POINTS: usize = 200;

/// OTLP's aggregation temporality of totals since the process started.
const CUMULATIVE: u32 = 2;

/// The scope of the tokens for Google's endpoint.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// Sends metrics and spans to a collector.
pub struct Exporter {
    client: reqwest::Client,
    config: OtlpConfig,
    tokens: Option<Box<dyn Passwords>>,
    resource: Resource,
    since: Instant,
    spans: &'static SpanBuffer,
    /// The number of requests in progress.
    requests: AtomicUsize,
    pace: Mutex<Pace>,
}

/// The resource that metrics and spans describe: this process.
pub(crate) struct Resource(Vec<(&'static str, String)>);

impl Resource {
    /// Each instance of a function is one, so that their totals are added up and not mistaken for each other.
    pub(crate) fn new(
        installation: &str,
        service: &str,
        project: Option<&str>,
        region: Option<&str>,
    ) -> Self {
        let mut labels = vec![
            ("service.name", format!("{installation}-{service}")),
            ("service.instance.id", uuid::Uuid::now_v7().to_string()),
            // The label by which queries choose one of several installations in a project.
            ("cluster", installation.to_owned()),
        ];
        // Google's endpoint finds the project by the first, and rejects every point without the second.
        labels.extend(project.map(|project| ("gcp.project_id", project.to_owned())));
        labels.extend(region.map(|region| ("cloud.region", region.to_owned())));
        Self(labels)
    }

    pub(crate) fn attributes(&self) -> Vec<Value> {
        attributes(self.0.iter().map(|(name, value)| (*name, value.as_str())))
    }
}

impl Exporter {
    /// An exporter to a collector. From now on spans are buffered for it.
    pub fn new(config: &OtlpConfig, service: &str) -> Result<Self, String> {
        let client =
            reqwest::Client::builder().timeout(REQUEST_TIMEOUT).default_headers(config.headers.clone());
        let now = SystemClock.now();
        Ok(Self {
            client: client.build().map_err(|error| error.to_string())?,
            tokens: match config.auth {
                OtlpAuth::Google => Some(Box::new(AccessTokens::of_this_account(SCOPE)?)),
                OtlpAuth::None => None,
            },
            resource: Resource::new(
                &config.installation,
                service,
                config.project.as_deref(),
                config.region.as_deref(),
            ),
            config: config.clone(),
            since: now,
            spans: traces::start_buffering(),
            requests: AtomicUsize::new(0),
            pace: Mutex::new(Pace::new(now)),
        })
    }

    /// Handles a request, and sends what there is before the response if no other request is in progress: the platform may
    /// then take the CPU away until the next one, which may never come. With other requests, it sends every few seconds.
    pub(crate) async fn before_response(self: Arc<Self>, request: Request, next: Next) -> Response {
        // The platform probes an instance for its own sake.
        if crate::health::is_probe(request.uri().path()) {
            return next.run(request).await;
        }
        let counted = InProgress::among(&self.requests);
        let response = next.run(request).await;
        let is_last = self.requests.load(Ordering::SeqCst) == 1;
        let due = self.pace(|pace| pace.before_response(is_last, SystemClock.now()));
        if tokio::time::timeout(RESPONSE_DELAY, self.send_due(due)).await.is_err() {
            tracing::warn!("The collector does not respond; sending to it pauses");
            self.pace(|pace| pace.pause(SystemClock.now()));
        }
        drop(counted);
        response
    }

    async fn send_due(&self, due: Due) {
        if due.spans {
            self.send_spans().await;
        }
        if due.metrics {
            self.send_metrics().await;
        }
    }

    fn pace<T>(&self, look: impl FnOnce(&mut Pace) -> T) -> T {
        look(&mut self.pace.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sends metrics every minute, and spans within a few seconds of their end, for as long as the process runs.
    pub async fn keep_sending(&self) {
        tokio::join!(self.keep_sending_metrics(), self.keep_sending_spans());
    }

    async fn keep_sending_metrics(&self) {
        loop {
            let due_at = SystemClock.now() + METRICS_INTERVAL;
            SystemClock.wait_until(due_at).await;
            // After a time without CPU a request has begun, which sends more before its response.
            let now = SystemClock.now();
            if now < due_at + LATE && self.pace(|pace| pace.metrics(now)) {
                self.send_metrics().await;
            }
        }
    }

    async fn keep_sending_spans(&self) {
        loop {
            tokio::select! {
                () = SystemClock.wait_until(SystemClock.now() + SPANS_INTERVAL) => {}
                () = self.spans.batch_ready() => {}
            }
            self.send_spans().await;
        }
    }

    /// Sends all metrics and spans. If the collector is unavailable, they are lost.
    pub async fn send(&self) {
        self.send_spans().await;
        self.send_metrics().await;
    }

    async fn send_metrics(&self) {
        for families in portions(super::snapshot()) {
            let body = request(&families, &self.resource, self.since, SystemClock.now());
            if !self.post("metrics", &body).await {
                return;
            }
        }
    }

    /// Spans that the collector rejects are lost, so that they do not block later ones.
    async fn send_spans(&self) {
        loop {
            let spans = self.spans.take();
            if spans.is_empty() || !self.post("traces", &traces::as_otlp(&spans, &self.resource)).await {
                return;
            }
        }
    }

    async fn post(&self, what: &str, body: &Value) -> bool {
        let accepted = self.try_post(what, body).await;
        if let Err(error) = &accepted {
            tracing::warn!("The collector did not accept the {what}: {error}");
        }
        accepted.is_ok()
    }

    async fn try_post(&self, what: &str, body: &Value) -> Result<(), String> {
        let url = format!("{}/v1/{what}", self.config.endpoint.trim_end_matches('/'));
        let mut request = self.client.post(url).json(body);
        if let Some(tokens) = &self.tokens {
            request = request.bearer_auth(tokens.current().await?);
        }
        let sent = request.send().await.and_then(reqwest::Response::error_for_status);
        let response: Value = sent.map_err(|error| error.to_string())?.json().await.unwrap_or_default();
        match rejected(&response["partialSuccess"]) {
            false => Ok(()),
            true => Err(format!("it rejected a part of them: {}", response["partialSuccess"])),
        }
    }
}

/// Whether a collector that answered with success has rejected some points or spans.
fn rejected(partial: &Value) -> bool {
    let count = |field: &str| match &partial[field] {
        Value::String(text) => text.parse().unwrap_or(0),
        number => number.as_i64().unwrap_or(0),
    };
    count("rejectedDataPoints") > 0 || count("rejectedSpans") > 0
}

/// The metrics in portions for one request each; at least one, so that an idle instance is seen, too.
fn portions(families: Vec<Family>) -> Vec<Vec<Family>> {
    let (mut portions, mut current, mut room) = (Vec::new(), Vec::new(), MAX_POINTS);
    for Family { metric, series } in families {
        let mut series = series.into_iter().peekable();
        while series.peek().is_some() {
            if room == 0 {
                portions.push(std::mem::take(&mut current));
                room = MAX_POINTS;
            }
            let part: BTreeMap<_, _> = series.by_ref().take(room).collect();
            room -= part.len();
            current.push(Family { metric, series: part });
        }
    }
    portions.push(current);
    portions
}

/// Counts a request as in progress, until it is responded to or given up.
struct InProgress<'a>(&'a AtomicUsize);

impl<'a> InProgress<'a> {
    fn among(all: &'a AtomicUsize) -> Self {
        all.fetch_add(1, Ordering::SeqCst);
        Self(all)
    }
}

impl Drop for InProgress<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The metrics as an OTLP export request.
pub(super) fn request(families: &[Family], resource: &Resource, since: Instant, now: Instant) -> Value {
    let (since, now) = (nanos(since), nanos(now));
    let point = |(labels, value): (&Labels, &registry::Value)| {
        let labels = labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let mut point = json!({
            "attributes": attributes(labels), "startTimeUnixNano": since, "timeUnixNano": now,
        });
        match value {
            registry::Value::Count(count) => point["asInt"] = json!(count.to_string()),
            registry::Value::Level(level) => point["asDouble"] = json!(level),
            registry::Value::Distribution { counts, sum } => {
                point["count"] = json!(counts.iter().sum::<u64>().to_string());
                point["sum"] = json!(sum);
                point["bucketCounts"] = counts.iter().map(u64::to_string).collect();
                point["explicitBounds"] = json!(BOUNDS);
            }
        }
        point
    };
    let metric = |Family { metric, series }: &Family| {
        let points: Vec<Value> = series.iter().map(point).collect();
        let mut body = json!({"name": metric.name, "description": metric.help});
        match metric.kind {
            Kind::Counter => {
                body["sum"] = json!({
                    "dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": true,
                });
            }
            Kind::Gauge => body["gauge"] = json!({"dataPoints": points}),
            Kind::Histogram => {
                body["unit"] = json!("s");
                body["histogram"] = json!({"dataPoints": points, "aggregationTemporality": CUMULATIVE});
            }
        }
        body
    };
    json!({"resourceMetrics": [{
        "resource": {"attributes": resource.attributes()},
        "scopeMetrics": [{
            "scope": {"name": "ebbflow"}, "metrics": families.iter().map(metric).collect::<Vec<_>>(),
        }],
    }]})
}

pub(crate) fn attributes<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Value> {
    let attribute = |(name, value)| json!({"key": name, "value": {"stringValue": value}});
    labels.into_iter().map(attribute).collect()
}

pub(crate) fn nanos(instant: Instant) -> String {
    instant.timestamp_nanos_opt().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests;

//! Metrics and spans for a collector: OTLP over HTTP, as JSON.

use std::time::Duration;

use bus::SystemClock;
use chrono::TimeDelta;
use model::{Clock, Instant};
use serde_json::{Value, json};

use super::catalogue::Kind;
use super::registry::{self, BOUNDS, Family, Labels};
use crate::traces::{self, SpanBuffer};

/// How often metrics are sent.
const METRICS_INTERVAL: TimeDelta = TimeDelta::seconds(60);

/// How often spans are sent, unless a full batch is ready sooner.
const SPANS_INTERVAL: TimeDelta = TimeDelta::seconds(5);

const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// OTLP's aggregation temporality of totals since the process started.
const CUMULATIVE: u32 = 2;

/// Sends metrics and spans to a collector.
pub struct Exporter {
    client: reqwest::Client,
    endpoint: String,
    service: String,
    since: Instant,
    spans: &'static SpanBuffer,
}

impl Exporter {
    /// An exporter to the collector at `endpoint`. From now on spans are buffered for it.
    pub fn new(endpoint: &str, service: &str) -> reqwest::Result<Self> {
        Ok(Self {
            client: reqwest::Client::builder().timeout(REQUEST_TIMEOUT).build()?,
            endpoint: endpoint.trim_end_matches('/').into(),
            service: format!("ebbflow-{service}"),
            since: SystemClock.now(),
            spans: traces::start_buffering(),
        })
    }

    /// Sends metrics every minute, and spans within a few seconds of their end, for as long as the process runs.
    pub async fn keep_sending(&self) {
        tokio::join!(self.keep_sending_metrics(), self.keep_sending_spans());
    }

    async fn keep_sending_metrics(&self) {
        loop {
            SystemClock.wait_until(SystemClock.now() + METRICS_INTERVAL).await;
            self.send_metrics().await;
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
        let body = request(&super::snapshot(), &self.service, self.since, SystemClock.now());
        self.post("metrics", &body).await;
    }

    /// Spans that the collector rejects are lost, so that they do not block later ones.
    async fn send_spans(&self) {
        loop {
            let spans = self.spans.take();
            if spans.is_empty() || !self.post("traces", &traces::as_otlp(&spans, &self.service)).await {
                return;
            }
        }
    }

    async fn post(&self, what: &str, body: &Value) -> bool {
        let sent = self.client.post(format!("{}/v1/{what}", self.endpoint)).json(body).send().await;
        let accepted = sent.and_then(reqwest::Response::error_for_status);
        if let Err(error) = &accepted {
            tracing::warn!("The collector did not accept the {what}: {error}");
        }
        accepted.is_ok()
    }
}

/// The metrics as an OTLP export request.
pub(super) fn request(families: &[Family], service: &str, since: Instant, now: Instant) -> Value {
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
        "resource": {"attributes": attributes([("service.name", service)])},
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

//! The same numbers for a collector that is sent them: OTLP over HTTP, as JSON. What is sent is what the page shows. The
//! spans of traces go the same way.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::TimeDelta;
use clock::{Clock, SystemClock};
use model::Instant;
use serde_json::{Value, json};

use crate::traces::{self, Waiting};

/// A collector is sent the numbers this often.
const PAUSE: TimeDelta = TimeDelta::seconds(60);

/// And what there is of spans, if there are not many before.
const SPANS_PAUSE: TimeDelta = TimeDelta::seconds(5);

/// A collector that takes longer is left alone until the next time.
const WITHIN: Duration = Duration::from_secs(5);

/// Totals since the process began.
const CUMULATIVE: u32 = 2;

/// Sends numbers and spans to a collector.
pub struct Exporter {
    client: reqwest::Client,
    endpoint: String,
    service: String,
    since: Instant,
    spans: &'static Waiting,
}

impl Exporter {
    /// To the collector at that address, as that service. From now on spans are gathered for it.
    pub fn new(endpoint: &str, service: &str) -> reqwest::Result<Self> {
        Ok(Self {
            client: reqwest::Client::builder().timeout(WITHIN).build()?,
            endpoint: endpoint.trim_end_matches('/').into(),
            service: format!("ebbflow-{service}"),
            since: SystemClock.now(),
            spans: traces::gather(),
        })
    }

    /// Sends the numbers every minute, and spans a few seconds after they ended, for as long as the process lives.
    pub async fn keep_sending(&self) {
        tokio::join!(self.keep_sending_numbers(), self.keep_sending_spans());
    }

    async fn keep_sending_numbers(&self) {
        loop {
            SystemClock.wait_until(SystemClock.now() + PAUSE).await;
            self.send_numbers().await;
        }
    }

    async fn keep_sending_spans(&self) {
        loop {
            tokio::select! {
                () = SystemClock.wait_until(SystemClock.now() + SPANS_PAUSE) => {}
                () = self.spans.enough() => {}
            }
            self.send_spans().await;
        }
    }

    /// Sends what there is. A collector that is away is nobody's trouble but its own.
    pub async fn send(&self) {
        self.send_spans().await;
        self.send_numbers().await;
    }

    async fn send_numbers(&self) {
        let body = as_otlp(&super::page(), &self.service, self.since, SystemClock.now());
        self.post("metrics", &body).await;
    }

    /// What it does not take is lost: others wait behind.
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
        let taken = sent.and_then(reqwest::Response::error_for_status);
        if let Err(error) = &taken {
            tracing::warn!("The collector did not take the {what}: {error}");
        }
        taken.is_ok()
    }
}

/// A page in Prometheus' text format as a request of OTLP.
pub fn as_otlp(page: &str, service: &str, since: Instant, now: Instant) -> Value {
    let (mut families, mut kinds) = (BTreeMap::<&str, Vec<Sample<'_>>>::new(), BTreeMap::new());
    for line in page.lines() {
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|line| line.split_once(' ')) {
            kinds.insert(name, kind);
        } else if let Some(sample) = Sample::read(line) {
            let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| sample.name.strip_suffix(end));
            let family = family.filter(|name| kinds.contains_key(name)).unwrap_or(sample.name);
            families.entry(family).or_default().push(sample);
        }
    }
    let times = Times { since: nanos(since), now: nanos(now) };
    let metrics: Vec<Value> = families
        .iter()
        .map(|(name, samples)| match kinds.get(name).copied() {
            Some("counter") => {
                let points: Vec<Value> = samples.iter().map(|sample| sample.point(&times)).collect();
                json!({"name": name, "sum": {
                    "dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": true,
                }})
            }
            Some("histogram") => {
                let points = histogram_points(samples, &times);
                json!({"name": name, "unit": "s", "histogram": {
                    "dataPoints": points, "aggregationTemporality": CUMULATIVE,
                }})
            }
            _ => {
                let points: Vec<Value> = samples.iter().map(|sample| sample.point(&times)).collect();
                json!({"name": name, "gauge": {"dataPoints": points}})
            }
        })
        .collect();
    json!({"resourceMetrics": [{
        "resource": {"attributes": attributes([("service.name", service)])},
        "scopeMetrics": [{"scope": {"name": "ebbflow"}, "metrics": metrics}],
    }]})
}

struct Times {
    since: String,
    now: String,
}

/// A line of the page.
struct Sample<'p> {
    name: &'p str,
    labels: Vec<(&'p str, String)>,
    value: f64,
}

impl<'p> Sample<'p> {
    fn read(line: &'p str) -> Option<Self> {
        let (series, value) = line.rsplit_once(' ').filter(|_| !line.starts_with('#'))?;
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        Some(Self { name, labels: read_labels(labels), value: value.parse().ok()? })
    }

    fn point(&self, times: &Times) -> Value {
        let labels = self.labels.iter().map(|(name, value)| (*name, value.as_str()));
        json!({
            "attributes": attributes(labels), "startTimeUnixNano": times.since, "timeUnixNano": times.now,
            "asDouble": self.value,
        })
    }
}

/// The labels of a series: `name="value",…}`, where `\` comes before what would end a value.
fn read_labels(mut text: &str) -> Vec<(&str, String)> {
    let mut labels = Vec::new();
    while let Some((name, rest)) = text.split_once("=\"") {
        let (mut value, mut escaped, mut end) = (String::new(), false, rest.len());
        for (at, letter) in rest.char_indices() {
            match letter {
                _ if escaped => {
                    value.push(if letter == 'n' { '\n' } else { letter });
                    escaped = false;
                }
                '\\' => escaped = true,
                '"' => {
                    end = at + 1;
                    break;
                }
                _ => value.push(letter),
            }
        }
        labels.push((name.trim_start_matches(','), value));
        text = &rest[end..];
    }
    labels
}

/// A histogram's lines tell how many lie below each bound; a point tells how many lie between two.
fn histogram_points(samples: &[Sample<'_>], times: &Times) -> Vec<Value> {
    type Labels<'p> = Vec<(&'p str, String)>;
    let mut series: BTreeMap<Labels<'_>, (Vec<f64>, Vec<f64>, f64, f64)> = BTreeMap::new();
    for sample in samples {
        let labels: Labels<'_> = sample.labels.iter().filter(|(name, _)| *name != "le").cloned().collect();
        let (bounds, below, sum, count) = series.entry(labels).or_default();
        if sample.name.ends_with("_sum") {
            *sum = sample.value;
        } else if sample.name.ends_with("_count") {
            *count = sample.value;
        } else {
            let bound = sample.labels.iter().find(|(name, _)| *name == "le").map(|(_, bound)| bound.parse());
            bounds.extend(bound.and_then(Result::ok).filter(|bound: &f64| bound.is_finite()));
            below.push(sample.value);
        }
    }
    let point = |(labels, (bounds, below, sum, count)): (Labels<'_>, (Vec<f64>, Vec<f64>, f64, f64))| {
        let within = |place: usize| below[place] - place.checked_sub(1).map_or(0.0, |before| below[before]);
        let counts: Vec<String> = (0..below.len()).map(|place| format!("{:.0}", within(place))).collect();
        let labels = labels.iter().map(|(name, value)| (*name, value.as_str()));
        json!({
            "attributes": attributes(labels), "startTimeUnixNano": times.since, "timeUnixNano": times.now,
            "count": format!("{count:.0}"), "sum": sum, "bucketCounts": counts, "explicitBounds": bounds,
        })
    };
    series.into_iter().map(point).collect()
}

pub(crate) fn attributes<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Value> {
    let attribute = |(name, value)| json!({"key": name, "value": {"stringValue": value}});
    labels.into_iter().map(attribute).collect()
}

pub(crate) fn nanos(instant: Instant) -> String {
    instant.timestamp_nanos_opt().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"# HELP runs_total Runs that ended.
# TYPE runs_total counter
runs_total{workflow="a \"b\"",state="failed"} 3
# TYPE depth gauge
depth 7
# TYPE took histogram
took_bucket{path="/push",le="0.1"} 2
took_bucket{path="/push",le="1"} 5
took_bucket{path="/push",le="+Inf"} 6
took_sum{path="/push"} 9.5
took_count{path="/push"} 6
"#;

    #[test]
    fn a_collector_is_sent_what_the_page_shows() {
        let instant = |second| Instant::from_timestamp(second, 0).unwrap();
        let request = as_otlp(PAGE, "ebbflow-sweep", instant(1), instant(2));
        let scope = &request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
        let named =
            |name: &str| scope.as_array().unwrap().iter().find(|metric| metric["name"] == name).unwrap();
        let counter = &named("runs_total")["sum"]["dataPoints"][0];
        assert_eq!(counter["asDouble"], 3.0);
        assert_eq!(counter["attributes"][0], json!({"key": "workflow", "value": {"stringValue": "a \"b\""}}));
        assert_eq!(
            (&counter["startTimeUnixNano"], &counter["timeUnixNano"]),
            (&json!("1000000000"), &json!("2000000000"))
        );
        assert_eq!(named("depth")["gauge"]["dataPoints"][0]["asDouble"], 7.0);
        let histogram = &named("took")["histogram"]["dataPoints"][0];
        assert_eq!(histogram["bucketCounts"], json!(["2", "3", "1"]));
        assert_eq!(histogram["explicitBounds"], json!([0.1, 1.0]));
        assert_eq!((&histogram["count"], &histogram["sum"]), (&json!("6"), &json!(9.5)));
        assert_eq!(histogram["attributes"].as_array().unwrap().len(), 1);
    }
}

use metrics::with_local_recorder;
use serde_json::{Value, json};

use super::*;

fn at(second: i64) -> Instant {
    Instant::from_timestamp(second, 0).unwrap()
}

/// The metrics of an export request, by name.
fn exported(request: &Value, name: &str) -> Value {
    let metrics = request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    metrics.iter().find(|metric| metric["name"] == name).unwrap_or_else(|| panic!("{name}")).clone()
}

#[test]
fn both_exports_have_the_same_names_types_labels_and_values() {
    let registry = Registry::default();
    with_local_recorder(&registry, || {
        for metric in METRICS {
            let labels: Vec<(&str, String)> =
                metric.labels.iter().map(|name| (*name, format!("a {name}"))).collect();
            match metric.kind {
                Kind::Counter => counter!(metric.name, &labels).increment(3),
                Kind::Gauge => gauge!(metric.name, &labels).set(2.5),
                Kind::Histogram => histogram!(metric.name, &labels).record(0.02),
            }
        }
    });
    let families = registry.snapshot();
    let (page, request) = (
        prometheus::page(&families),
        otlp::request(&families, &otlp::Resource::new("ebbflow", "sweep", None, None), at(1), at(2)),
    );
    for metric in METRICS {
        let labels: Vec<String> = metric.labels.iter().map(|name| format!("{name}=\"a {name}\"")).collect();
        let series = |labels: &[String]| match labels {
            [] => String::new(),
            labels => format!("{{{}}}", labels.join(",")),
        };
        let (kind, sample, data, value) = match metric.kind {
            Kind::Counter => {
                ("counter", format!("{}{} 3", metric.name, series(&labels)), "sum", ("asInt", json!("3")))
            }
            Kind::Gauge => (
                "gauge",
                format!("{}{} 2.5", metric.name, series(&labels)),
                "gauge",
                ("asDouble", json!(2.5)),
            ),
            Kind::Histogram => (
                "histogram",
                format!("{}_sum{} 0.02", metric.name, series(&labels)),
                "histogram",
                ("sum", json!(0.02)),
            ),
        };
        let head = format!("# HELP {0} {1}\n# TYPE {0} {kind}\n", metric.name, metric.help);
        assert!(page.contains(&head), "{head} is missing:\n{page}");
        assert!(page.lines().any(|line| line == sample), "{sample} is missing:\n{page}");
        let point = &exported(&request, metric.name)[data]["dataPoints"][0];
        assert_eq!(point[value.0], value.1, "{}", metric.name);
        let attributes: Vec<Value> = metric
            .labels
            .iter()
            .map(|name| json!({"key": name, "value": {"stringValue": format!("a {name}")}}))
            .collect();
        assert_eq!(point["attributes"], json!(attributes), "{}", metric.name);
    }
}

#[test]
fn there_are_zero_workers_before_the_first() {
    let registry = Registry::default();
    with_local_recorder(&registry, || set_workers(&BTreeMap::new()));
    let page = prometheus::page(&registry.snapshot());
    assert!(page.contains("\nebbflow_workers{queue=\"any\"} 0\n"), "{page}");
}

#[test]
fn a_histogram_counts_up_to_each_bound_on_the_page_and_between_bounds_for_a_collector() {
    let registry = Registry::default();
    with_local_recorder(&registry, || {
        for seconds in [0.005, 0.006, 0.3, 5_000.0] {
            histogram!("ebbflow_attempt_seconds", "kind" => "http").record(seconds);
        }
    });
    let families = registry.snapshot();
    let page = prometheus::page(&families);
    let counts: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("ebbflow_attempt_seconds_")).collect();
    assert_eq!(
        counts,
        [
            r#"bucket{kind="http",le="0.005"} 1"#,
            r#"bucket{kind="http",le="0.01"} 2"#,
            r#"bucket{kind="http",le="0.025"} 2"#,
            r#"bucket{kind="http",le="0.05"} 2"#,
            r#"bucket{kind="http",le="0.1"} 2"#,
            r#"bucket{kind="http",le="0.25"} 2"#,
            r#"bucket{kind="http",le="0.5"} 3"#,
            r#"bucket{kind="http",le="1"} 3"#,
            r#"bucket{kind="http",le="5"} 3"#,
            r#"bucket{kind="http",le="30"} 3"#,
            r#"bucket{kind="http",le="60"} 3"#,
            r#"bucket{kind="http",le="300"} 3"#,
            r#"bucket{kind="http",le="3600"} 3"#,
            r#"bucket{kind="http",le="+Inf"} 4"#,
            r#"sum{kind="http"} 5000.311"#,
            r#"count{kind="http"} 4"#,
        ]
    );
    let request =
        otlp::request(&families, &otlp::Resource::new("ebbflow", "sweep", None, None), at(1), at(2));
    let point = &exported(&request, "ebbflow_attempt_seconds")["histogram"]["dataPoints"][0];
    let counts = ["1", "1", "0", "0", "0", "0", "1", "0", "0", "0", "0", "0", "0", "1"];
    assert_eq!((&point["bucketCounts"], &point["count"]), (&json!(counts), &json!("4")));
    assert_eq!(point["explicitBounds"].as_array().unwrap().len(), counts.len() - 1);
    assert_eq!(
        (&point["startTimeUnixNano"], &point["timeUnixNano"]),
        (&json!("1000000000"), &json!("2000000000"))
    );
}

#[test]
fn labels_are_escaped_for_prometheus_only() {
    let registry = Registry::default();
    let workflow = "a \"b\"\\\n";
    let count =
        || counter!("ebbflow_runs_ended_total", "workflow" => workflow, "state" => "failed").increment(1);
    with_local_recorder(&registry, || (count(), count()));
    let families = registry.snapshot();
    let page = prometheus::page(&families);
    assert!(page.contains(r#"ebbflow_runs_ended_total{workflow="a \"b\"\\\n",state="failed"} 2"#), "{page}");
    let request =
        otlp::request(&families, &otlp::Resource::new("ebbflow", "sweep", None, None), at(1), at(2));
    let point = &exported(&request, "ebbflow_runs_ended_total")["sum"]["dataPoints"][0];
    assert_eq!(point["attributes"][0]["value"]["stringValue"], workflow);
}

#[test]
fn metrics_outside_the_catalogue_are_ignored() {
    let registry = Registry::default();
    with_local_recorder(&registry, || counter!("unlisted_total").increment(1));
    assert!(registry.snapshot().is_empty());
}

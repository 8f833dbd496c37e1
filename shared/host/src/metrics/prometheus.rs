//! The metrics in Prometheus' text format.

use std::fmt::{Display, Write};

use super::catalogue::{Kind, Metric};
use super::registry::{BOUNDS, Family, Labels, Value};

pub(super) fn page(families: &[Family]) -> String {
    let mut page = String::new();
    for Family { metric, series } in families {
        let Metric { name, help, .. } = metric;
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let _ = write!(page, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for (labels, value) in series {
            match value {
                Value::Count(count) => line(&mut page, name, labels, None, count),
                Value::Level(level) => line(&mut page, name, labels, None, level),
                Value::Distribution { counts, sum } => {
                    histogram(&mut page, name, labels, counts);
                    line(&mut page, &format!("{name}_sum"), labels, None, sum);
                    line(&mut page, &format!("{name}_count"), labels, None, counts.iter().sum::<u64>());
                }
            }
        }
        page.push('\n');
    }
    page
}

/// Writes the buckets of a histogram. Counts are cumulative.
fn histogram(page: &mut String, name: &str, labels: &Labels, counts: &[u64]) {
    let bounds = BOUNDS.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
    let mut below = 0;
    for (bound, count) in bounds.zip(counts) {
        below += count;
        line(page, &format!("{name}_bucket"), labels, Some(&bound), below);
    }
}

fn line(page: &mut String, name: &str, labels: &Labels, bound: Option<&str>, value: impl Display) {
    let label = |(name, value): (&str, &str)| format!("{name}=\"{}\"", escaped(value));
    let labels = labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let labels: Vec<String> = labels.chain(bound.map(|bound| ("le", bound))).map(label).collect();
    let _ = match labels.is_empty() {
        true => writeln!(page, "{name} {value}"),
        false => writeln!(page, "{name}{{{}}} {value}", labels.join(",")),
    };
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

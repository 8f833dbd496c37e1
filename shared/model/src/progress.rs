//! How far an attempt has come, as its program or its remote worker reports it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Instant;

/// The metric that a worker adds to each attempt of a contained program: the processor time of all its processes. `ebb.` keeps
/// the names of such metrics apart from those of programs.
pub const CPU_SECONDS: &str = "ebb.cpu_seconds";

/// The same for the memory of all these together, or where its worker has no control groups, the resident memory of the
/// largest.
pub const PEAK_MEMORY_BYTES: &str = "ebb.peak_memory_bytes";

/// The maximum number of metrics of an attempt; further names are ignored.
pub const MAX_METRICS: usize = 32;

/// The maximum length of a metric's name, in characters.
pub const MAX_METRIC_NAME: usize = 64;

/// The maximum length of a message and of a phase, in characters; the rest is cut off.
pub const MAX_PROGRESS_TEXT: usize = 200;

/// The number of values of a metric that are kept. Of more, every second one is dropped, so that the series covers the whole
/// attempt however long it takes.
const MAX_POINTS: usize = 60;

/// One report about an attempt. What it leaves out stays as it was reported before.
#[derive(Clone, PartialEq, Debug)]
pub struct ProgressReport {
    /// The attempt that it is about.
    pub attempt: u32,
    /// When it was reported.
    pub at: Instant,
    /// The share of the work that is done.
    pub done: Option<Done>,
    /// The phase of the attempt's newest checkpoint.
    pub phase: Option<String>,
    /// New values of metrics, by name.
    pub metrics: BTreeMap<String, f64>,
}

/// The share of an attempt's work that is done.
#[derive(Clone, PartialEq, Debug)]
pub struct Done {
    /// From 0 to 1.
    pub fraction: f64,
    /// A description of the current activity, for people.
    pub message: Option<String>,
}

/// All that an attempt has reported.
#[derive(Clone, PartialEq, Debug)]
pub struct Progress {
    /// The attempt that reported it.
    pub attempt: u32,
    /// When it reported last.
    pub at: Instant,
    /// The share of the work that is done, if the attempt ever reported it.
    pub done: Option<Done>,
    /// The phase of its newest checkpoint.
    pub phase: Option<String>,
    /// Its metrics, by name.
    pub metrics: BTreeMap<String, Series>,
}

impl ProgressReport {
    /// A report without content.
    pub fn new(attempt: u32, at: Instant) -> Self {
        Self { attempt, at, done: None, phase: None, metrics: BTreeMap::new() }
    }
}

impl Progress {
    /// An attempt that has reported nothing.
    pub fn new(attempt: u32, at: Instant) -> Self {
        Self { attempt, at, done: None, phase: None, metrics: BTreeMap::new() }
    }

    /// Takes in a report. Content beyond the limits is cut off or ignored, so that a row stays small.
    pub fn apply(&mut self, report: &ProgressReport) {
        self.at = self.at.max(report.at);
        if let Some(done) = &report.done {
            let message = done.message.as_deref().map(short);
            self.done = Some(Done { fraction: done.fraction.clamp(0.0, 1.0), message });
        }
        if let Some(phase) = &report.phase {
            self.phase = Some(short(phase));
        }
        for (name, value) in report.metrics.iter().filter(|(name, value)| is_metric(name, **value)) {
            if self.metrics.len() < MAX_METRICS || self.metrics.contains_key(name) {
                self.metrics.entry(name.clone()).or_default().add(report.at, *value);
            }
        }
    }
}

/// Whether a metric can be kept: a short name without control characters, and a number.
pub fn is_metric(name: &str, value: f64) -> bool {
    let length = name.chars().take(MAX_METRIC_NAME + 1).count();
    (1..=MAX_METRIC_NAME).contains(&length) && !name.chars().any(char::is_control) && value.is_finite()
}

/// The phase that a checkpoint names, if it does.
pub fn phase_of(checkpoint: &serde_json::Value) -> Option<String> {
    checkpoint.get("phase")?.as_str().map(short)
}

fn short(text: &str) -> String {
    // Terminals and databases take offence at control characters.
    let printable = text.chars().map(|character| if character.is_control() { ' ' } else { character });
    printable.take(MAX_PROGRESS_TEXT).collect()
}

/// The values of a metric over time, oldest first: milliseconds since 1970, and the value. The last one is always kept.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Series(pub Vec<(i64, f64)>);

impl Series {
    /// The newest value, if there is one.
    pub fn last(&self) -> Option<f64> {
        self.0.last().map(|(_, value)| *value)
    }

    fn add(&mut self, at: Instant, value: f64) {
        if self.0.len() >= MAX_POINTS {
            let mut index = 0;
            self.0.retain(|_| {
                index += 1;
                index % 2 == 1
            });
        }
        self.0.push((at.timestamp_millis(), value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Instant {
        Instant::from_timestamp(1_800_000_000 + second, 0).unwrap()
    }

    fn metric(second: i64, name: &str, value: f64) -> ProgressReport {
        let metrics = BTreeMap::from([(name.to_owned(), value)]);
        ProgressReport { metrics, ..ProgressReport::new(1, at(second)) }
    }

    #[test]
    fn a_report_changes_only_what_it_names() {
        let mut progress = Progress::new(1, at(0));
        let done = Done { fraction: 0.4, message: Some("loading".to_owned()) };
        progress.apply(&ProgressReport { done: Some(done.clone()), ..ProgressReport::new(1, at(1)) });
        progress.apply(&ProgressReport { phase: Some("load".to_owned()), ..ProgressReport::new(1, at(2)) });
        progress.apply(&metric(3, "rows", 12.0));
        assert_eq!((progress.done, progress.phase.as_deref()), (Some(done), Some("load")));
        assert_eq!(progress.metrics["rows"].last(), Some(12.0));
        assert_eq!(progress.at, at(3));
    }

    #[test]
    fn a_long_series_stays_small_and_covers_the_whole_attempt() {
        let mut progress = Progress::new(1, at(0));
        for second in 0..10_000 {
            progress.apply(&metric(second, "rows", second as f64));
        }
        let points = &progress.metrics["rows"].0;
        assert!((MAX_POINTS / 2..=MAX_POINTS).contains(&points.len()), "{}", points.len());
        assert_eq!((points[0].1, points.last().unwrap().1), (0.0, 9_999.0));
    }

    #[test]
    fn hostile_reports_cannot_grow_a_row() {
        let mut progress = Progress::new(1, at(0));
        for number in 0..1_000 {
            progress.apply(&metric(number, &format!("m{number}"), 1.0));
        }
        assert_eq!(progress.metrics.len(), MAX_METRICS);
        for (name, value) in [("", 1.0), ("a\nb", 1.0), ("m0", f64::NAN), (&*"x".repeat(65), 1.0)] {
            assert!(!is_metric(name, value), "{name:?} {value}");
        }
        let done = Done { fraction: 7.0, message: Some("x\u{1b}".repeat(500)) };
        progress.apply(&ProgressReport { done: Some(done), ..ProgressReport::new(1, at(1)) });
        let done = progress.done.unwrap();
        assert_eq!((done.fraction, done.message.unwrap()), (1.0, "x ".repeat(MAX_PROGRESS_TEXT / 2)));
    }
}

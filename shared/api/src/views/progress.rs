//! How far attempts have come.

use std::collections::BTreeMap;

use chrono::DateTime;
use model::{Instant, Progress, Series};
use serde::{Deserialize, Serialize};

/// The progress that an attempt reported.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ProgressView {
    /// The attempt that reported it.
    pub attempt: u32,
    /// When it reported last.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub at: Instant,
    /// The share of the work that is done, from 0 to 1.
    pub fraction: Option<f64>,
    /// A description of the current activity, for people.
    pub message: Option<String>,
    /// The phase of its newest checkpoint.
    pub phase: Option<String>,
    /// Its metrics, by name.
    pub metrics: BTreeMap<String, MetricView>,
}

/// The values of a metric.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MetricView {
    /// The newest value of the metric.
    pub value: f64,
    /// Values over time, oldest first, for a chart; at most 60. Lists and live events leave them out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<PointView>,
}

/// A value of a metric at an instant.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PointView {
    /// When it was reported.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub at: Instant,
    /// The value at that instant.
    pub value: f64,
}

impl ProgressView {
    /// The progress of a task: of its current attempt. One that has reported nothing yet continues from the phase of an
    /// earlier one, if the task was not cleared since.
    pub fn of_task(attempts: &[Progress], attempt: u32, voided: u32) -> Option<Self> {
        let counts = attempts.iter().filter(|one| (voided + 1..=attempt).contains(&one.attempt));
        let phase = counts.clone().rev().find_map(|one| one.phase.clone());
        match attempts.iter().find(|one| one.attempt == attempt) {
            Some(current) => Some(Self { phase, ..Self::from(current.clone()) }),
            None => {
                let last = counts.clone().next_back().filter(|_| phase.is_some())?;
                Some(Self { phase, ..Self::from(Progress::new(last.attempt, last.at)) })
            }
        }
    }

    /// The same without series.
    pub(crate) fn brief(mut self) -> Self {
        self.metrics.values_mut().for_each(|metric| metric.series.clear());
        self
    }

    /// The done part in percent.
    pub fn percent(&self) -> Option<u8> {
        // Rounded first, so that 0.29 is 29 percent; only what is done is 100.
        self.fraction.map(|fraction| ((fraction * 1000.0).round() / 10.0).floor() as u8)
    }
}

impl From<Progress> for ProgressView {
    fn from(progress: Progress) -> Self {
        let (fraction, message) =
            progress.done.map_or((None, None), |done| (Some(done.fraction), done.message));
        let metrics = progress.metrics.into_iter().filter_map(|(name, series)| {
            Some((name, MetricView { value: series.last()?, series: points(&series) }))
        });
        Self {
            attempt: progress.attempt,
            at: progress.at,
            fraction,
            message,
            phase: progress.phase,
            metrics: metrics.collect(),
        }
    }
}

fn points(series: &Series) -> Vec<PointView> {
    let point = |(at, value): &(i64, f64)| {
        Some(PointView { at: DateTime::from_timestamp_millis(*at)?, value: *value })
    };
    series.0.iter().filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(attempt: u32, phase: Option<&str>) -> Progress {
        let at = Instant::from_timestamp(1_800_000_000, 0).unwrap();
        Progress { phase: phase.map(str::to_owned), ..Progress::new(attempt, at) }
    }

    #[test]
    fn a_new_attempt_continues_from_the_phase_of_an_earlier_one() {
        let attempts = [progress(1, Some("load")), progress(2, None)];
        let phase = |attempt, voided| {
            ProgressView::of_task(&attempts, attempt, voided).map(|view| (view.attempt, view.phase))
        };
        assert_eq!(phase(2, 0), Some((2, Some("load".to_owned()))));
        assert_eq!(phase(3, 0), Some((2, Some("load".to_owned()))));
        assert_eq!(phase(3, 1), None, "the task was cleared after its first attempt");
        assert_eq!(phase(2, 1), Some((2, None)));
        assert_eq!(ProgressView::of_task(&[], 1, 0), None);
    }
}

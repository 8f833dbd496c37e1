//! Statistics of the last runs of a workflow.

use chrono::TimeDelta;
use model::RunState;
use read::ListedRun;
use serde::{Deserialize, Serialize};

/// Statistics of the last runs of a workflow.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StatisticsView {
    /// How many of the last 50 runs have ended; the other fields are about these.
    pub runs: usize,
    /// How many of them succeeded.
    pub succeeded: usize,
    /// How many of these failed.
    pub failed: usize,
    /// How many were cancelled.
    pub cancelled: usize,
    /// The share that succeeded of those that succeeded or failed, from 0 to 1; null if there are none.
    pub success_rate: Option<f64>,
    /// The median duration in milliseconds, from the start of the first task to the end.
    pub p50_ms: Option<i64>,
    /// The 95th percentile of the duration in milliseconds.
    pub p95_ms: Option<i64>,
}

impl StatisticsView {
    pub(super) fn of(runs: &[ListedRun]) -> Self {
        let count = |state| runs.iter().filter(|listed| listed.record.run.state == state).count();
        let (succeeded, failed, cancelled) =
            (count(RunState::Succeeded), count(RunState::Failed), count(RunState::Cancelled));
        let took =
            |ListedRun { record, .. }: &ListedRun| Some(record.run.finished_at? - record.run.started_at?);
        let mut took: Vec<TimeDelta> = runs.iter().filter_map(took).collect();
        took.sort_unstable();
        let decided = succeeded + failed;
        Self {
            runs: decided + cancelled,
            succeeded,
            failed,
            cancelled,
            success_rate: (decided > 0).then(|| succeeded as f64 / decided as f64),
            p50_ms: percentile(&took, 50),
            p95_ms: percentile(&took, 95),
        }
    }
}

/// The smallest duration that `percent` percent of them do not exceed.
fn percentile(sorted: &[TimeDelta], percent: usize) -> Option<i64> {
    let place = (sorted.len() * percent).div_ceil(100).checked_sub(1)?;
    sorted.get(place).map(TimeDelta::num_milliseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_what_was_measured() {
        let of = |count: i64| (1..=count).map(TimeDelta::milliseconds).collect::<Vec<_>>();
        for (count, p50, p95) in [(0, None, None), (1, Some(1), Some(1)), (20, Some(10), Some(19))] {
            assert_eq!((percentile(&of(count), 50), percentile(&of(count), 95)), (p50, p95), "{count}");
        }
    }
}

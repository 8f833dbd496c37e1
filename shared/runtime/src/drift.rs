//! How late schedules make their runs, for whoever watches.

use calendar::Drift;
use model::TenantId;
use store::DriftRecord;

use crate::{Result, Runtime};

/// How late a schedule made its runs, of those that were not missed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduleDrift {
    /// Whose it is.
    pub tenant: TenantId,
    /// The workflow's name.
    pub workflow: String,
    /// The schedule's name.
    pub schedule: String,
    /// How many runs were counted since the schedule is there.
    pub runs: i64,
    /// How many fell into each class, with its upper end in milliseconds; the last one has none.
    pub classes: Vec<(Option<i64>, i64)>,
    /// Half of them were made within so many milliseconds; none if nothing was counted, or if it is more than a minute.
    pub p50_ms: Option<i64>,
    /// 99 of a hundred were.
    pub p99_ms: Option<i64>,
}

impl From<DriftRecord> for ScheduleDrift {
    fn from(record: DriftRecord) -> Self {
        let drift = Drift::from_counts(&record.counts);
        Self {
            tenant: record.tenant,
            workflow: record.workflow,
            schedule: record.schedule,
            runs: drift.count(),
            classes: drift.classes().collect(),
            p50_ms: drift.percentile(50),
            p99_ms: drift.percentile(99),
        }
    }
}

impl Runtime {
    /// How late every schedule of every tenant makes its runs.
    pub async fn drifts(&self) -> Result<Vec<ScheduleDrift>> {
        Ok(self.store.drifts().await?.into_iter().map(ScheduleDrift::from).collect())
    }
}

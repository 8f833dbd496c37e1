//! Timers.

use async_trait::async_trait;
use model::{Instant, TaskKey, TenantId, Timer};

use super::Memory;
use super::tables::{Tables, TimerKey};
use crate::{DueTimer, Result, TimerFilter, TimerRecord, TimerViews, Timers};

#[async_trait]
impl Timers for Memory {
    async fn due_timers(&self, now: Instant, limit: u32) -> Result<Vec<DueTimer>> {
        Ok(self.shared.tables().due_timers(now, limit))
    }
}

#[async_trait]
impl TimerViews for Memory {
    async fn timers(&self, tenant: TenantId, filter: &TimerFilter) -> Result<Vec<TimerRecord>> {
        let tables = self.shared.tables();
        let record = |((run, task, _), timer): (&TimerKey, &Timer)| {
            let of = &tables.runs.get(run)?.run;
            let child = task.and_then(|task| tables.tasks.get(&TaskKey { run: *run, task })?.child);
            let (workflow, version, timer) = (of.workflow.clone(), of.version, timer.clone());
            (of.tenant == tenant).then_some(TimerRecord { run: *run, workflow, version, child, timer })
        };
        let timers = tables.timers.iter().filter_map(record);
        let timers = timers.filter(|found| filter.run.is_none_or(|run| found.run == run));
        let timers =
            timers.filter(|found| filter.workflow.as_ref().is_none_or(|name| found.workflow == *name));
        let timers = timers.filter(|found| filter.after.as_ref().is_none_or(|place| found.place() > *place));
        let mut timers: Vec<TimerRecord> = timers.collect();
        timers.sort_by_key(TimerRecord::place);
        timers.truncate(filter.limit as usize);
        Ok(timers)
    }
}

impl Tables {
    pub(super) fn due_timers(&self, now: Instant, limit: u32) -> Vec<DueTimer> {
        let mut due: Vec<_> = self.timers.iter().filter(|(_, timer)| timer.wake_at <= now).collect();
        due.sort_by_key(|((run, task, kind), timer)| (timer.wake_at, *run, *task, kind.name()));
        due.truncate(limit as usize);
        due.into_iter().map(|((run, ..), timer)| DueTimer { run: *run, timer: timer.clone() }).collect()
    }
}

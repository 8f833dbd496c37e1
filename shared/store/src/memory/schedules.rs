//! Schedules and how far they have come.

use async_trait::async_trait;
use model::{Instant, TenantId, Workflow};

use super::Memory;
use super::tables::Tables;
use crate::{Pause, Result, ScheduleRecord, Schedules, normal};

#[async_trait]
impl Schedules for Memory {
    async fn schedules(
        &self,
        tenant: TenantId,
        workflow: Option<&str>,
        after: Option<(&str, &str)>,
        limit: u32,
    ) -> Result<Vec<ScheduleRecord>> {
        let tables = self.shared.tables();
        let of_tenant = tables.schedules.iter().filter(|((of, ..), _)| *of == tenant);
        let wanted = of_tenant.filter(|((_, of, name), _)| {
            workflow.is_none_or(|workflow| workflow == of)
                && after.is_none_or(|after| (of.as_str(), name.as_str()) > after)
        });
        Ok(wanted.map(|(_, row)| row.clone()).take(limit as usize).collect())
    }

    async fn due_schedules(&self, now: Instant, limit: u32) -> Result<Vec<ScheduleRecord>> {
        let tables = self.shared.tables();
        let due = tables.schedules.values().filter(|row| row.due_at.is_some_and(|at| at <= now));
        let mut due: Vec<ScheduleRecord> = due.cloned().collect();
        due.sort_by_key(|row| row.due_at);
        due.truncate(limit as usize);
        Ok(due)
    }

    async fn save_schedule(&self, record: &ScheduleRecord) -> Result<bool> {
        let mut tables = self.shared.tables();
        let key = (record.tenant, record.workflow.clone(), record.schedule.name.clone());
        let Some(row) = tables.schedules.get_mut(&key).filter(|row| row.revision == record.revision) else {
            return Ok(false);
        };
        *row = written(record.clone());
        Ok(true)
    }
}

fn written(record: ScheduleRecord) -> ScheduleRecord {
    let text = |text: String| normal::text(&text).into_owned();
    ScheduleRecord {
        revision: record.revision + 1,
        problem: record.problem.map(text),
        pause: record.pause.map(|pause| Pause {
            by: text(pause.by),
            reason: pause.reason.map(text),
            ..pause
        }),
        ..record
    }
}

/// Makes the rows of a workflow's schedules follow from its active version.
pub(super) fn follow_schedules(tables: &mut Tables, tenant: TenantId, workflow: &Workflow, at: Instant) {
    let kept = |name: &String| workflow.schedules.iter().any(|schedule| schedule.name == *name);
    tables
        .schedules
        .retain(|(of, name, schedule), _| *of != tenant || *name != workflow.name || kept(schedule));
    for schedule in &workflow.schedules {
        let key = (tenant, workflow.name.clone(), schedule.name.clone());
        let row = match tables.schedules.remove(&key) {
            Some(known) => written(known.rewritten(schedule.clone(), at)),
            None => ScheduleRecord::new(tenant, &workflow.name, schedule.clone(), at),
        };
        tables.schedules.insert(key, row);
    }
}

/// Forgets the schedules of a workflow that is taken out of use.
pub(super) fn forget_schedules(tables: &mut Tables, tenant: TenantId, workflow: &str) {
    tables.schedules.retain(|(of, name, _), _| *of != tenant || name != workflow);
}

/// When the first schedule is due, among those that pass.
pub(super) fn first_schedule(tables: &Tables, passes: impl Fn(Instant) -> bool) -> Option<Instant> {
    tables.schedules.values().filter_map(|row| row.due_at).filter(|at| passes(*at)).min()
}

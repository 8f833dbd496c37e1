//! Workflows as people list them, and let them pause.

use async_trait::async_trait;
use model::{Instant, TenantId};

use super::Memory;
use super::tables::Tables;
use crate::workflows::WORKFLOW_PAUSES;
use crate::{
    Pause, Paused, Result, TriggerPause, WorkflowPlace, WorkflowRecord, WorkflowSort, Workflows, normal,
};

impl Tables {
    fn sorted_workflows(
        &self,
        tenant: TenantId,
        sort: WorkflowSort,
        after: Option<&WorkflowPlace>,
    ) -> Vec<WorkflowRecord> {
        let mut all = self.workflows(tenant, None, u32::MAX);
        let place = |record: &WorkflowRecord| (record.updated_at, record.name.clone());
        match sort {
            WorkflowSort::Name => all.retain(|record| after.is_none_or(|after| record.name > after.1)),
            WorkflowSort::NameDown => {
                all.retain(|record| after.is_none_or(|after| record.name < after.1));
                all.reverse();
            }
            WorkflowSort::LastChanged => {
                all.retain(|record| after.is_none_or(|after| place(record) < *after));
                all.sort_by_key(|record| std::cmp::Reverse(place(record)));
            }
            WorkflowSort::FirstChanged => {
                all.retain(|record| after.is_none_or(|after| place(record) > *after));
                all.sort_by_key(place);
            }
        }
        all
    }

    fn pause_workflow(
        &mut self,
        tenant: TenantId,
        workflow: &str,
        pause: Option<&Pause>,
        at: Instant,
    ) -> Paused {
        let row = self.workflows.get_mut(&(tenant, workflow.to_owned())).filter(|row| !row.archived);
        let Some(row) = row else { return Paused::Unknown };
        if row.pause.is_some() == pause.is_some() {
            return Paused::Already;
        }
        let plain = |text: &String| normal::text(text).into_owned();
        row.pause = pause.map(|pause| Pause {
            at: pause.at,
            by: plain(&pause.by),
            reason: pause.reason.as_ref().map(plain),
        });
        match pause {
            Some(_) => self.hold_triggers(tenant, workflow),
            None => self.release_triggers(tenant, workflow, at),
        }
        Paused::Changed
    }

    /// Lets the triggers of a workflow pause, if it does.
    pub(super) fn hold_triggers(&mut self, tenant: TenantId, workflow: &str) {
        let row = self.workflows.get(&(tenant, workflow.to_owned()));
        let Some(at) = row.and_then(|row| row.pause.as_ref()).map(|pause| pause.at) else { return };
        let own = self.triggers.iter_mut();
        for (_, row) in own.filter(|(key, _)| key.tenant == tenant && key.workflow == workflow) {
            row.paused.get_or_insert_with(|| TriggerPause { at, reason: WORKFLOW_PAUSES.into() });
        }
    }

    fn release_triggers(&mut self, tenant: TenantId, workflow: &str, at: Instant) {
        let own = self.triggers.iter_mut();
        for (_, row) in own.filter(|(key, _)| key.tenant == tenant && key.workflow == workflow) {
            if row.paused.as_ref().is_some_and(|pause| pause.reason == WORKFLOW_PAUSES) {
                row.go_on(at);
            }
        }
    }
}

#[async_trait]
impl Workflows for Memory {
    async fn sorted_workflows(
        &self,
        tenant: TenantId,
        sort: WorkflowSort,
        after: Option<&WorkflowPlace>,
        limit: u32,
    ) -> Result<Vec<WorkflowRecord>> {
        let mut found = self.shared.tables().sorted_workflows(tenant, sort, after);
        found.truncate(limit as usize);
        Ok(found)
    }

    async fn pause_workflow(
        &self,
        tenant: TenantId,
        workflow: &str,
        pause: Option<&Pause>,
        at: Instant,
    ) -> Result<Paused> {
        let _turn = self.turn.lock().await;
        Ok(self.shared.tables().pause_workflow(tenant, workflow, pause, at))
    }
}

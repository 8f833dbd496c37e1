//! Workflows as people list them, and let them pause.

use async_trait::async_trait;
use model::{Instant, TenantId};

use super::Memory;
use super::tables::Tables;
use crate::definitions::WORKFLOW_PAUSES;
use crate::{
    DefinitionViews, Result, TriggerPause, VersionRecord, WorkflowCursor, WorkflowRecord, WorkflowSort,
};

#[async_trait]
impl DefinitionViews for Memory {
    async fn workflow(&self, tenant: TenantId, name: &str) -> Result<Option<WorkflowRecord>> {
        Ok(self.shared.tables().workflow(tenant, name))
    }

    async fn workflows(
        &self,
        tenant: TenantId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<WorkflowRecord>> {
        Ok(self.shared.tables().workflows(tenant, after, limit))
    }

    async fn sorted_workflows(
        &self,
        tenant: TenantId,
        sort: WorkflowSort,
        after: Option<&WorkflowCursor>,
        limit: u32,
    ) -> Result<Vec<WorkflowRecord>> {
        let mut found = self.shared.tables().sorted_workflows(tenant, sort, after);
        found.truncate(limit as usize);
        Ok(found)
    }

    async fn versions(
        &self,
        tenant: TenantId,
        workflow: &str,
        before: Option<i32>,
        limit: u32,
    ) -> Result<Vec<VersionRecord>> {
        let tables = self.shared.tables();
        Ok(tables
            .versions_of(tenant, workflow)
            .rev()
            .filter(|version| before.is_none_or(|before| version.number < before))
            .take(limit as usize)
            .cloned()
            .collect())
    }
}

impl Tables {
    fn sorted_workflows(
        &self,
        tenant: TenantId,
        sort: WorkflowSort,
        after: Option<&WorkflowCursor>,
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

    /// Lets the triggers of a workflow pause, if it does.
    pub(super) fn hold_triggers(&mut self, tenant: TenantId, workflow: &str) {
        let row = self.workflows.get(&(tenant, workflow.to_owned()));
        let Some(at) = row.and_then(|row| row.pause.as_ref()).map(|pause| pause.at) else { return };
        let own = self.triggers.iter_mut();
        for (_, row) in own.filter(|(key, _)| key.tenant == tenant && key.workflow == workflow) {
            row.paused.get_or_insert_with(|| TriggerPause { at, reason: WORKFLOW_PAUSES.into() });
        }
    }

    pub(super) fn release_triggers(&mut self, tenant: TenantId, workflow: &str, at: Instant) {
        let own = self.triggers.iter_mut();
        for (_, row) in own.filter(|(key, _)| key.tenant == tenant && key.workflow == workflow) {
            if row.paused.as_ref().is_some_and(|pause| pause.reason == WORKFLOW_PAUSES) {
                row.go_on(at);
            }
        }
    }
}

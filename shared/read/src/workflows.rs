//! Workflows and their versions.

use auth::{Denied, Permission};
use store::{VersionRecord, WorkflowRecord};

use crate::{Reader, Result};

impl Reader {
    /// One workflow with its active version.
    pub async fn workflow(&self, name: &str) -> Result<WorkflowRecord> {
        self.check(Permission::Read, name, &format!("workflow `{name}`"))?;
        let found = self.store.workflow(self.caller.tenant, name).await?;
        Ok(found.ok_or_else(|| Denied::NotFound(format!("workflow `{name}`")))?)
    }

    /// Versions of a workflow, newest first, below the given number.
    pub async fn versions(
        &self,
        workflow: &str,
        before: Option<i32>,
        limit: u32,
    ) -> Result<Vec<VersionRecord>> {
        self.check(Permission::Read, workflow, &format!("workflow `{workflow}`"))?;
        Ok(self.store.versions(self.caller.tenant, workflow, before, limit).await?)
    }

    /// The version of a workflow with that number.
    pub async fn version(&self, workflow: &str, number: i32) -> Result<Option<VersionRecord>> {
        self.check(Permission::Read, workflow, &format!("workflow `{workflow}`"))?;
        Ok(self.store.numbered_version(self.caller.tenant, workflow, number).await?)
    }

    /// Workflows in name order, after the given name: the next `limit` of the tenant, of which those are left out that
    /// the caller may not read, and the name to continue after if there are more.
    pub async fn workflows(
        &self,
        after: Option<&str>,
        limit: u32,
    ) -> Result<(Vec<WorkflowRecord>, Option<String>)> {
        self.caller.check_some(Permission::Read)?;
        let mut found = self.store.workflows(self.caller.tenant, after, limit.saturating_add(1)).await?;
        let more = found.len() > limit as usize;
        found.truncate(limit as usize);
        let next = found.last().filter(|_| more).map(|record| record.name.clone());
        found.retain(|record| self.may(Permission::Read, &record.name));
        Ok((found, next))
    }
}

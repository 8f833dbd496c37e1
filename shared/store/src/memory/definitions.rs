//! Workflows and their versions.

use std::ops::Bound::{Excluded, Unbounded};

use model::{Instant, TenantId, VersionId};

use super::constraints::holds;
use super::tables::{Tables, WorkflowRow};
use crate::{NewVersion, Registered, Result, VersionRecord, WorkflowRecord, normal};

impl Tables {
    /// Registers definitions; nothing is written unless all of them can be.
    pub(super) fn register_all(&mut self, new: &[NewVersion]) -> Result<Vec<Registered>> {
        for new in new {
            holds(new.tenant == TenantId::DEFAULT, "workflows_tenant_fkey")?;
            holds(!new.workflow.name.is_empty(), "a_workflow_has_a_name")?;
        }
        Ok(new.iter().map(|new| self.register(new)).collect())
    }

    fn register(&mut self, new: &NewVersion) -> Registered {
        let known = self
            .versions_of(new)
            .find(|version| version.hash == new.hash)
            .map(|found| (found.id, found.number));
        let (version, number) = known.unwrap_or_else(|| self.make_version(new));
        self.activate(new, version);
        Registered { version, number, new: known.is_none() }
    }

    fn versions_of<'a>(&'a self, new: &'a NewVersion) -> impl Iterator<Item = &'a VersionRecord> {
        self.versions
            .values()
            .filter(|version| version.tenant == new.tenant && version.workflow.name == new.workflow.name)
    }

    fn make_version(&mut self, new: &NewVersion) -> (VersionId, i32) {
        let number = self.versions_of(new).map(|version| version.number).max().unwrap_or(0) + 1;
        let id = VersionId(self.versions.len() as i64 + 1);
        let version = VersionRecord {
            id,
            tenant: new.tenant,
            number,
            hash: new.hash.clone(),
            workflow: new.workflow.clone(),
            source: normal::text(&new.source).into_owned(),
            created_at: new.at,
            created_by: normal::text(&new.by).into_owned(),
        };
        self.versions.insert(id, version);
        (id, number)
    }

    fn activate(&mut self, new: &NewVersion, version: VersionId) {
        let fresh = WorkflowRow { archived: false, active: version, created_at: new.at, updated_at: new.at };
        let row = self.workflows.entry((new.tenant, new.workflow.name.clone())).or_insert(fresh);
        if row.archived || row.active != version {
            row.archived = false;
            row.active = version;
            row.updated_at = row.updated_at.max(new.at);
        }
    }

    pub(super) fn archive(&mut self, tenant: TenantId, workflow: &str, at: Instant) -> bool {
        match self.workflows.get_mut(&(tenant, workflow.to_owned())) {
            Some(row) if !row.archived => {
                row.archived = true;
                row.updated_at = row.updated_at.max(at);
                true
            }
            _ => false,
        }
    }

    pub(super) fn workflow(&self, tenant: TenantId, name: &str) -> Option<WorkflowRecord> {
        let row = self.workflows.get(&(tenant, name.to_owned()))?;
        Some(self.workflow_record(tenant, name, row))
    }

    pub(super) fn workflows(&self, tenant: TenantId, after: Option<&str>, limit: u32) -> Vec<WorkflowRecord> {
        // No name is empty, so the empty one comes before all of them.
        let first = (tenant, after.unwrap_or_default().to_owned());
        self.workflows
            .range((Excluded(first), Unbounded))
            .take_while(|((owner, _), _)| *owner == tenant)
            .filter(|(_, row)| !row.archived)
            .map(|((_, name), row)| self.workflow_record(tenant, name, row))
            .take(limit as usize)
            .collect()
    }

    fn workflow_record(&self, tenant: TenantId, name: &str, row: &WorkflowRow) -> WorkflowRecord {
        WorkflowRecord {
            tenant,
            name: name.to_owned(),
            archived: row.archived,
            created_at: row.created_at,
            updated_at: row.updated_at,
            version: self.versions[&row.active].clone(),
        }
    }
}

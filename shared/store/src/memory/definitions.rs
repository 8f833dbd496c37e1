//! Workflows and their versions.

use async_trait::async_trait;
use model::{Instant, TenantId, VersionId};

use super::Memory;
use super::constraints::holds;
use super::schedules;
use super::tables::{Tables, WorkflowRow};
use super::triggers;
use crate::{
    Activated, Active, Definitions, NewVersion, Pause, Paused, Registered, Result, VersionRecord,
    WorkflowRecord, normal,
};

#[async_trait]
impl Definitions for Memory {
    async fn register_all(&self, new: &[NewVersion]) -> Result<Vec<Registered>> {
        let mut tables = self.shared.tables();
        for new in new {
            let known = TenantId::DEFAULT..=tables.last_tenant();
            holds(known.contains(&new.tenant), "workflows_tenant_fkey")?;
            holds(!new.workflow.name.is_empty(), "a_workflow_has_a_name")?;
        }
        Ok(new.iter().map(|new| register(&mut tables, new)).collect())
    }

    async fn archive(&self, tenant: TenantId, workflow: &str, at: Instant) -> Result<bool> {
        let mut tables = self.shared.tables();
        Ok(match tables.workflows.get_mut(&(tenant, workflow.to_owned())) {
            Some(row) if !row.archived => {
                row.archived = true;
                row.updated_at = row.updated_at.max(at);
                schedules::forget_schedules(&mut tables, tenant, workflow);
                triggers::remove_triggers(&mut tables, tenant, workflow);
                true
            }
            _ => false,
        })
    }

    async fn active(&self, tenant: TenantId, name: &str) -> Result<Option<Active>> {
        let found = self.shared.tables().workflow(tenant, name);
        Ok(found.map(|found| Active {
            version: found.version.id,
            number: found.version.number,
            archived: found.archived,
            paused: found.pause.is_some(),
        }))
    }

    async fn workflow(&self, tenant: TenantId, name: &str) -> Result<Option<WorkflowRecord>> {
        Ok(self.shared.tables().workflow(tenant, name))
    }

    async fn version(&self, id: VersionId) -> Result<Option<VersionRecord>> {
        Ok(self.shared.tables().versions.get(&id).cloned())
    }

    async fn numbered_version(
        &self,
        tenant: TenantId,
        workflow: &str,
        number: i32,
    ) -> Result<Option<VersionRecord>> {
        Ok(self.shared.tables().numbered_version(tenant, workflow, number))
    }

    async fn activate(
        &self,
        tenant: TenantId,
        workflow: &str,
        number: i32,
        at: Instant,
    ) -> Result<Activated> {
        Ok(self.shared.tables().activate(tenant, workflow, number, at))
    }

    async fn pause_workflow(
        &self,
        tenant: TenantId,
        workflow: &str,
        pause: Option<&Pause>,
        at: Instant,
    ) -> Result<Paused> {
        let _turn = self.turn.lock().await;
        let mut tables = self.shared.tables();
        let row = tables.workflows.get_mut(&(tenant, workflow.to_owned())).filter(|row| !row.archived);
        let Some(row) = row else { return Ok(Paused::Unknown) };
        if row.pause.is_some() == pause.is_some() {
            return Ok(Paused::Already);
        }
        let plain = |text: &String| normal::text(text).into_owned();
        row.pause = pause.map(|pause| Pause {
            at: pause.at,
            by: plain(&pause.by),
            reason: pause.reason.as_ref().map(plain),
        });
        match pause {
            Some(_) => tables.hold_triggers(tenant, workflow),
            None => tables.release_triggers(tenant, workflow, at),
        }
        Ok(Paused::Changed)
    }
}

impl Tables {
    /// In the order of their numbers: ids are given in the same order.
    pub(super) fn versions_of(
        &self,
        tenant: TenantId,
        workflow: &str,
    ) -> impl DoubleEndedIterator<Item = &VersionRecord> {
        self.versions
            .values()
            .filter(move |version| version.tenant == tenant && version.workflow.name == workflow)
    }

    pub(super) fn workflow(&self, tenant: TenantId, name: &str) -> Option<WorkflowRecord> {
        let row = self.workflows.get(&(tenant, name.to_owned()))?;
        Some(self.workflow_record(tenant, name, row))
    }

    fn workflow_record(&self, tenant: TenantId, name: &str, row: &WorkflowRow) -> WorkflowRecord {
        WorkflowRecord {
            tenant,
            name: name.to_owned(),
            archived: row.archived,
            created_at: row.created_at,
            updated_at: row.updated_at,
            pause: row.pause.clone(),
            version: self.versions[&row.active].clone(),
        }
    }

    pub(super) fn numbered_version(
        &self,
        tenant: TenantId,
        workflow: &str,
        number: i32,
    ) -> Option<VersionRecord> {
        self.versions_of(tenant, workflow).find(|version| version.number == number).cloned()
    }

    pub(super) fn activate(
        &mut self,
        tenant: TenantId,
        workflow: &str,
        number: i32,
        at: Instant,
    ) -> Activated {
        let Some(version) = self.numbered_version(tenant, workflow, number) else {
            return Activated::Unknown;
        };
        let row = self.workflows.get_mut(&(tenant, workflow.to_owned()));
        let row = row.expect("a workflow with a version has a row");
        if !row.take(version.id, at) {
            return Activated::Already;
        }
        schedules::follow_schedules(self, tenant, &version.workflow, at);
        triggers::replace_triggers(self, tenant, &version.workflow, at);
        Activated::Changed
    }
}

fn register(tables: &mut Tables, new: &NewVersion) -> Registered {
    let known = tables
        .versions_of(new.tenant, &new.workflow.name)
        .find(|version| version.hash == new.hash)
        .map(|found| (found.id, found.number));
    let (version, number) = known.unwrap_or_else(|| make_version(tables, new));
    let changed = make_active(tables, new, version);
    if changed {
        schedules::follow_schedules(tables, new.tenant, &new.workflow, new.at);
        triggers::replace_triggers(tables, new.tenant, &new.workflow, new.at);
    }
    Registered { version, number, new: known.is_none(), changed }
}

fn make_version(tables: &mut Tables, new: &NewVersion) -> (VersionId, i32) {
    let number =
        tables.versions_of(new.tenant, &new.workflow.name).next_back().map_or(0, |last| last.number) + 1;
    let id = VersionId(tables.versions.len() as i64 + 1);
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
    tables.versions.insert(id, version);
    (id, number)
}

fn make_active(tables: &mut Tables, new: &NewVersion, version: VersionId) -> bool {
    // A new workflow is out of use until it takes its first version.
    let fresh =
        WorkflowRow { archived: true, pause: None, active: version, created_at: new.at, updated_at: new.at };
    let row = tables.workflows.entry((new.tenant, new.workflow.name.clone())).or_insert(fresh);
    row.take(version, new.at)
}

impl WorkflowRow {
    /// Makes the version the active one. Returns whether anything changed.
    fn take(&mut self, version: VersionId, at: Instant) -> bool {
        let changes = self.archived || self.active != version;
        if changes {
            self.archived = false;
            self.active = version;
            self.updated_at = self.updated_at.max(at);
        }
        changes
    }
}

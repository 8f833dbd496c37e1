//! Reads for one caller.

use std::fmt;

use auth::{Caller, Permission};
use model::{BackfillId, RunId, TenantId};
use sqlx::PgPool;
use store::{Postgres, TenantConnection, select};

use crate::{Backfills, Result, Runs, Schedules, Slots, Tenants, Timers, Triggers, Workflows};

/// Reads on behalf of one caller. Every connection it uses has the role of the caller's tenant.
#[derive(Clone)]
pub struct Reader {
    pub(crate) caller: Caller,
    pub(crate) postgres: Postgres,
}

impl Reader {
    /// The caller it reads for.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Reads runs as rows and lists; [`run`](Self::run) reads what is in one.
    pub fn runs(&self) -> Runs<'_> {
        Runs { reader: self }
    }

    /// Reads workflows and their versions.
    pub fn workflows(&self) -> Workflows<'_> {
        Workflows { reader: self }
    }

    /// Reads schedules and the runs that they started.
    pub fn schedules(&self) -> Schedules<'_> {
        Schedules { reader: self }
    }

    /// Reads triggers and their events.
    pub fn triggers(&self) -> Triggers<'_> {
        Triggers { reader: self }
    }

    /// Reads backfills and their progress.
    pub fn backfills(&self) -> Backfills<'_> {
        Backfills { reader: self }
    }

    /// Reads timers that are pending.
    pub fn timers(&self) -> Timers<'_> {
        Timers { reader: self }
    }

    /// Reads limits, their slots and their wait queues.
    pub fn slots(&self) -> Slots<'_> {
        Slots { reader: self }
    }

    /// Reads tenants, with their weights and limits.
    pub fn tenants(&self) -> Tenants<'_> {
        Tenants { reader: self }
    }

    pub(crate) fn tenant(&self) -> TenantId {
        self.caller.tenant
    }

    /// A connection that sees the rows of the caller's tenant only.
    pub(crate) async fn connection(&self) -> Result<TenantConnection> {
        Ok(self.postgres.reading_as(self.caller.tenant).await?)
    }

    /// Connections that see every tenant. Only [`Platform`](crate::Platform), [`Workers`](crate::Workers), [`Tenants`]
    /// and [`Slots::fairness_groups`] use them: what they return belongs to no tenant, or is stripped of whose it is.
    pub(crate) fn all_tenants(&self) -> &PgPool {
        self.postgres.pool()
    }

    /// Refuses what the caller may not do with a workflow. A caller without the permission for any workflow gets a
    /// refusal; for a caller with it for other workflows, this one does not exist.
    pub(crate) fn check(&self, permission: Permission, workflow: &str, what: &str) -> Result<()> {
        self.caller.check_some(permission)?;
        Ok(self.caller.check(permission, workflow, what)?)
    }

    /// The one question about grants: whether the caller has a permission for a workflow.
    pub(crate) fn may(&self, permission: Permission, workflow: &str) -> bool {
        self.caller.may(permission, workflow)
    }

    /// Refuses a caller without a permission for a workflow.
    pub fn check_workflow(&self, permission: Permission, workflow: &str) -> Result<()> {
        self.check(permission, workflow, &format!("workflow `{workflow}`"))
    }

    /// Refuses a caller without a permission for the workflow of a run.
    pub async fn check_run(&self, permission: Permission, id: RunId) -> Result<()> {
        self.caller.check_some(permission)?;
        if self.caller.check_tenant(permission).is_ok() {
            return Ok(());
        }
        let workflow = sqlx::query_scalar("select workflow from runs where id = $1")
            .bind(id.0)
            .fetch_optional(&mut *self.connection().await?)
            .await?;
        self.check_found(permission, workflow, format!("run {id}"))
    }

    /// Refuses a caller without a permission for the workflow of a backfill.
    pub async fn check_backfill(&self, permission: Permission, id: BackfillId) -> Result<()> {
        self.caller.check_some(permission)?;
        if self.caller.check_tenant(permission).is_ok() {
            return Ok(());
        }
        let found = select::backfill(&mut *self.connection().await?, id).await?;
        self.check_found(permission, found.map(|backfill| backfill.workflow), format!("backfill {id}"))
    }

    fn check_found(&self, permission: Permission, workflow: Option<String>, what: String) -> Result<()> {
        match workflow {
            Some(workflow) => self.check(permission, &workflow, &what),
            None => Err(auth::Denied::NotFound(what).into()),
        }
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("caller", &self.caller).finish_non_exhaustive()
    }
}

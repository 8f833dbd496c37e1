//! Quotas: requests beyond them are refused until there is room.

use host::Problem;
use model::{TenantId, TriggerKey};
use runtime::RunQuota;

use super::Access;
use crate::{Api, error};

/// The quotas of every tenant; none for no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quotas {
    /// The maximum number of unfinished runs; beyond it the API and webhooks start none.
    pub runs: Option<u32>,
    /// The maximum number of registered workflows.
    pub workflows: Option<u32>,
}

/// The quotas, and what was counted for them.
#[derive(Default)]
pub(super) struct Quota {
    runs: RunQuota,
    workflows: Option<u32>,
}

impl Access {
    /// The same with quotas.
    pub fn with_quotas(self, quotas: Quotas) -> Self {
        let inner = std::sync::Arc::into_inner(self.0).expect("nothing else has it yet");
        let quota = Quota { runs: RunQuota::new(quotas.runs), workflows: quotas.workflows };
        Self(super::Inner { quota, ..inner }.into())
    }

    /// Counts a signed webhook against the trigger's rate limit and the tenant's quota of runs.
    pub async fn admit_webhook(&self, api: &Api, key: &TriggerKey) -> Result<(), Problem> {
        self.count(key.tenant, &format!("webhook {}/{}", key.workflow, key.name), api.app.now())?;
        self.check_room_for_run(api, key.tenant).await
    }

    /// Refuses a run of a tenant that has as many unfinished ones as it may.
    pub(crate) async fn check_room_for_run(&self, api: &Api, tenant: TenantId) -> Result<(), Problem> {
        self.0.quota.runs.admit(&api.app.runtime, tenant).await.map_err(error::runtime)
    }

    /// Refuses new workflows of a tenant that has as many as it may.
    pub(crate) async fn check_room_for_workflows(
        &self,
        api: &Api,
        tenant: TenantId,
        names: &[String],
    ) -> Result<(), Problem> {
        let Some(max) = self.0.quota.workflows else { return Ok(()) };
        let usage = api.app.runtime.tenants().usage(tenant, max).await.map_err(error::runtime)?;
        let known = usage.workflows as usize;
        if known + names.len() <= max as usize {
            return Ok(());
        }
        let new =
            api.app.runtime.tenants().count_new_workflows(tenant, names).await.map_err(error::runtime)?;
        if new == 0 || known + new <= max as usize {
            return Ok(());
        }
        let message = format!(
            "the tenant has {known} of at most {max} workflows (EBB_QUOTA_WORKFLOWS), and {new} of these are new"
        );
        Err(Problem::too_many(message, error::RETRY_AFTER))
    }
}

//! The quota of workflows, and the rates of webhooks. The quota of runs is the runtime's.

use host::Problem;
use model::{TenantId, TriggerKey};

use super::Access;
use crate::{Api, error};

impl Access {
    /// The same with a maximum number of workflows of each tenant; none for no limit.
    pub fn with_workflow_quota(self, workflow_quota: Option<u32>) -> Self {
        let inner = std::sync::Arc::into_inner(self.0).expect("nothing else has it yet");
        Self(super::Inner { workflow_quota, ..inner }.into())
    }

    /// Counts a signed webhook against the trigger's rate limit.
    pub fn admit_webhook(&self, api: &Api, key: &TriggerKey) -> Result<(), Problem> {
        self.count(key.tenant, &format!("webhook {}/{}", key.workflow, key.name), api.app.now())
    }

    /// Refuses new workflows of a tenant that has as many as it may.
    pub(crate) async fn check_room_for_workflows(
        &self,
        api: &Api,
        tenant: TenantId,
        names: &[String],
    ) -> Result<(), Problem> {
        let Some(max) = self.0.workflow_quota else { return Ok(()) };
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

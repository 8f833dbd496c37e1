//! Quotas: requests beyond them are refused until there is room.

use std::collections::BTreeMap;
use std::sync::Mutex;

use chrono::TimeDelta;
use host::Problem;
use model::{Instant, TenantId, TriggerKey};

use super::Access;
use crate::{Api, error};

/// How long a count is used. Runs that were admitted since are added to it.
const COUNT_TTL: TimeDelta = TimeDelta::seconds(2);

/// The `Retry-After` of a refusal, in seconds.
const RETRY_AFTER: u64 = 10;

/// The number of tenants whose counts are kept.
const MAX_TENANTS: usize = 10_000;

/// The quotas of every tenant; none for no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quotas {
    /// The maximum number of unfinished runs; beyond it the API and webhooks start none.
    pub runs: Option<u32>,
    /// The maximum number of registered workflows.
    pub workflows: Option<u32>,
}

/// How many unfinished runs tenants had when they were last counted.
#[derive(Default)]
pub(super) struct Quota {
    quotas: Quotas,
    runs: Mutex<BTreeMap<TenantId, (u32, Instant)>>,
}

impl Quota {
    /// Adds a run to a recent count. Returns whether there was room; none without a recent count.
    fn count_on(&self, tenant: TenantId, max: u32, now: Instant) -> Option<bool> {
        let mut known = self.runs.lock().expect("no holder panics");
        let (runs, _) = known.get_mut(&tenant).filter(|(_, at)| (now - *at).abs() < COUNT_TTL)?;
        let room = *runs < max;
        *runs = runs.saturating_add(1).min(max);
        Some(room)
    }

    fn note(&self, tenant: TenantId, runs: u32, now: Instant) {
        let mut known = self.runs.lock().expect("no holder panics");
        if known.len() >= MAX_TENANTS {
            known.clear();
        }
        known.insert(tenant, (runs, now));
    }
}

impl Access {
    /// The same with quotas.
    pub fn with_quotas(self, quotas: Quotas) -> Self {
        let inner = std::sync::Arc::into_inner(self.0).expect("nothing else has it yet");
        Self(super::Inner { quota: Quota { quotas, ..Quota::default() }, ..inner }.into())
    }

    /// Counts a signed webhook against the trigger's rate limit and the tenant's quota of runs.
    pub async fn admit_webhook(&self, api: &Api, key: &TriggerKey) -> Result<(), Problem> {
        self.count(key.tenant, &format!("webhook {}/{}", key.workflow, key.name), api.app.now())?;
        self.check_room_for_run(api, key.tenant).await
    }

    /// Refuses a run of a tenant that has as many unfinished ones as it may.
    pub(crate) async fn check_room_for_run(&self, api: &Api, tenant: TenantId) -> Result<(), Problem> {
        let (quota, now) = (&self.0.quota, api.app.now());
        let Some(max) = quota.quotas.runs else { return Ok(()) };
        let room = match quota.count_on(tenant, max, now) {
            Some(room) => room,
            None => {
                let usage = api.app.runtime.tenants().usage(tenant, max).await.map_err(error::runtime)?;
                quota.note(tenant, usage.runs, now);
                quota.count_on(tenant, max, now).unwrap_or(true)
            }
        };
        if room {
            return Ok(());
        }
        let message = format!(
            "the tenant has {max} unfinished runs, the maximum (EBB_QUOTA_RUNS); wait until some have ended, or cancel \
             some"
        );
        Err(Problem::too_many(message, RETRY_AFTER))
    }

    /// Refuses new workflows of a tenant that has as many as it may.
    pub(crate) async fn check_room_for_workflows(
        &self,
        api: &Api,
        tenant: TenantId,
        names: &[String],
    ) -> Result<(), Problem> {
        let Some(max) = self.0.quota.quotas.workflows else { return Ok(()) };
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
        Err(Problem::too_many(message, RETRY_AFTER))
    }
}

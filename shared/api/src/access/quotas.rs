//! How much a tenant may have: what is asked for beyond that is refused until there is room.

use std::collections::BTreeMap;
use std::sync::Mutex;

use chrono::TimeDelta;
use host::Problem;
use model::{Instant, TenantId, TriggerKey};
use store::Usage;

use super::Access;
use crate::{Api, error};

/// What was counted is believed for so long; what was let through since is counted on.
const BELIEVED_FOR: TimeDelta = TimeDelta::seconds(2);

/// When to ask again, in seconds, where others must end or be taken away first.
const COME_BACK: u64 = 10;

/// So many tenants are told apart.
const MAX_COUNTED: usize = 10_000;

/// How much a tenant may have; none for no bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quotas {
    /// Unfinished runs, beyond which none is started over the API or by a webhook.
    pub runs: Option<u32>,
    /// Workflows that are registered.
    pub workflows: Option<u32>,
}

/// How many unfinished runs tenants had a moment ago.
#[derive(Default)]
pub(super) struct Quota {
    quotas: Quotas,
    runs: Mutex<BTreeMap<TenantId, (u32, Instant)>>,
}

impl Quota {
    /// Counts one more run, if what was counted lately is known.
    fn count_on(&self, tenant: TenantId, most: u32, now: Instant) -> Option<bool> {
        let mut known = self.runs.lock().expect("no holder panics");
        let (runs, _) = known.get_mut(&tenant).filter(|(_, at)| (now - *at).abs() < BELIEVED_FOR)?;
        let room = *runs < most;
        *runs = runs.saturating_add(1).min(most);
        Some(room)
    }

    fn note(&self, tenant: TenantId, runs: u32, now: Instant) {
        let mut known = self.runs.lock().expect("no holder panics");
        if known.len() >= MAX_COUNTED {
            known.clear();
        }
        known.insert(tenant, (runs, now));
    }
}

impl Access {
    /// The same with bounds on how much a tenant may have.
    pub fn with_quotas(self, quotas: Quotas) -> Self {
        let inner = std::sync::Arc::into_inner(self.0).expect("it was made a moment ago");
        Self(super::Inner { quota: Quota { quotas, ..Quota::default() }, ..inner }.into())
    }

    /// Counts a signed webhook like a request of the caller that the trigger stands for, and like a run that is asked for.
    pub async fn admit_webhook(&self, api: &Api, key: &TriggerKey) -> Result<(), Problem> {
        self.count(key.tenant, &format!("webhook {}/{}", key.workflow, key.name), api.app.now())?;
        self.check_room_for_run(api, key.tenant).await
    }

    /// Refuses a run of a tenant that has enough unfinished ones.
    pub(crate) async fn check_room_for_run(&self, api: &Api, tenant: TenantId) -> Result<(), Problem> {
        let (quota, now) = (&self.0.quota, api.app.now());
        let Some(most) = quota.quotas.runs else { return Ok(()) };
        let room = match quota.count_on(tenant, most, now) {
            Some(room) => room,
            None => {
                quota.note(tenant, usage(api, tenant, most).await?.runs, now);
                quota.count_on(tenant, most, now).unwrap_or(true)
            }
        };
        if room {
            return Ok(());
        }
        let message = format!(
            "the tenant has {most} unfinished runs, and may have no more (EBB_QUOTA_RUNS): wait until some have ended, or \
             cancel some"
        );
        Err(Problem::too_many(message, COME_BACK))
    }

    /// Refuses workflows that are new to a tenant that has enough of them.
    pub(crate) async fn check_room_for_workflows(
        &self,
        api: &Api,
        tenant: TenantId,
        names: &[String],
    ) -> Result<(), Problem> {
        let Some(most) = self.0.quota.quotas.workflows else { return Ok(()) };
        let known = usage(api, tenant, most).await?.workflows as usize;
        if known + names.len() <= most as usize {
            return Ok(());
        }
        let mut new = 0;
        for name in names {
            let found = api.app.runtime.store().workflow(tenant, name).await.map_err(error::store)?;
            new += usize::from(found.is_none());
        }
        if new == 0 || known + new <= most as usize {
            return Ok(());
        }
        let message = format!(
            "the tenant has {known} workflows, and may have {most} (EBB_QUOTA_WORKFLOWS), but {new} of these are new"
        );
        Err(Problem::too_many(message, COME_BACK))
    }
}

async fn usage(api: &Api, tenant: TenantId, most: u32) -> Result<Usage, Problem> {
    api.app.runtime.store().usage(tenant, most).await.map_err(error::store)
}

//! Queues: how much waits in each, for how long, and of whom.

use auth::Permission::Read;
use axum::Json;
use axum::extract::State;
use host::Problem;
use model::{BackfillId, Instant, Limit};
use serde::{Deserialize, Serialize};
use store::{FairnessGroupRecord, TenantFilter};

use crate::{Api, Caller, error};

/// Every queue that a task has needed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct QueueList {
    /// By name.
    pub items: Vec<QueueView>,
}

/// A queue.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct QueueView {
    /// Its name.
    pub name: String,
    /// How many tasks wait in it.
    pub depth: u32,
    /// How many of its tasks are under way: sent to a worker, or carried out by one.
    pub active: u32,
    /// How many may be; none if there is no bound.
    pub slots: Option<u32>,
    /// Since when the one that has waited longest does.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub oldest: Option<Instant>,
    /// How many that waited have been let go on so far.
    pub released: u64,
    /// How many of those in the last minute.
    pub rate: u32,
    /// Who waits in it or has.
    pub fairness_groups: Vec<FairnessGroupView>,
}

/// A tenant in a queue, or one of its backfills.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FairnessGroupView {
    /// The tenant's name, where the caller may know it.
    pub tenant: Option<String>,
    /// The backfill, if it is one of the caller's tenant.
    #[schemars(with = "Option<crate::openapi::shapes::Id>")]
    pub backfill: Option<BackfillId>,
    /// How often the tenant comes in each round.
    pub weight: u32,
    /// How many of its tasks wait.
    pub depth: u32,
    /// Since when the one that has waited longest does.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub oldest: Option<Instant>,
    /// How many of its tasks that waited have been let go on so far.
    pub released: u64,
    /// How many of those in the last minute.
    pub rate: u32,
}

/// Every queue that a task has needed, as the caller may see it.
pub async fn show(api: &Api, caller: &Caller) -> Result<QueueList, Problem> {
    let store = api.app.runtime.store();
    let (tenants, mut items) = (names(api, caller).await?, Vec::new());
    for record in store.limits(caller.tenant).await.map_err(error::store)? {
        let Limit::Queue(name) = &record.limit else { continue };
        let groups = store.groups(&record.limit).await.map_err(error::store)?;
        let fairness_groups: Vec<_> =
            groups.iter().map(|group| view(caller, &tenants, group, api.app.now())).collect();
        items.push(QueueView {
            name: name.clone(),
            depth: record.waiting,
            active: record.used,
            slots: record.slots,
            oldest: record.oldest,
            released: groups.iter().map(|group| group.received).sum(),
            rate: fairness_groups.iter().map(|group| group.rate).sum(),
            fairness_groups,
        });
    }
    Ok(QueueList { items })
}

fn view(
    caller: &Caller,
    tenants: &[(i32, String)],
    group: &FairnessGroupRecord,
    now: Instant,
) -> FairnessGroupView {
    let tenant = group.group.tenant;
    let named = tenants.iter().find(|(id, _)| *id == tenant.0).map(|(_, name)| name.clone());
    FairnessGroupView {
        tenant: named,
        backfill: group.group.backfill.filter(|_| tenant == caller.tenant),
        weight: group.weight.tenant,
        depth: group.waiting,
        oldest: group.oldest,
        released: group.received,
        rate: group.pace.per_minute(now),
    }
}

/// The tenants that the caller may know by name: their own, or whoever may read everywhere, the first thousand.
async fn names(api: &Api, caller: &Caller) -> Result<Vec<(i32, String)>, Problem> {
    if !caller.may_everywhere(Read) {
        return Ok(vec![(caller.tenant.0, caller.tenant_name.clone())]);
    }
    let filter = TenantFilter { limit: 1_000, ..TenantFilter::default() };
    let found = api.app.runtime.store().tenants(&filter).await.map_err(error::store)?;
    Ok(found.into_iter().map(|tenant| (tenant.id.0, tenant.name)).collect())
}

pub(crate) async fn get_list(State(api): State<Api>, caller: Caller) -> Result<Json<QueueList>, Problem> {
    show(&api, &caller).await.map(Json)
}

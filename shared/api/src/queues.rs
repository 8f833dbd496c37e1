//! Queues: how much waits in each, for how long, and of whom.

use auth::Permission::Read;
use axum::Json;
use axum::extract::State;
use host::Problem;
use model::{BackfillId, Instant, Limit};
use serde::{Deserialize, Serialize};
use store::{StandingRecord, TenantFilter};

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
    pub places: Option<u32>,
    /// Since when the one that has waited longest does.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub oldest: Option<Instant>,
    /// How many that waited have been let go on so far.
    pub released: u64,
    /// How many of those in the last minute.
    pub rate: u32,
    /// Who waits in it or has.
    pub parties: Vec<QueuePartyView>,
}

/// A tenant in a queue, or one of its backfills.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct QueuePartyView {
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
        let standings = store.standings(&record.limit).await.map_err(error::store)?;
        let parties: Vec<_> =
            standings.iter().map(|standing| party(caller, &tenants, standing, api.app.now())).collect();
        items.push(QueueView {
            name: name.clone(),
            depth: record.waiting,
            active: record.used,
            places: record.places,
            oldest: record.oldest,
            released: standings.iter().map(|standing| standing.received).sum(),
            rate: parties.iter().map(|party| party.rate).sum(),
            parties,
        });
    }
    Ok(QueueList { items })
}

fn party(
    caller: &Caller,
    tenants: &[(i32, String)],
    standing: &StandingRecord,
    now: Instant,
) -> QueuePartyView {
    let tenant = standing.party.tenant;
    let named = tenants.iter().find(|(id, _)| *id == tenant.0).map(|(_, name)| name.clone());
    QueuePartyView {
        tenant: named,
        backfill: standing.party.backfill.filter(|_| tenant == caller.tenant),
        weight: standing.weight.tenant,
        depth: standing.waiting,
        oldest: standing.oldest,
        released: standing.received,
        rate: standing.pace.per_minute(now),
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

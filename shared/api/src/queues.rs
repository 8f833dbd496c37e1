//! Queues: how many tasks wait in each, for how long, and whose.

use axum::Json;
use axum::extract::State;
use host::Problem;
use model::{BackfillId, Instant, Limit};
use read::FairnessGroupRecord;
use serde::{Deserialize, Serialize};

use crate::{Api, Caller};

/// Every queue that a task has needed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct QueueList {
    /// The queues, by name.
    pub items: Vec<QueueView>,
}

/// A queue with its wait queue and limit.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct QueueView {
    /// The name of the queue.
    pub name: String,
    /// How many tasks wait in it.
    pub depth: u32,
    /// How many of its tasks are active: dispatched or running.
    pub active: u32,
    /// The maximum number of active tasks; null for no limit.
    pub slots: Option<u32>,
    /// Since when the task that has waited longest waits.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub oldest: Option<Instant>,
    /// How many waiting tasks were given a slot so far.
    pub released: u64,
    /// How many of those in the last minute.
    pub rate: u32,
    /// The tenants and backfills that wait in it or have.
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
    /// The tenant's turns in each round.
    pub weight: u32,
    /// How many of its tasks wait.
    pub depth: u32,
    /// Since when the task that has waited longest waits.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub oldest: Option<Instant>,
    /// How many of its waiting tasks were given a slot so far.
    pub released: u64,
    /// How many of those in the last minute.
    pub rate: u32,
}

/// Every queue that a task has needed, as the caller may see it.
pub async fn show(api: &Api, caller: &Caller) -> Result<QueueList, Problem> {
    let (reader, mut items) = (api.reader(caller), Vec::new());
    for record in reader.slots().limits().await? {
        let Limit::Queue(name) = &record.limit else { continue };
        let groups = reader.slots().fairness_groups(&record.limit).await?;
        let released = groups.iter().map(|group| group.received).sum();
        let fairness_groups: Vec<_> = groups.into_iter().map(|group| view(group, api.app.now())).collect();
        items.push(QueueView {
            name: name.clone(),
            depth: record.waiting,
            active: record.used,
            slots: record.slots,
            oldest: record.oldest,
            released,
            rate: fairness_groups.iter().map(|group| group.rate).sum(),
            fairness_groups,
        });
    }
    Ok(QueueList { items })
}

fn view(group: FairnessGroupRecord, now: Instant) -> FairnessGroupView {
    FairnessGroupView {
        tenant: group.tenant,
        backfill: group.backfill,
        weight: group.weight.tenant,
        depth: group.waiting,
        oldest: group.oldest,
        released: group.received,
        rate: group.pace.per_minute(now),
    }
}

pub(crate) async fn get_list(State(api): State<Api>, caller: Caller) -> Result<Json<QueueList>, Problem> {
    show(&api, &caller).await.map(Json)
}

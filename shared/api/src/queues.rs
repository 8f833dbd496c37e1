//! Queues: how many tasks wait in each, for how long, and whose.

use axum::Json;
use axum::extract::State;
use host::Problem;
use model::{BackfillId, Instant, Limit};
use read::{FairnessGroupRecord, LimitCursor};
use serde::{Deserialize, Serialize};

use crate::page::{Page, PageQuery, Wanted};
use crate::request::Query;
use crate::{Api, Caller};

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
    /// The tenants and backfills that wait in it or have; at most 100. Where there are more, those that wait come first.
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

/// A page of the queues that tasks have needed, by name, as the caller may see them.
pub async fn list(api: &Api, caller: &Caller, query: &PageQuery) -> Result<Page<QueueView>, Problem> {
    let wanted = Wanted::<LimitCursor>::read(query.limit, query.cursor.as_deref())?;
    let (reader, mut items) = (api.reader(caller), Vec::new());
    let found = reader.slots().limits_and_groups(&["queue"], wanted.after.as_ref(), wanted.limit).await?;
    let page = Page::of(found);
    for (record, groups) in page.items {
        let Limit::Queue(name) = &record.limit else { continue };
        let released = groups.received;
        let fairness_groups: Vec<_> =
            groups.shown.into_iter().map(|group| view(group, api.app.now())).collect();
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
    Ok(Page { items, next_cursor: page.next_cursor })
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

pub(crate) async fn get_list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<QueueView>>, Problem> {
    list(&api, &caller, &query).await.map(Json)
}

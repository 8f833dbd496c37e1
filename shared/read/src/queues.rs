//! Queues, which all tenants share.
//!
//! Who waits in a queue is a fact about every tenant in it, so it is read outside the tenant's role, and stripped: only a
//! caller who may read everywhere learns whose groups the others are.

use auth::Permission;
use model::slot::LIVE_WEIGHT;
use model::{BackfillId, Instant, Limit, Pace, Weight};
use sqlx::Row;
use sqlx::postgres::PgRow;
use store::{LimitRecord, rows, storable};
use uuid::Uuid;

use crate::limits::position;
use crate::{LimitCursor, Listing, Result, Slots};

/// A fairness group in the wait queue of a queue: the live tasks of a tenant, or one of its backfills.
#[derive(Clone, PartialEq, Debug)]
pub struct FairnessGroupRecord {
    /// The tenant's name; none where the caller may not know it.
    pub tenant: Option<String>,
    /// Whether the group is of the caller's tenant.
    pub own: bool,
    /// The backfill, if the group is one of the caller's tenant.
    pub backfill: Option<BackfillId>,
    /// The turns it takes in each round.
    pub weight: Weight,
    /// How many of its tasks wait.
    pub waiting: u32,
    /// Since when the task that has waited longest waits.
    pub oldest: Option<Instant>,
    /// How many of its tasks were given a slot from the wait queue.
    pub received: u64,
    /// How many were lately.
    pub pace: Pace,
}

/// The maximum number of fairness groups that are read of a queue.
const MAX_GROUPS: i64 = 100;

/// A page of queues ends with the one that exceeds this number of fairness groups.
const MAX_GROUPS_ON_PAGE: usize = 1_000;

/// The fairness groups of a queue.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FairnessGroups {
    /// At most 100: first those that wait, then those of the caller's tenant, then those that were given slots last.
    pub shown: Vec<FairnessGroupRecord>,
    /// How many tasks of all groups were given a slot from the wait queue.
    pub received: u64,
    /// The turns that all groups that wait take in each round.
    pub turns: f64,
}

impl Slots<'_> {
    /// As [`limits`](Self::limits), with the fairness groups of queues. A page of queues with many groups ends early.
    pub async fn limits_and_groups(
        &self,
        kinds: &[&str],
        after: Option<&LimitCursor>,
        limit: u32,
    ) -> Result<Listing<(LimitRecord, FairnessGroups), LimitCursor>> {
        let page = self.limits(kinds, after, limit).await?;
        let (mut items, mut groups) = (Vec::new(), 0);
        for record in page.items {
            if groups > MAX_GROUPS_ON_PAGE {
                let next = items.last().map(|(last, _)| position(last));
                return Ok(Listing { items, next });
            }
            let own = self.groups_of(&record.limit).await?;
            groups += own.shown.len();
            items.push((record, own));
        }
        Ok(Listing { items, next: page.next })
    }

    /// The fairness groups of a limit, if it is that of a queue.
    pub async fn groups_of(&self, limit: &Limit) -> Result<FairnessGroups> {
        match limit {
            Limit::Queue(_) => self.fairness_groups(limit).await,
            _ => Ok(FairnessGroups::default()),
        }
    }

    /// The fairness groups in a queue's wait queue, or that were given slots from it.
    pub async fn fairness_groups(&self, limit: &Limit) -> Result<FairnessGroups> {
        self.reader.caller.check_tenant(Permission::Read)?;
        let found = sqlx::query(include_str!("../queries/list_fairness_groups.sql"))
            .bind(limit.kind())
            .bind(limit.tenant().map_or(0, |tenant| tenant.0))
            .bind(storable(limit.name()))
            .bind(self.reader.tenant().0)
            .bind(MAX_GROUPS)
            .fetch_all(self.reader.all_tenants())
            .await?;
        let names_all = self.reader.caller.may_everywhere(Permission::Read);
        let Some(first) = found.first() else { return Ok(FairnessGroups::default()) };
        Ok(FairnessGroups {
            received: first.try_get::<i64, _>("all_received")?.unsigned_abs(),
            turns: first.try_get::<Option<i64>, _>("all_turns")?.unwrap_or(0) as f64 / f64::from(LIVE_WEIGHT),
            shown: found.iter().map(|row| self.group(row, names_all)).collect::<Result<_>>()?,
        })
    }

    fn group(&self, row: &PgRow, names_all: bool) -> Result<FairnessGroupRecord> {
        let own = row.try_get::<i32, _>("tenant")? == self.reader.tenant().0;
        let name: String = row.try_get("tenant_name")?;
        let backfill = Some(row.try_get::<Uuid, _>("backfill")?).filter(|id| !id.is_nil()).map(BackfillId);
        let backfill_weight = rows::number(row, "backfill_weight")?;
        let pace: Vec<i32> = row.try_get("pace")?;
        let pace: Vec<u32> = pace.into_iter().map(i32::unsigned_abs).collect();
        Ok(FairnessGroupRecord {
            tenant: (own || names_all).then_some(name),
            own,
            backfill: backfill.filter(|_| own),
            weight: Weight {
                tenant: rows::number(row, "weight")?,
                backfill: backfill.map(|_| backfill_weight),
            },
            waiting: row.try_get::<i64, _>("waiting")? as u32,
            oldest: row.try_get("oldest")?,
            received: row.try_get::<i64, _>("received")?.unsigned_abs(),
            pace: <[u32; 3]>::try_from(pace).map(Pace::from).unwrap_or_default(),
        })
    }
}

//! The rows of limits, wait queues and fairness groups: read under locks for the engine's decision, and written back.

mod tables;

use std::collections::{BTreeMap, BTreeSet};

use model::wait_queue::{LimitId, LimitRow, SlotChanges, SlotRead, SlotRows, Waiter};
use model::{FairnessGroup, Limit, TaskKey};
use sqlx::PgConnection;
use tables::{by_id, delete, find, lock, read_first, read_groups, read_last, read_waiters, write};

use super::rows::{column, int};
use crate::{Result, normal};

pub(super) use tables::{limit, tenant_of};

pub(super) async fn read(connection: &mut PgConnection, read: &SlotRead) -> Result<SlotRows> {
    match read {
        SlotRead::Limits(limits) => {
            Ok(SlotRows { limits: find_all(connection, limits).await?, ..SlotRows::default() })
        }
        SlotRead::Locked { limits, waiters, groups } => Ok(SlotRows {
            limits: lock(connection, limits).await?,
            waiters: read_waiters(connection, waiters).await?,
            groups: read_groups(connection, limits, groups).await?,
        }),
        SlotRead::Grantable => grantable(connection).await,
        SlotRead::Waiters(tasks) => waiters(connection, tasks).await,
        SlotRead::Last(left) => last(connection, left).await,
        SlotRead::First { removed, heads, locked } => {
            delete(connection, removed).await?;
            first(connection, heads, locked).await
        }
    }
}

pub(super) async fn save(connection: &mut PgConnection, changes: &SlotChanges) -> Result<()> {
    delete(connection, &changes.removed).await?;
    write(connection, changes).await
}

/// Adds to the slots in use. Returns the limits if one of them has waiters and a free slot.
pub(super) async fn count(
    connection: &mut PgConnection,
    counted: BTreeMap<Limit, i32>,
) -> Result<Option<SlotRows>> {
    let counted: Vec<(Limit, i32)> = counted.into_iter().filter(|(_, by)| *by != 0).collect();
    if counted.is_empty() {
        return Ok(None);
    }
    let found = sqlx::query(include_str!("../../queries/count_slots.sql"))
        .bind(column(&counted, |(limit, _)| limit.kind()))
        .bind(column(&counted, |(limit, _)| tenant_of(limit)))
        .bind(column(&counted, |(limit, _)| normal::text(limit.name()).into_owned()))
        .bind(column(&counted, |(_, by)| *by))
        .fetch_all(connection)
        .await?;
    let limits = by_id(&found)?;
    let grantable = limits.values().any(LimitRow::could_grant);
    Ok(grantable.then(|| SlotRows { limits, ..SlotRows::default() }))
}

/// The limits under the names they were asked for by, without a lock. Those that do not exist are created.
async fn find_all(
    connection: &mut PgConnection,
    wanted: &BTreeMap<Limit, Option<u32>>,
) -> Result<BTreeMap<LimitId, LimitRow>> {
    let found = find(connection, wanted.keys()).await?;
    let new: Vec<&Limit> = wanted.keys().filter(|limit| !found.contains_key(limit)).collect();
    if new.is_empty() {
        return Ok(found.into_values().map(|row| (row.id, row)).collect());
    }
    sqlx::query(include_str!("../../queries/insert_limits.sql"))
        .bind(column(&new, |limit| limit.kind()))
        .bind(column(&new, |limit| tenant_of(limit)))
        .bind(column(&new, |limit| normal::text(limit.name())))
        .bind(column(&new, |limit| wanted[limit].map(int)))
        .execute(&mut *connection)
        .await?;
    let found = find(connection, wanted.keys()).await?;
    Ok(found.into_values().map(|row| (row.id, row)).collect())
}

async fn grantable(connection: &mut PgConnection) -> Result<SlotRows> {
    let found = sqlx::query(
        "select id, kind, tenant, name, slots, used, waiting, frontier from limits
          where waiting > 0 and (slots is null or used < slots) order by id for update",
    )
    .fetch_all(connection)
    .await?;
    Ok(SlotRows { limits: by_id(&found)?, ..SlotRows::default() })
}

async fn waiters(connection: &mut PgConnection, tasks: &[TaskKey]) -> Result<SlotRows> {
    let limits = needs(&read_waiters(connection, tasks).await?);
    let limits = lock(connection, &limits).await?;
    // Another transaction may have moved them before the limits were locked.
    let waiters = read_waiters(connection, tasks).await?;
    Ok(SlotRows { limits, waiters, ..SlotRows::default() })
}

async fn last(connection: &mut PgConnection, left: &[(LimitId, FairnessGroup, usize)]) -> Result<SlotRows> {
    let waiters = read_last(connection, left).await?;
    let limits: Vec<LimitId> = left.iter().map(|(limit, ..)| *limit).collect();
    let groups: Vec<FairnessGroup> = left.iter().map(|(_, group, _)| *group).collect();
    let groups = read_groups(connection, &limits, &groups).await?;
    Ok(SlotRows { waiters, groups, ..SlotRows::default() })
}

async fn first(
    connection: &mut PgConnection,
    heads: &[(LimitId, u32)],
    locked: &[LimitId],
) -> Result<SlotRows> {
    let waiters = read_first(connection, heads).await?;
    let mut others = needs(&waiters);
    others.retain(|id| !locked.contains(id));
    let limits = tables::lock_free(connection, &others).await?;
    let known: Vec<LimitId> = locked.iter().copied().chain(limits.keys().copied()).collect();
    let groups: Vec<FairnessGroup> = waiters.iter().map(|row| row.group).collect();
    let groups = read_groups(connection, &known, &groups).await?;
    Ok(SlotRows { limits, waiters, groups })
}

fn needs(waiters: &[Waiter]) -> Vec<LimitId> {
    let needs: BTreeSet<LimitId> = waiters.iter().flat_map(|row| row.needs.iter().copied()).collect();
    needs.into_iter().collect()
}

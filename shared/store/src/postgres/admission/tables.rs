//! The statements about limits, waiters and groups, and their rows.

use std::collections::{BTreeMap, BTreeSet};

use model::wait_queue::{GroupTurns, LimitId, LimitRow, SlotChanges, Waiter};
use model::{BackfillId, FairnessGroup, Limit, Pace, TaskKey, TenantId, Weight};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use crate::postgres::columns::{SLOT_WAITERS, array, bind_rows};
use crate::postgres::rows::{self, column, int, number};
use crate::postgres::statements::UPSERT_SLOT_WAITERS;
use crate::{Result, normal};

pub(super) async fn find<'l>(
    connection: &mut PgConnection,
    limits: impl Iterator<Item = &'l Limit>,
) -> Result<BTreeMap<Limit, LimitRow>> {
    let limits: Vec<&Limit> = limits.collect();
    let found = sqlx::query(
        "select id, kind, tenant, name, slots, used, waiting, frontier
           from limits join unnest($1::text[], $2::int[], $3::text[]) as given (kind, tenant, name)
          using (kind, tenant, name)",
    )
    .bind(column(&limits, |limit| limit.kind()))
    .bind(column(&limits, |limit| tenant_of(limit)))
    .bind(column(&limits, |limit| normal::text(limit.name())))
    .fetch_all(connection)
    .await?;
    let stored: BTreeMap<Limit, LimitRow> =
        by_id(&found)?.into_values().map(|row| (row.limit.clone(), row)).collect();
    let under_its_name = |limit: &&Limit| {
        let row = stored.get(&normal::limit(limit))?;
        Some(((*limit).clone(), LimitRow { limit: (*limit).clone(), ..row.clone() }))
    };
    Ok(limits.iter().filter_map(under_its_name).collect())
}

pub(super) async fn lock(
    connection: &mut PgConnection,
    ids: &[LimitId],
) -> Result<BTreeMap<LimitId, LimitRow>> {
    let found = sqlx::query(
        "select id, kind, tenant, name, slots, used, waiting, frontier from limits
          where id = any($1) order by id for update",
    )
    .bind(ids)
    .fetch_all(connection)
    .await?;
    by_id(&found)
}

/// Locks those of these limits that no other transaction has locked.
pub(super) async fn lock_free(
    connection: &mut PgConnection,
    ids: &[LimitId],
) -> Result<BTreeMap<LimitId, LimitRow>> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let found = sqlx::query(
        "select id, kind, tenant, name, slots, used, waiting, frontier from limits
          where id = any($1) order by id for update skip locked",
    )
    .bind(ids)
    .fetch_all(connection)
    .await?;
    by_id(&found)
}

/// Those of these tasks that are in a wait queue.
pub(super) async fn read_waiters(connection: &mut PgConnection, keys: &[TaskKey]) -> Result<Vec<Waiter>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let found = sqlx::query(
        "select run, idx, attempt, tenant, backfill, step, needs, id, rank, since, granted_at
           from slot_waiters join unnest($1::uuid[], $2::int[]) as given (run, idx) using (run, idx)",
    )
    .bind(column(keys, |key| key.run.0))
    .bind(column(keys, |key| int(key.task.0)))
    .fetch_all(connection)
    .await?;
    found.iter().map(waiter).collect()
}

/// The first waiters of these limits, as many as given, and the best of their groups.
pub(super) async fn read_first(
    connection: &mut PgConnection,
    heads: &[(LimitId, u32)],
) -> Result<Vec<Waiter>> {
    let found = sqlx::query(include_str!("../../../queries/read_first_waiters.sql"))
        .bind(column(heads, |(limit, _)| *limit))
        .bind(column(heads, |(_, count)| i64::from(*count)))
        .fetch_all(connection)
        .await?;
    found.iter().map(waiter).collect()
}

/// The last waiters of groups that some have left: twice as many, since half of them may be the ones that leave.
pub(super) async fn read_last(
    connection: &mut PgConnection,
    left: &[(LimitId, FairnessGroup, usize)],
) -> Result<Vec<Waiter>> {
    let found = sqlx::query(include_str!("../../../queries/read_last_waiters.sql"))
        .bind(column(left, |(limit, ..)| *limit))
        .bind(column(left, |(_, group, _)| group.tenant.0))
        .bind(column(left, |(_, group, _)| nil_for_live(*group)))
        .bind(column(left, |(.., count)| 2 * *count as i64))
        .fetch_all(connection)
        .await?;
    found.iter().map(waiter).collect()
}

/// The turns of each of these groups in the wait queue of each of these limits.
pub(super) async fn read_groups(
    connection: &mut PgConnection,
    limits: &[LimitId],
    groups: &[FairnessGroup],
) -> Result<BTreeMap<(LimitId, FairnessGroup), GroupTurns>> {
    let groups: BTreeSet<FairnessGroup> = groups.iter().copied().collect();
    let groups: Vec<FairnessGroup> = groups.into_iter().collect();
    if groups.is_empty() {
        return Ok(BTreeMap::new());
    }
    let limits: BTreeSet<LimitId> = limits.iter().copied().collect();
    let found = sqlx::query(include_str!("../../../queries/read_fairness_groups.sql"))
        .bind(limits.into_iter().collect::<Vec<_>>())
        .bind(column(&groups, |group| group.tenant.0))
        .bind(column(&groups, |group| nil_for_live(*group)))
        .fetch_all(connection)
        .await?;
    let turns = |row: &PgRow| {
        let (position, received) = (row.try_get("position")?, row.try_get("received")?);
        let turns = GroupTurns { position, weight: weight(row)?, received, pace: pace(row)? };
        Ok(((row.try_get("lim")?, group(row)?), turns))
    };
    found.iter().map(turns).collect()
}

/// How fast a group's waiters are granted slots.
pub(in crate::postgres) fn pace(row: &PgRow) -> Result<Pace> {
    rows::numbers::<3>(row.try_get("pace")?, "pace").map(Pace::from)
}

/// The group that a row's `tenant` and `backfill` name.
pub(in crate::postgres) fn group(row: &PgRow) -> Result<FairnessGroup> {
    let backfill: Uuid = row.try_get("backfill")?;
    let backfill = Some(BackfillId(backfill)).filter(|backfill| !backfill.0.is_nil());
    Ok(FairnessGroup { tenant: TenantId(row.try_get("tenant")?), backfill })
}

/// The weight of a row's group.
pub(in crate::postgres) fn weight(row: &PgRow) -> Result<Weight> {
    let own = number(row, "backfill_weight")?;
    Ok(Weight { tenant: number(row, "weight")?, backfill: group(row)?.backfill.map(|_| own) })
}

fn nil_for_live(group: FairnessGroup) -> Uuid {
    rows::backfill_or_nil(group.backfill)
}

pub(super) async fn delete(connection: &mut PgConnection, removed: &[TaskKey]) -> Result<()> {
    if removed.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "delete from slot_waiters using unnest($1::uuid[], $2::int[]) as given (run, idx)
          where slot_waiters.run = given.run and slot_waiters.idx = given.idx",
    )
    .bind(column(removed, |key| key.run.0))
    .bind(column(removed, |key| int(key.task.0)))
    .execute(connection)
    .await?;
    Ok(())
}

/// Writes waiters, groups and limits. Limits that did not change are left alone.
pub(super) async fn write(connection: &mut PgConnection, changes: &SlotChanges) -> Result<()> {
    if !changes.waiters.is_empty() {
        write_waiters(connection, &changes.waiters).await?;
    }
    write_groups(connection, &changes.groups).await?;
    let limits = &changes.limits;
    if limits.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "update limits
            set slots = given.slots, used = given.used, waiting = given.waiting, frontier = given.frontier
           from unnest($1::int[], $2::int[], $3::int[], $4::int[], $5::bigint[])
             as given (id, slots, used, waiting, frontier)
          where limits.id = given.id
            and (limits.slots, limits.used, limits.waiting, limits.frontier)
                is distinct from (given.slots, given.used, given.waiting, given.frontier)",
    )
    .bind(column(limits, |row| row.id))
    .bind(column(limits, |row| row.slots.map(int)))
    .bind(column(limits, |row| int(row.used)))
    .bind(column(limits, |row| int(row.waiting)))
    .bind(column(limits, |row| row.frontier))
    .execute(connection)
    .await?;
    Ok(())
}

async fn write_waiters(connection: &mut PgConnection, rows: &[Waiter]) -> Result<()> {
    let upsert = sqlx::query(UPSERT_SLOT_WAITERS.as_str());
    bind_rows(upsert, SLOT_WAITERS, rows).execute(connection).await?;
    Ok(())
}

async fn write_groups(
    connection: &mut PgConnection,
    groups: &[((LimitId, FairnessGroup), GroupTurns)],
) -> Result<()> {
    let (behind, live): (Vec<_>, Vec<_>) =
        groups.iter().partition(|((_, group), _)| group.backfill.is_some());
    if !live.is_empty() {
        sqlx::query(include_str!("../../../queries/upsert_fairness_groups.sql"))
            .bind(column(&live, |((limit, _), _)| *limit))
            .bind(column(&live, |((_, group), _)| group.tenant.0))
            .bind(column(&live, |(_, turns)| turns.position))
            .bind(column(&live, |(_, turns)| turns.received))
            .bind(column(&live, |(_, turns)| array(&<[u32; 3]>::from(turns.pace))))
            .execute(&mut *connection)
            .await?;
    }
    if !behind.is_empty() {
        sqlx::query(include_str!("../../../queries/upsert_backfill_fairness_groups.sql"))
            .bind(column(&behind, |((limit, _), _)| *limit))
            .bind(column(&behind, |((_, group), _)| nil_for_live(*group)))
            .bind(column(&behind, |(_, turns)| turns.position))
            .bind(column(&behind, |(_, turns)| turns.received))
            .bind(column(&behind, |(_, turns)| array(&<[u32; 3]>::from(turns.pace))))
            .execute(connection)
            .await?;
    }
    Ok(())
}

pub(super) fn by_id(found: &[PgRow]) -> Result<BTreeMap<LimitId, LimitRow>> {
    let rows: Vec<LimitRow> = found.iter().map(limit_row).collect::<Result<_>>()?;
    Ok(rows.into_iter().map(|row| (row.id, row)).collect())
}

fn limit_row(row: &PgRow) -> Result<LimitRow> {
    Ok(LimitRow {
        id: row.try_get("id")?,
        limit: limit(row)?,
        slots: row.try_get::<Option<i32>, _>("slots")?.map(|slots| slots as u32),
        used: number(row, "used")?,
        waiting: number(row, "waiting")?,
        frontier: row.try_get("frontier")?,
    })
}

/// The limit that a row's `kind`, `tenant` and `name` name.
pub(in crate::postgres) fn limit(row: &PgRow) -> Result<Limit> {
    let (kind, tenant, name): (&str, i32, &str) =
        (row.try_get("kind")?, row.try_get("tenant")?, row.try_get("name")?);
    let tenant = Some(TenantId(tenant)).filter(|tenant| tenant.0 != 0);
    Limit::of(kind, tenant, name)
        .ok_or_else(|| crate::Error::Unreadable { what: "limit", why: format!("`{kind}` of {tenant:?}") })
}

fn waiter(row: &PgRow) -> Result<Waiter> {
    Ok(Waiter {
        key: rows::key(row)?,
        attempt: number(row, "attempt")?,
        group: group(row)?,
        step: number(row, "step")? as usize,
        needs: row.try_get("needs")?,
        id: row.try_get("id")?,
        rank: row.try_get("rank")?,
        since: row.try_get("since")?,
        granted_at: row.try_get("granted_at")?,
    })
}

pub(in crate::postgres) fn tenant_of(limit: &Limit) -> i32 {
    limit.tenant().map_or(0, |tenant| tenant.0)
}

//! The rows of limits, lines and groups, read under locks and written.

use std::collections::{BTreeMap, BTreeSet};

use model::{BackfillId, FairnessGroup, Limit, TaskKey, TenantId, Weight};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use crate::admission::{GroupTurns, LimitId, LimitRow, WaitQueues, Waiter};
use crate::postgres::columns::array;
use crate::postgres::rows::{self, column, int, number};
use crate::{Pace, Result, normal};

/// So many are granted slots at once; the next are by whoever takes up these.
const MAX_GRANTED: i64 = 200;

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
    Ok(by_id(&found)?.into_values().map(|row| (row.limit.clone(), row)).collect())
}

pub(super) async fn lock(
    connection: &mut PgConnection,
    ids: Vec<LimitId>,
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

/// Where these tasks stand in line.
pub(super) async fn load_rows(
    connection: &mut PgConnection,
    queues: &mut WaitQueues,
    keys: &[TaskKey],
) -> Result<()> {
    if keys.is_empty() {
        return Ok(());
    }
    let found = sqlx::query(
        "select run, idx, attempt, tenant, backfill, step, needs, id, rank, since, granted_at
           from slot_waiters join unnest($1::uuid[], $2::int[]) as given (run, idx) using (run, idx)",
    )
    .bind(column(keys, |key| key.run.0))
    .bind(column(keys, |key| int(key.task.0)))
    .fetch_all(connection)
    .await?;
    add_rows(queues, &found)
}

/// The first of each line that has room, the best of their groups, and the other limits that these need. A limit that
/// someone else has in hand is left out: they are told to look again.
pub(super) async fn load_heads(connection: &mut PgConnection, queues: &mut WaitQueues) -> Result<()> {
    let lines: Vec<(LimitId, i64)> = queues
        .limits
        .values()
        .filter(|row| row.could_grant())
        .map(|row| (row.id, i64::from(row.room()).min(MAX_GRANTED)))
        .collect();
    let found = sqlx::query(include_str!("../../../queries/read_heads.sql"))
        .bind(column(&lines, |(limit, _)| *limit))
        .bind(column(&lines, |(_, room)| *room))
        .fetch_all(&mut *connection)
        .await?;
    add_rows(queues, &found)?;
    let needed: BTreeSet<LimitId> = queues.line.values().flat_map(|row| row.needs.clone()).collect();
    let others: Vec<LimitId> = needed.into_iter().filter(|id| !queues.limits.contains_key(id)).collect();
    if !others.is_empty() {
        let found = sqlx::query(
            "select id, kind, tenant, name, slots, used, waiting, frontier from limits
              where id = any($1) order by id for update skip locked",
        )
        .bind(others)
        .fetch_all(connection)
        .await?;
        queues.limits.append(&mut by_id(&found)?);
    }
    Ok(())
}

/// The last in line of the groups that some have left, and where these groups are.
pub(super) async fn load_lasts(connection: &mut PgConnection, queues: &mut WaitQueues) -> Result<()> {
    let left: Vec<(LimitId, FairnessGroup, i64)> =
        queues.left.iter().map(|((limit, group), turns)| (*limit, *group, turns.len() as i64)).collect();
    let found = sqlx::query(include_str!("../../../queries/read_lasts.sql"))
        .bind(column(&left, |(limit, ..)| *limit))
        .bind(column(&left, |(_, group, _)| group.tenant.0))
        .bind(column(&left, |(_, group, _)| nil_for_live(*group)))
        .bind(column(&left, |(.., gone)| 2 * gone))
        .fetch_all(&mut *connection)
        .await?;
    add_rows(queues, &found)?;
    load_groups(connection, queues, left.into_iter().map(|(_, group, _)| group)).await
}

/// Adds rows of the line, but for those that have changed here.
fn add_rows(queues: &mut WaitQueues, found: &[PgRow]) -> Result<()> {
    for row in found {
        let row = line_row(row)?;
        if !queues.gone.contains(&row.key) {
            queues.line.entry(row.key).or_insert(row);
        }
    }
    Ok(())
}

pub(super) async fn load_groups(
    connection: &mut PgConnection,
    queues: &mut WaitQueues,
    groups: impl Iterator<Item = FairnessGroup>,
) -> Result<()> {
    let groups: BTreeSet<FairnessGroup> = groups.collect();
    let groups: Vec<FairnessGroup> = groups.into_iter().collect();
    let limits: Vec<LimitId> = queues.limits.keys().copied().collect();
    let found = sqlx::query(include_str!("../../../queries/read_fairness_groups.sql"))
        .bind(limits)
        .bind(column(&groups, |group| group.tenant.0))
        .bind(column(&groups, |group| nil_for_live(*group)))
        .fetch_all(connection)
        .await?;
    for row in found {
        let key = (row.try_get("lim")?, group(&row)?);
        let (position, received) = (row.try_get("position")?, row.try_get("received")?);
        let turns = GroupTurns { position, weight: weight(&row)?, received, pace: pace(&row)? };
        queues.groups.entry(key).or_insert(turns);
    }
    Ok(())
}

/// How fast those that a row with `pace` is about are given slots.
pub(in crate::postgres) fn pace(row: &PgRow) -> Result<Pace> {
    rows::numbers::<3>(row.try_get("pace")?, "pace").map(Pace::from)
}

/// Whose tasks a row with `tenant` and `backfill` is about.
pub(in crate::postgres) fn group(row: &PgRow) -> Result<FairnessGroup> {
    let backfill: Uuid = row.try_get("backfill")?;
    let backfill = Some(BackfillId(backfill)).filter(|backfill| !backfill.0.is_nil());
    Ok(FairnessGroup { tenant: TenantId(row.try_get("tenant")?), backfill })
}

/// How often the group of a row comes.
pub(in crate::postgres) fn weight(row: &PgRow) -> Result<Weight> {
    let own = number(row, "backfill_weight")?;
    Ok(Weight { tenant: number(row, "weight")?, backfill: group(row)?.backfill.map(|_| own) })
}

fn nil_for_live(group: FairnessGroup) -> Uuid {
    group.backfill.map_or(Uuid::nil(), |backfill| backfill.0)
}

/// Takes tasks out of the line.
pub(super) async fn delete(connection: &mut PgConnection, gone: &BTreeSet<TaskKey>) -> Result<()> {
    let gone: Vec<&TaskKey> = gone.iter().collect();
    if gone.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "delete from slot_waiters using unnest($1::uuid[], $2::int[]) as given (run, idx)
          where slot_waiters.run = given.run and slot_waiters.idx = given.idx",
    )
    .bind(column(&gone, |key| key.run.0))
    .bind(column(&gone, |key| int(key.task.0)))
    .execute(connection)
    .await?;
    Ok(())
}

/// Writes what has become of those who are in line, and of the limits.
pub(super) async fn write(connection: &mut PgConnection, queues: &WaitQueues) -> Result<()> {
    let rows: Vec<&Waiter> = queues.written.iter().map(|key| &queues.line[key]).collect();
    if !rows.is_empty() {
        write_rows(connection, &rows).await?;
    }
    write_groups(connection, queues).await?;
    let limits: Vec<&LimitRow> = queues.limits.values().collect();
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
    .bind(column(&limits, |row| row.id))
    .bind(column(&limits, |row| row.slots.map(int)))
    .bind(column(&limits, |row| int(row.used)))
    .bind(column(&limits, |row| int(row.waiting)))
    .bind(column(&limits, |row| row.frontier))
    .execute(connection)
    .await?;
    Ok(())
}

async fn write_rows(connection: &mut PgConnection, rows: &[&Waiter]) -> Result<()> {
    let needs = |row: &Waiter| {
        let needs: Vec<String> = row.needs.iter().map(i32::to_string).collect();
        format!("{{{}}}", needs.join(","))
    };
    sqlx::query(include_str!("../../../queries/upsert_slot_waiters.sql"))
        .bind(column(rows, |row| row.key.run.0))
        .bind(column(rows, |row| int(row.key.task.0)))
        .bind(column(rows, |row| int(row.attempt)))
        .bind(column(rows, |row| row.group.tenant.0))
        .bind(column(rows, |row| nil_for_live(row.group)))
        .bind(column(rows, |row| row.limit()))
        .bind(column(rows, |row| int(row.step as u32)))
        .bind(column(rows, |row| needs(row)))
        .bind(column(rows, |row| row.id))
        .bind(column(rows, |row| row.rank))
        .bind(column(rows, |row| row.since))
        .bind(column(rows, |row| row.granted_at))
        .execute(connection)
        .await?;
    Ok(())
}

async fn write_groups(connection: &mut PgConnection, queues: &WaitQueues) -> Result<()> {
    let groups = queues.moved.iter().map(|key| (key, &queues.groups[key]));
    let (behind, live): (Vec<_>, Vec<_>) = groups.partition(|((_, group), _)| group.backfill.is_some());
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

/// Limits by their ids.
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

/// The limit that a row with `kind`, `tenant` and `name` is about.
pub(in crate::postgres) fn limit(row: &PgRow) -> Result<Limit> {
    let (kind, tenant, name): (&str, i32, &str) =
        (row.try_get("kind")?, row.try_get("tenant")?, row.try_get("name")?);
    let tenant = Some(TenantId(tenant)).filter(|tenant| tenant.0 != 0);
    Limit::of(kind, tenant, name)
        .ok_or_else(|| crate::Error::Unreadable { what: "limit", why: format!("`{kind}` of {tenant:?}") })
}

fn line_row(row: &PgRow) -> Result<Waiter> {
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

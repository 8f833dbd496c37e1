//! The rows of limits, lines and standings, read under locks and written.

use std::collections::{BTreeMap, BTreeSet};

use model::{BackfillId, Limit, Party, TaskKey, TenantId, Weight};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use crate::postgres::columns::array;
use crate::postgres::rows::{self, column, int, number};
use crate::seating::{LimitId, LimitRow, LineRow, Seating, Standing};
use crate::{Pace, Result, normal};

/// So many are granted places at once; the next are by whoever takes up these.
const GRANTED_AT_ONCE: i64 = 200;

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
    seating: &mut Seating,
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
    add_rows(seating, &found)
}

/// The first of each line that has room, the best of their parties, and the other limits that these need. A limit that
/// someone else has in hand is left out: they are told to look again.
pub(super) async fn load_heads(connection: &mut PgConnection, seating: &mut Seating) -> Result<()> {
    let lines: Vec<(LimitId, i64)> = seating
        .limits
        .values()
        .filter(|row| row.could_grant())
        .map(|row| (row.id, i64::from(row.room()).min(GRANTED_AT_ONCE)))
        .collect();
    let found = sqlx::query(include_str!("../../../queries/read_heads.sql"))
        .bind(column(&lines, |(limit, _)| *limit))
        .bind(column(&lines, |(_, room)| *room))
        .fetch_all(&mut *connection)
        .await?;
    add_rows(seating, &found)?;
    let needed: BTreeSet<LimitId> = seating.line.values().flat_map(|row| row.needs.clone()).collect();
    let others: Vec<LimitId> = needed.into_iter().filter(|id| !seating.limits.contains_key(id)).collect();
    if !others.is_empty() {
        let found = sqlx::query(
            "select id, kind, tenant, name, slots, used, waiting, frontier from limits
              where id = any($1) order by id for update skip locked",
        )
        .bind(others)
        .fetch_all(connection)
        .await?;
        seating.limits.append(&mut by_id(&found)?);
    }
    Ok(())
}

/// The last in line of the parties that some have left, and where these parties are.
pub(super) async fn load_lasts(connection: &mut PgConnection, seating: &mut Seating) -> Result<()> {
    let left: Vec<(LimitId, Party, i64)> =
        seating.left.iter().map(|((limit, party), turns)| (*limit, *party, turns.len() as i64)).collect();
    let found = sqlx::query(include_str!("../../../queries/read_lasts.sql"))
        .bind(column(&left, |(limit, ..)| *limit))
        .bind(column(&left, |(_, party, _)| party.tenant.0))
        .bind(column(&left, |(_, party, _)| nil_for_live(*party)))
        .bind(column(&left, |(.., gone)| 2 * gone))
        .fetch_all(&mut *connection)
        .await?;
    add_rows(seating, &found)?;
    load_standings(connection, seating, left.into_iter().map(|(_, party, _)| party)).await
}

/// Adds rows of the line, but for those that have changed here.
fn add_rows(seating: &mut Seating, found: &[PgRow]) -> Result<()> {
    for row in found {
        let row = line_row(row)?;
        if !seating.gone.contains(&row.key) {
            seating.line.entry(row.key).or_insert(row);
        }
    }
    Ok(())
}

pub(super) async fn load_standings(
    connection: &mut PgConnection,
    seating: &mut Seating,
    parties: impl Iterator<Item = Party>,
) -> Result<()> {
    let parties: BTreeSet<Party> = parties.collect();
    let parties: Vec<Party> = parties.into_iter().collect();
    let limits: Vec<LimitId> = seating.limits.keys().copied().collect();
    let found = sqlx::query(include_str!("../../../queries/read_standings.sql"))
        .bind(limits)
        .bind(column(&parties, |party| party.tenant.0))
        .bind(column(&parties, |party| nil_for_live(*party)))
        .fetch_all(connection)
        .await?;
    for row in found {
        let key = (row.try_get("lim")?, party(&row)?);
        let (position, received) = (row.try_get("position")?, row.try_get("received")?);
        let standing = Standing { position, weight: weight(&row)?, received, pace: pace(&row)? };
        seating.standings.entry(key).or_insert(standing);
    }
    Ok(())
}

/// How fast those that a row with `pace` is about are given places.
pub(in crate::postgres) fn pace(row: &PgRow) -> Result<Pace> {
    rows::numbers::<3>(row.try_get("pace")?, "pace").map(Pace::from)
}

/// Whose tasks a row with `tenant` and `backfill` is about.
pub(in crate::postgres) fn party(row: &PgRow) -> Result<Party> {
    let backfill: Uuid = row.try_get("backfill")?;
    let backfill = Some(BackfillId(backfill)).filter(|backfill| !backfill.0.is_nil());
    Ok(Party { tenant: TenantId(row.try_get("tenant")?), backfill })
}

/// How often the party of a row comes.
pub(in crate::postgres) fn weight(row: &PgRow) -> Result<Weight> {
    let own = number(row, "backfill_weight")?;
    Ok(Weight { tenant: number(row, "weight")?, backfill: party(row)?.backfill.map(|_| own) })
}

fn nil_for_live(party: Party) -> Uuid {
    party.backfill.map_or(Uuid::nil(), |backfill| backfill.0)
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
pub(super) async fn write(connection: &mut PgConnection, seating: &Seating) -> Result<()> {
    let rows: Vec<&LineRow> = seating.written.iter().map(|key| &seating.line[key]).collect();
    if !rows.is_empty() {
        write_rows(connection, &rows).await?;
    }
    write_standings(connection, seating).await?;
    let limits: Vec<&LimitRow> = seating.limits.values().collect();
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
    .bind(column(&limits, |row| row.places.map(int)))
    .bind(column(&limits, |row| int(row.used)))
    .bind(column(&limits, |row| int(row.waiting)))
    .bind(column(&limits, |row| row.frontier))
    .execute(connection)
    .await?;
    Ok(())
}

async fn write_rows(connection: &mut PgConnection, rows: &[&LineRow]) -> Result<()> {
    let needs = |row: &LineRow| {
        let needs: Vec<String> = row.needs.iter().map(i32::to_string).collect();
        format!("{{{}}}", needs.join(","))
    };
    sqlx::query(include_str!("../../../queries/upsert_line.sql"))
        .bind(column(rows, |row| row.key.run.0))
        .bind(column(rows, |row| int(row.key.task.0)))
        .bind(column(rows, |row| int(row.attempt)))
        .bind(column(rows, |row| row.party.tenant.0))
        .bind(column(rows, |row| nil_for_live(row.party)))
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

async fn write_standings(connection: &mut PgConnection, seating: &Seating) -> Result<()> {
    let standings = seating.moved.iter().map(|key| (key, &seating.standings[key]));
    let (behind, live): (Vec<_>, Vec<_>) = standings.partition(|((_, party), _)| party.backfill.is_some());
    if !live.is_empty() {
        sqlx::query(include_str!("../../../queries/upsert_standings.sql"))
            .bind(column(&live, |((limit, _), _)| *limit))
            .bind(column(&live, |((_, party), _)| party.tenant.0))
            .bind(column(&live, |(_, standing)| standing.position))
            .bind(column(&live, |(_, standing)| standing.received))
            .bind(column(&live, |(_, standing)| array(&<[u32; 3]>::from(standing.pace))))
            .execute(&mut *connection)
            .await?;
    }
    if !behind.is_empty() {
        sqlx::query(include_str!("../../../queries/upsert_backfill_standings.sql"))
            .bind(column(&behind, |((limit, _), _)| *limit))
            .bind(column(&behind, |((_, party), _)| nil_for_live(*party)))
            .bind(column(&behind, |(_, standing)| standing.position))
            .bind(column(&behind, |(_, standing)| standing.received))
            .bind(column(&behind, |(_, standing)| array(&<[u32; 3]>::from(standing.pace))))
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
        places: row.try_get::<Option<i32>, _>("slots")?.map(|places| places as u32),
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

fn line_row(row: &PgRow) -> Result<LineRow> {
    Ok(LineRow {
        key: rows::key(row)?,
        attempt: number(row, "attempt")?,
        party: party(row)?,
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

//! The rows of limits, lines and standings, read under locks and written.

use std::collections::{BTreeMap, BTreeSet};

use model::{Limit, TaskKey, TenantId};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use crate::postgres::rows::{self, column, int, number};
use crate::seating::{LimitId, LimitRow, LineRow, Seating, Standing};
use crate::{Result, normal};

/// So many are granted places at once; the next are by whoever takes up these.
const GRANTED_AT_ONCE: i64 = 200;

pub(super) async fn find<'l>(
    connection: &mut PgConnection,
    limits: impl Iterator<Item = &'l Limit>,
) -> Result<BTreeMap<Limit, LimitRow>> {
    let limits: Vec<&Limit> = limits.collect();
    let found = sqlx::query(
        "select id, kind, tenant, name, places, used, waiting, frontier
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
        "select id, kind, tenant, name, places, used, waiting, frontier from limits
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
        "select run, idx, attempt, tenant, step, needs, id, rank, since, granted_at
           from line join unnest($1::uuid[], $2::int[]) as given (run, idx) using (run, idx)",
    )
    .bind(column(keys, |key| key.run.0))
    .bind(column(keys, |key| int(key.task.0)))
    .fetch_all(connection)
    .await?;
    add_rows(seating, &found)
}

/// The first of each line that has room, the best of their tenants, and the other limits that these need. A limit that
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
            "select id, kind, tenant, name, places, used, waiting, frontier from limits
              where id = any($1) order by id for update skip locked",
        )
        .bind(others)
        .fetch_all(connection)
        .await?;
        seating.limits.append(&mut by_id(&found)?);
    }
    Ok(())
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
    tenants: impl Iterator<Item = TenantId>,
) -> Result<()> {
    let tenants: BTreeSet<i32> = tenants.map(|tenant| tenant.0).collect();
    let limits: Vec<LimitId> = seating.limits.keys().copied().collect();
    let found = sqlx::query(
        "select given.lim, tenants.id as tenant, tenants.weight,
                coalesce(position, 0) as position, coalesce(received, 0) as received
           from tenants cross join unnest($1::int[]) as given (lim)
           left join standings on standings.lim = given.lim and standings.tenant = tenants.id
          where tenants.id = any($2)",
    )
    .bind(limits)
    .bind(tenants.into_iter().collect::<Vec<_>>())
    .fetch_all(connection)
    .await?;
    for row in found {
        let key = (row.try_get("lim")?, TenantId(row.try_get("tenant")?));
        let standing = Standing {
            position: row.try_get("position")?,
            weight: number(&row, "weight")?,
            received: row.try_get("received")?,
        };
        seating.standings.entry(key).or_insert(standing);
    }
    Ok(())
}

pub(super) async fn write(connection: &mut PgConnection, seating: &Seating) -> Result<()> {
    let gone: Vec<&TaskKey> = seating.gone.iter().collect();
    if !gone.is_empty() {
        sqlx::query(
            "delete from line using unnest($1::uuid[], $2::int[]) as given (run, idx)
              where line.run = given.run and line.idx = given.idx",
        )
        .bind(column(&gone, |key| key.run.0))
        .bind(column(&gone, |key| int(key.task.0)))
        .execute(&mut *connection)
        .await?;
    }
    let rows: Vec<&LineRow> = seating.written.iter().map(|key| &seating.line[key]).collect();
    if !rows.is_empty() {
        write_rows(connection, &rows).await?;
        write_standings(connection, seating, &rows).await?;
    }
    let limits: Vec<&LimitRow> = seating.limits.values().collect();
    if limits.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "update limits
            set places = given.places, used = given.used, waiting = given.waiting, frontier = given.frontier
           from unnest($1::int[], $2::int[], $3::int[], $4::int[], $5::bigint[])
             as given (id, places, used, waiting, frontier)
          where limits.id = given.id
            and (limits.places, limits.used, limits.waiting, limits.frontier)
                is distinct from (given.places, given.used, given.waiting, given.frontier)",
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
        .bind(column(rows, |row| row.tenant.0))
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

async fn write_standings(connection: &mut PgConnection, seating: &Seating, rows: &[&LineRow]) -> Result<()> {
    let tenants: BTreeSet<TenantId> = rows.iter().map(|row| row.tenant).collect();
    let standings: Vec<(&(LimitId, TenantId), &Standing)> =
        seating.standings.iter().filter(|((_, tenant), _)| tenants.contains(tenant)).collect();
    sqlx::query(include_str!("../../../queries/upsert_standings.sql"))
        .bind(column(&standings, |((limit, _), _)| *limit))
        .bind(column(&standings, |((_, tenant), _)| tenant.0))
        .bind(column(&standings, |(_, standing)| standing.position))
        .bind(column(&standings, |(_, standing)| standing.received))
        .execute(connection)
        .await?;
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
        places: row.try_get::<Option<i32>, _>("places")?.map(|places| places as u32),
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
        tenant: TenantId(row.try_get("tenant")?),
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

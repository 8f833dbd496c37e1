//! Places and lines. While places are free and nobody waits, a step reads one small row and writes none; else the
//! limits are locked, in the order of their ids, and `seating` decides.

use std::collections::{BTreeMap, BTreeSet};

use model::{Ask, Instant, Leave, Limit, Seat, TaskKey, TenantId};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::rows::{self, column, int, number};
use crate::seating::{LimitId, LimitRow, LineRow, Seating, Standing};
use crate::{Granted, Result, normal};

/// So many are granted places at once; the next are by whoever takes up these.
const GRANTED_AT_ONCE: i64 = 200;

/// What a unit has to do with places before it ends.
#[derive(Default)]
pub(super) struct Places {
    /// Places taken and given back that are counted only at the end, so that their limits are locked for a moment.
    counted: BTreeMap<Limit, i32>,
    /// When it was asked about places.
    now: Instant,
    pub(super) granted: Vec<Granted>,
    pub(super) again: bool,
}

impl Places {
    /// Gives places to those who ask, as far as there are, and takes them from those who leave.
    pub(super) async fn seat(
        &mut self,
        connection: &mut PgConnection,
        asks: &[Ask],
        leaves: &[Leave],
        now: Instant,
    ) -> Result<Vec<Seat>> {
        self.now = now;
        let changes = changes(asks, leaves);
        let nobody_in_line = leaves.iter().all(|leave| leave.placed) && asks.iter().all(|ask| !ask.waited);
        if nobody_in_line && asks.is_empty() {
            self.count(changes);
            return Ok(Vec::new());
        }
        let said = said(asks);
        let limits = find_all(connection, &changes, &said).await?;
        if nobody_in_line && is_calm(&limits, &changes, &said) {
            self.count(changes);
            return Ok(vec![Seat::Given; asks.len()]);
        }
        let ids: BTreeMap<Limit, LimitId> =
            limits.into_values().map(|row| (row.limit.clone(), row.id)).collect();
        let mut limits = lock(connection, &ids).await?;
        for row in limits.values_mut() {
            row.places = said.get(&row.limit).copied().or(row.places);
        }
        let mut seating = Seating { limits, ..Seating::default() };
        load_rows(connection, &mut seating, asks, leaves).await?;
        load_standings(connection, &mut seating, asks.iter().map(|ask| ask.tenant)).await?;
        let needs = |needs: &[model::Needed]| needs.iter().map(|need| ids[&need.limit]).collect::<Vec<_>>();
        leaves.iter().for_each(|leave| seating.leave(leave, &needs(&leave.needs)));
        let seats = asks.iter().map(|ask| seating.ask(ask, needs(&ask.needs))).collect();
        self.grant_in(connection, seating, now).await?;
        Ok(seats)
    }

    /// Grants whatever is free to whoever waits for it.
    pub(super) async fn grant(&mut self, connection: &mut PgConnection, now: Instant) -> Result<()> {
        let found = sqlx::query(
            "select id, kind, tenant, name, places, used, waiting, frontier from limits
              where waiting > 0 and (places is null or used < places) order by id for update",
        )
        .fetch_all(&mut *connection)
        .await?;
        let seating = Seating { limits: by_id(&found)?, ..Seating::default() };
        self.grant_in(connection, seating, now).await
    }

    /// Counts what was put off, as the last thing before the commit.
    pub(super) async fn settle(&mut self, connection: &mut PgConnection) -> Result<()> {
        let counted: Vec<(Limit, i32)> =
            std::mem::take(&mut self.counted).into_iter().filter(|(_, by)| *by != 0).collect();
        if counted.is_empty() {
            return Ok(());
        }
        let found = sqlx::query(include_str!("../../queries/count_places.sql"))
            .bind(column(&counted, |(limit, _)| limit.kind()))
            .bind(column(&counted, |(limit, _)| tenant_of(limit)))
            .bind(column(&counted, |(limit, _)| normal::text(limit.name()).into_owned()))
            .bind(column(&counted, |(_, by)| *by))
            .fetch_all(&mut *connection)
            .await?;
        let limits = by_id(&found)?;
        if limits.values().any(LimitRow::could_grant) {
            let now = self.now;
            self.grant_in(connection, Seating { limits, ..Seating::default() }, now).await?;
        }
        Ok(())
    }

    fn count(&mut self, changes: BTreeMap<Limit, i32>) {
        for (limit, by) in changes {
            *self.counted.entry(limit).or_default() += by;
        }
    }

    /// Grants what is free in the limits at hand, and writes what has become of everybody.
    async fn grant_in(
        &mut self,
        connection: &mut PgConnection,
        mut seating: Seating,
        now: Instant,
    ) -> Result<()> {
        if seating.limits.values().any(LimitRow::could_grant) {
            load_heads(connection, &mut seating).await?;
            let tenants: BTreeSet<TenantId> = seating.line.values().map(|row| row.tenant).collect();
            load_standings(connection, &mut seating, tenants.into_iter()).await?;
            seating.grant(now);
        }
        write(connection, &seating).await?;
        self.granted.append(&mut seating.granted);
        self.again |= seating.again;
        Ok(())
    }
}

/// By how many places each limit would change.
fn changes(asks: &[Ask], leaves: &[Leave]) -> BTreeMap<Limit, i32> {
    let mut changes = BTreeMap::new();
    let asked = asks.iter().flat_map(|ask| &ask.needs).map(|need| (need, 1));
    let left = leaves.iter().flat_map(|leave| &leave.needs).map(|need| (need, -1));
    for (need, by) in asked.chain(left) {
        *changes.entry(need.limit.clone()).or_default() += by;
    }
    changes
}

/// How many places those who ask say that limits have.
fn said(asks: &[Ask]) -> BTreeMap<Limit, u32> {
    let needs = asks.iter().flat_map(|ask| &ask.needs);
    needs.filter_map(|need| Some((need.limit.clone(), need.places?))).collect()
}

/// Whether everybody can have a place without anyone looking twice.
fn is_calm(
    limits: &BTreeMap<Limit, LimitRow>,
    changes: &BTreeMap<Limit, i32>,
    said: &BTreeMap<Limit, u32>,
) -> bool {
    said.is_empty()
        && limits.iter().all(|(limit, row)| {
            let by = changes.get(limit).copied().unwrap_or_default();
            let fits =
                row.places.is_none_or(|places| i64::from(row.used) + i64::from(by) <= i64::from(places));
            row.waiting == 0 && fits && (limit.is_soft() || row.places.is_none())
        })
}

/// The limits that anyone here needs a place of, without a lock. One that nobody needed before comes into being.
async fn find_all(
    connection: &mut PgConnection,
    wanted: &BTreeMap<Limit, i32>,
    said: &BTreeMap<Limit, u32>,
) -> Result<BTreeMap<Limit, LimitRow>> {
    let found = find(connection, wanted.keys()).await?;
    let news: Vec<&Limit> = wanted.keys().filter(|limit| !found.contains_key(limit)).collect();
    if news.is_empty() {
        return Ok(found);
    }
    sqlx::query(include_str!("../../queries/insert_limits.sql"))
        .bind(column(&news, |limit| limit.kind()))
        .bind(column(&news, |limit| tenant_of(limit)))
        .bind(column(&news, |limit| normal::text(limit.name())))
        .bind(column(&news, |limit| said.get(limit).copied().or(limit.usual()).map(int)))
        .execute(&mut *connection)
        .await?;
    find(connection, wanted.keys()).await
}

async fn find<'l>(
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

async fn lock(
    connection: &mut PgConnection,
    ids: &BTreeMap<Limit, LimitId>,
) -> Result<BTreeMap<LimitId, LimitRow>> {
    let ids: Vec<LimitId> = ids.values().copied().collect();
    let found = sqlx::query(
        "select id, kind, tenant, name, places, used, waiting, frontier from limits
          where id = any($1) order by id for update",
    )
    .bind(ids)
    .fetch_all(connection)
    .await?;
    by_id(&found)
}

/// Where those who ask again or leave stand in line.
async fn load_rows(
    connection: &mut PgConnection,
    seating: &mut Seating,
    asks: &[Ask],
    leaves: &[Leave],
) -> Result<()> {
    let waited = asks.iter().filter(|ask| ask.waited).map(|ask| ask.key);
    let left = leaves.iter().filter(|leave| !leave.placed).map(|leave| leave.key);
    let keys: Vec<TaskKey> = waited.chain(left).collect();
    if keys.is_empty() {
        return Ok(());
    }
    let found = sqlx::query(
        "select run, idx, attempt, tenant, step, needs, id, rank, since, granted_at
           from line join unnest($1::uuid[], $2::int[]) as given (run, idx) using (run, idx)",
    )
    .bind(column(&keys, |key| key.run.0))
    .bind(column(&keys, |key| int(key.task.0)))
    .fetch_all(connection)
    .await?;
    add_rows(seating, &found)
}

/// The first of each line that has room, the best of their tenants, and the other limits that these need. A limit that
/// someone else has in hand is left out: they are told to look again.
async fn load_heads(connection: &mut PgConnection, seating: &mut Seating) -> Result<()> {
    let lines: Vec<(LimitId, i64)> = seating
        .limits
        .values()
        .filter(|row| row.could_grant())
        .map(|row| (row.id, i64::from(row.room()).min(GRANTED_AT_ONCE)))
        .collect();
    let found = sqlx::query(include_str!("../../queries/read_heads.sql"))
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

async fn load_standings(
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

async fn write(connection: &mut PgConnection, seating: &Seating) -> Result<()> {
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
    sqlx::query(include_str!("../../queries/upsert_line.sql"))
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
    sqlx::query(include_str!("../../queries/upsert_standings.sql"))
        .bind(column(&standings, |((limit, _), _)| *limit))
        .bind(column(&standings, |((_, tenant), _)| tenant.0))
        .bind(column(&standings, |(_, standing)| standing.position))
        .bind(column(&standings, |(_, standing)| standing.received))
        .execute(connection)
        .await?;
    Ok(())
}

/// Limits by their ids.
fn by_id(found: &[PgRow]) -> Result<BTreeMap<LimitId, LimitRow>> {
    let rows: Vec<LimitRow> = found.iter().map(limit_row).collect::<Result<_>>()?;
    Ok(rows.into_iter().map(|row| (row.id, row)).collect())
}

pub(super) fn limit_row(row: &PgRow) -> Result<LimitRow> {
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
pub(super) fn limit(row: &PgRow) -> Result<Limit> {
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

pub(super) fn tenant_of(limit: &Limit) -> i32 {
    limit.tenant().map_or(0, |tenant| tenant.0)
}

//! Places and lines. While places are free and nobody waits, a step reads one small row and writes none; else the
//! limits are locked, in the order of their ids, and `seating` decides.

mod tables;

use std::collections::{BTreeMap, BTreeSet};

use model::{Ask, Instant, Leave, Limit, Party, Seat, TaskKey};
use sqlx::PgConnection;
use tables::{by_id, delete, find, load_heads, load_lasts, load_rows, load_standings, lock, write};

use super::rows::{column, int};
use crate::seating::{LimitId, LimitRow, Seating};
use crate::{Granted, Result, normal};

pub(super) use tables::{limit, pace, party, tenant_of, weight};

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
        let mut limits = lock(connection, ids.values().copied().collect()).await?;
        for row in limits.values_mut() {
            row.places = said.get(&row.limit).copied().or(row.places);
        }
        let mut seating = Seating { limits, ..Seating::default() };
        let waited = asks.iter().filter(|ask| ask.waited).map(|ask| ask.key);
        let left = leaves.iter().filter(|leave| !leave.placed).map(|leave| leave.key);
        load_rows(connection, &mut seating, &waited.chain(left).collect::<Vec<_>>()).await?;
        load_standings(connection, &mut seating, asks.iter().map(Ask::party)).await?;
        let needs = |needs: &[model::Needed]| needs.iter().map(|need| ids[&need.limit]).collect::<Vec<_>>();
        leaves.iter().for_each(|leave| seating.leave(leave, &needs(&leave.needs)));
        let seats = asks.iter().map(|ask| seating.ask(ask, needs(&ask.needs))).collect();
        if !seating.left.is_empty() {
            load_lasts(connection, &mut seating).await?;
            seating.close_ranks();
        }
        self.grant_in(connection, seating, now).await?;
        Ok(seats)
    }

    /// Grants whatever is free to whoever waits for it.
    pub(super) async fn grant(&mut self, connection: &mut PgConnection, now: Instant) -> Result<()> {
        let found = sqlx::query(
            "select id, kind, tenant, name, slots, used, waiting, frontier from limits
              where waiting > 0 and (slots is null or used < slots) order by id for update",
        )
        .fetch_all(&mut *connection)
        .await?;
        let seating = Seating { limits: by_id(&found)?, ..Seating::default() };
        self.grant_in(connection, seating, now).await
    }

    /// Gives back what tasks were granted.
    pub(super) async fn give_back(
        &mut self,
        connection: &mut PgConnection,
        granted: &[Granted],
        now: Instant,
    ) -> Result<()> {
        let tasks: Vec<TaskKey> = granted.iter().map(|granted| granted.key).collect();
        let mut seating = Seating::default();
        load_rows(connection, &mut seating, &tasks).await?;
        let needs: BTreeSet<LimitId> = seating.line.values().flat_map(|row| row.needs.clone()).collect();
        seating.limits = lock(connection, needs.into_iter().collect()).await?;
        // Somebody may have moved them on before the limits were locked.
        seating.line.clear();
        load_rows(connection, &mut seating, &tasks).await?;
        granted.iter().for_each(|granted| seating.give_back(granted));
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
        // Before the heads are read: those who are gone are none.
        delete(connection, &seating.gone).await?;
        if seating.limits.values().any(LimitRow::could_grant) {
            load_heads(connection, &mut seating).await?;
            let parties: BTreeSet<Party> = seating.line.values().map(|row| row.party).collect();
            load_standings(connection, &mut seating, parties.into_iter()).await?;
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

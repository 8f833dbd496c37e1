//! Places and lines. While slots are free and nobody waits, a step reads one small row and writes none; else the
//! limits are locked, in the order of their ids, and `queues` decides.

mod tables;

use std::collections::{BTreeMap, BTreeSet};

use model::{Admission, FairnessGroup, Instant, Limit, SlotRelease, SlotRequest, TaskKey};
use sqlx::PgConnection;
use tables::{by_id, delete, find, load_groups, load_heads, load_lasts, load_rows, lock, write};

use super::rows::{column, int};
use crate::admission::{LimitId, LimitRow, WaitQueues};
use crate::{Granted, Result, normal};

pub(super) use tables::{limit, tenant_of};

/// What a unit has to do with slots before it ends.
#[derive(Default)]
pub(super) struct Places {
    /// Places taken and given back that are counted only at the end, so that their limits are locked for a moment.
    counted: BTreeMap<Limit, i32>,
    /// When it was asked about slots.
    now: Instant,
    pub(super) granted: Vec<Granted>,
    pub(super) again: bool,
}

impl Places {
    /// Gives slots to those who ask, as far as there are, and takes them from those who leave.
    pub(super) async fn seat(
        &mut self,
        connection: &mut PgConnection,
        asks: &[SlotRequest],
        leaves: &[SlotRelease],
        now: Instant,
    ) -> Result<Vec<Admission>> {
        self.now = now;
        let changes = changes(asks, leaves);
        let nobody_waits = leaves.iter().all(|leave| leave.holds_slots) && asks.iter().all(|ask| !ask.waited);
        if nobody_waits && asks.is_empty() {
            self.count(changes);
            return Ok(Vec::new());
        }
        let said = said(asks);
        let limits = find_all(connection, &changes, &said).await?;
        if nobody_waits && is_calm(&limits, &changes, &said) {
            self.count(changes);
            return Ok(vec![Admission::Acquired; asks.len()]);
        }
        let ids: BTreeMap<Limit, LimitId> =
            limits.into_values().map(|row| (row.limit.clone(), row.id)).collect();
        let mut limits = lock(connection, ids.values().copied().collect()).await?;
        for row in limits.values_mut() {
            row.slots = said.get(&row.limit).copied().or(row.slots);
        }
        let mut queues = WaitQueues { limits, ..WaitQueues::default() };
        let waited = asks.iter().filter(|ask| ask.waited).map(|ask| ask.key);
        let left = leaves.iter().filter(|leave| !leave.holds_slots).map(|leave| leave.key);
        load_rows(connection, &mut queues, &waited.chain(left).collect::<Vec<_>>()).await?;
        load_groups(connection, &mut queues, asks.iter().map(SlotRequest::fairness_group)).await?;
        let needs = |needs: &[model::Needed]| needs.iter().map(|need| ids[&need.limit]).collect::<Vec<_>>();
        leaves.iter().for_each(|leave| queues.leave(leave, &needs(&leave.needs)));
        let seats = asks.iter().map(|ask| queues.ask(ask, needs(&ask.needs))).collect();
        if !queues.left.is_empty() {
            load_lasts(connection, &mut queues).await?;
            queues.close_ranks();
        }
        self.grant_in(connection, queues, now).await?;
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
        let queues = WaitQueues { limits: by_id(&found)?, ..WaitQueues::default() };
        self.grant_in(connection, queues, now).await
    }

    /// Gives back what tasks were granted.
    pub(super) async fn give_back(
        &mut self,
        connection: &mut PgConnection,
        granted: &[Granted],
        now: Instant,
    ) -> Result<()> {
        let tasks: Vec<TaskKey> = granted.iter().map(|granted| granted.key).collect();
        let mut queues = WaitQueues::default();
        load_rows(connection, &mut queues, &tasks).await?;
        let needs: BTreeSet<LimitId> = queues.line.values().flat_map(|row| row.needs.clone()).collect();
        queues.limits = lock(connection, needs.into_iter().collect()).await?;
        // Somebody may have moved them on before the limits were locked.
        queues.line.clear();
        load_rows(connection, &mut queues, &tasks).await?;
        granted.iter().for_each(|granted| queues.give_back(granted));
        self.grant_in(connection, queues, now).await
    }

    /// Counts what was put off, as the last thing before the commit.
    pub(super) async fn settle(&mut self, connection: &mut PgConnection) -> Result<()> {
        let counted: Vec<(Limit, i32)> =
            std::mem::take(&mut self.counted).into_iter().filter(|(_, by)| *by != 0).collect();
        if counted.is_empty() {
            return Ok(());
        }
        let found = sqlx::query(include_str!("../../queries/count_slots.sql"))
            .bind(column(&counted, |(limit, _)| limit.kind()))
            .bind(column(&counted, |(limit, _)| tenant_of(limit)))
            .bind(column(&counted, |(limit, _)| normal::text(limit.name()).into_owned()))
            .bind(column(&counted, |(_, by)| *by))
            .fetch_all(&mut *connection)
            .await?;
        let limits = by_id(&found)?;
        if limits.values().any(LimitRow::could_grant) {
            let now = self.now;
            self.grant_in(connection, WaitQueues { limits, ..WaitQueues::default() }, now).await?;
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
        mut queues: WaitQueues,
        now: Instant,
    ) -> Result<()> {
        // Before the heads are read: those who are gone are none.
        delete(connection, &queues.gone).await?;
        if queues.limits.values().any(LimitRow::could_grant) {
            load_heads(connection, &mut queues).await?;
            let groups: BTreeSet<FairnessGroup> = queues.line.values().map(|row| row.group).collect();
            load_groups(connection, &mut queues, groups.into_iter()).await?;
            queues.grant(now);
        }
        write(connection, &queues).await?;
        self.granted.append(&mut queues.granted);
        self.again |= queues.again;
        Ok(())
    }
}

/// By how many slots each limit would change.
fn changes(asks: &[SlotRequest], leaves: &[SlotRelease]) -> BTreeMap<Limit, i32> {
    let mut changes = BTreeMap::new();
    let asked = asks.iter().flat_map(|ask| &ask.needs).map(|need| (need, 1));
    let left = leaves.iter().flat_map(|leave| &leave.needs).map(|need| (need, -1));
    for (need, by) in asked.chain(left) {
        *changes.entry(need.limit.clone()).or_default() += by;
    }
    changes
}

/// How many slots those who ask say that limits have.
fn said(asks: &[SlotRequest]) -> BTreeMap<Limit, u32> {
    let needs = asks.iter().flat_map(|ask| &ask.needs);
    needs.filter_map(|need| Some((need.limit.clone(), need.slots?))).collect()
}

/// Whether everybody can have a slot without anyone looking twice.
fn is_calm(
    limits: &BTreeMap<Limit, LimitRow>,
    changes: &BTreeMap<Limit, i32>,
    said: &BTreeMap<Limit, u32>,
) -> bool {
    said.is_empty()
        && limits.iter().all(|(limit, row)| {
            let by = changes.get(limit).copied().unwrap_or_default();
            let fits = row.slots.is_none_or(|slots| i64::from(row.used) + i64::from(by) <= i64::from(slots));
            row.waiting == 0 && fits && (limit.is_soft() || row.slots.is_none())
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

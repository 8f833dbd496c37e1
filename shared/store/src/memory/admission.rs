//! Places and lines in memory: every row is at hand, so nothing is put off and nobody has to look again.

use std::collections::BTreeMap;

use model::{
    Admission, BackfillId, FairnessGroup, Instant, Limit, Needed, SlotRelease, SlotRequest, TaskKey,
    TenantId, Weight,
};

use crate::admission::{GroupTurns, LimitId, LimitRow, WaitQueues, Waiter};
use crate::{Granted, LimitRecord, SlotWait, normal};

/// The tables of slots and lines. They are small: a unit that changes them writes them whole.
#[derive(Clone, Default)]
pub(super) struct Places {
    limits: BTreeMap<LimitId, LimitRow>,
    line: BTreeMap<TaskKey, Waiter>,
    groups: BTreeMap<(LimitId, FairnessGroup), GroupTurns>,
    weights: BTreeMap<TenantId, u32>,
}

impl Places {
    /// Seats everybody, by the weights that backfills have. Answers what became of each who asked, and to whom slots
    /// were granted.
    pub(super) fn seat(
        &mut self,
        asks: &[SlotRequest],
        leaves: &[SlotRelease],
        now: Instant,
        weight_of: impl Fn(BackfillId) -> Option<u32>,
    ) -> (Vec<Admission>, Vec<Granted>) {
        let asked = asks.iter().flat_map(|ask| &ask.needs);
        asked.chain(leaves.iter().flat_map(|leave| &leave.needs)).for_each(|need| self.know(need));
        let ids: BTreeMap<Limit, LimitId> =
            self.limits.iter().map(|(id, row)| (row.limit.clone(), *id)).collect();
        let needs = |needs: &[Needed]| needs.iter().map(|need| ids[&own(&need.limit)]).collect::<Vec<_>>();
        let mut queues = self.open();
        for ask in asks {
            for need in needs(&ask.needs) {
                let tenant = self.weight(ask.tenant);
                let backfill = ask.backfill.map(|backfill| weight_of(backfill).unwrap_or(1));
                let turns = queues.groups.entry((need, ask.fairness_group())).or_default();
                turns.weight = Weight { tenant, backfill };
            }
        }
        leaves.iter().for_each(|leave| queues.leave(leave, &needs(&leave.needs)));
        let seats = asks.iter().map(|ask| queues.ask(ask, needs(&ask.needs))).collect();
        queues.close_ranks();
        queues.grant(now);
        (seats, self.close(queues))
    }

    /// Grants whatever is free.
    pub(super) fn grant(&mut self, now: Instant) -> Vec<Granted> {
        let mut queues = self.open();
        queues.grant(now);
        self.close(queues)
    }

    /// Gives back what tasks were granted. Answers to whom their slots are granted instead.
    pub(super) fn give_back(&mut self, granted: &[Granted], now: Instant) -> Vec<Granted> {
        let mut queues = self.open();
        granted.iter().for_each(|granted| queues.give_back(granted));
        queues.grant(now);
        self.close(queues)
    }

    pub(super) fn list(&self, tenant: TenantId) -> Vec<LimitRecord> {
        let own = self.limits.values().filter(|row| row.limit.tenant().is_none_or(|of| of == tenant));
        let mut found: Vec<LimitRecord> = own
            .map(|row| LimitRecord {
                limit: row.limit.clone(),
                slots: row.slots,
                used: row.used,
                waiting: row.waiting,
                oldest: self.waiting(row.id).map(|row| row.since).min(),
            })
            .collect();
        found.sort_by(|one, other| {
            (one.limit.kind(), one.limit.name()).cmp(&(other.limit.kind(), other.limit.name()))
        });
        found
    }

    pub(super) fn set_slots(&mut self, limit: &Limit, slots: Option<u32>) {
        self.know(&Needed { limit: limit.clone(), slots: None });
        let row = self.limits.values_mut().find(|row| row.limit == own(limit));
        row.expect("it is known now").slots = slots;
    }

    pub(super) fn set_weight(&mut self, tenant: TenantId, weight: u32) {
        self.weights.insert(tenant, weight);
        let own = self.groups.iter_mut().filter(|((_, of), _)| of.tenant == tenant);
        own.for_each(|(_, turns)| turns.weight.tenant = weight);
    }

    pub(super) fn weight(&self, tenant: TenantId) -> u32 {
        self.weights.get(&tenant).copied().unwrap_or(1)
    }

    pub(super) fn forget_backfill(&mut self, backfill: BackfillId) {
        self.groups.retain(|(_, group), _| group.backfill != Some(backfill));
    }

    pub(super) fn slot_wait(&self, key: TaskKey) -> Option<SlotWait> {
        let own = self.line.get(&key)?;
        let limit = &self.limits[&own.limit()];
        let order = |row: &Waiter| (row.id, row.rank, row.key);
        Some(SlotWait {
            limit: limit.limit.clone(),
            slots: limit.slots,
            used: limit.used,
            ahead: self.waiting(limit.id).filter(|row| order(row) < order(own)).count() as u32,
            since: own.since,
            granted: own.granted_at.is_some(),
        })
    }

    pub(super) fn untaken(&self, before: Instant, limit: u32) -> Vec<Granted> {
        let granted = self.line.values().filter_map(|row| Some((row.granted_at?, row.key, row.attempt)));
        let mut old: Vec<_> = granted.filter(|(at, ..)| *at <= before).collect();
        old.sort_unstable();
        let old = old.into_iter().take(limit as usize);
        old.map(|(_, key, attempt)| Granted { key, attempt }).collect()
    }

    pub(super) fn first_granted(&self) -> Option<Instant> {
        self.line.values().filter_map(|row| row.granted_at).min()
    }

    pub(super) fn waits_since(&self, tenant: TenantId) -> Option<Instant> {
        let waits = |row: &&Waiter| row.group.tenant == tenant && row.granted_at.is_none();
        self.line.values().filter(waits).map(|row| row.since).min()
    }

    pub(super) fn has_room(&self) -> bool {
        self.limits.values().any(LimitRow::could_grant)
    }

    fn waiting(&self, limit: LimitId) -> impl Iterator<Item = &Waiter> {
        self.line.values().filter(move |row| row.waits_for(limit))
    }

    /// A limit that nobody needed before comes into being; what a workflow says of its own stands.
    fn know(&mut self, need: &Needed) {
        let limit = own(&need.limit);
        match self.limits.values_mut().find(|row| row.limit == limit) {
            Some(row) => row.slots = need.slots.or(row.slots),
            None => {
                let id = self.limits.len() as LimitId + 1;
                let slots = need.slots.or(limit.usual());
                let row = LimitRow { id, limit, slots, used: 0, waiting: 0, frontier: 0 };
                self.limits.insert(id, row);
            }
        }
    }

    fn open(&mut self) -> WaitQueues {
        WaitQueues {
            limits: std::mem::take(&mut self.limits),
            line: std::mem::take(&mut self.line),
            groups: std::mem::take(&mut self.groups),
            ..WaitQueues::default()
        }
    }

    fn close(&mut self, queues: WaitQueues) -> Vec<Granted> {
        self.limits = queues.limits;
        self.line = queues.line;
        self.groups = queues.groups;
        queues.granted
    }
}

/// A limit under the name that a row can hold.
fn own(limit: &Limit) -> Limit {
    let name = normal::text(limit.name()).into_owned();
    Limit::of(limit.kind(), limit.tenant(), &name).expect("the same kind and tenant")
}

//! Limits, wait queues and fairness groups in memory.

use std::collections::BTreeMap;

use model::wait_queue::{GroupTurns, LimitId, LimitRow, SlotChanges, SlotRead, SlotRows, Waiter};
use model::{BackfillId, FairnessGroup, Granted, Instant, Limit, TaskKey, TenantId, Weight};

use crate::{LimitRecord, SlotWait, normal};

/// The tables of limits and wait queues. They are small: a transaction that changes them writes them whole.
#[derive(Clone, Default)]
pub(super) struct SlotTables {
    limits: BTreeMap<LimitId, LimitRow>,
    waiters: BTreeMap<TaskKey, Waiter>,
    groups: BTreeMap<(LimitId, FairnessGroup), GroupTurns>,
    weights: BTreeMap<TenantId, u32>,
}

impl SlotTables {
    /// Reads rows, with the weights that backfills have now.
    pub(super) fn read(
        &mut self,
        read: &SlotRead,
        weight_of: impl Fn(BackfillId) -> Option<u32>,
    ) -> SlotRows {
        match read {
            SlotRead::Limits(wanted) => {
                let found = wanted.iter().map(|(limit, slots)| {
                    let row = self.find_or_create(limit, *slots);
                    (row.id, LimitRow { limit: limit.clone(), ..row.clone() })
                });
                SlotRows { limits: found.collect(), ..SlotRows::default() }
            }
            SlotRead::Locked { limits, waiters, groups } => {
                let waiters = waiters.iter().filter_map(|key| self.waiters.get(key)).cloned().collect();
                self.rows(limits.iter().copied(), waiters, groups, weight_of)
            }
            SlotRead::Grantable => {
                let open = self.limits.values().filter(|row| row.could_grant()).map(|row| row.id);
                self.rows(open, Vec::new(), &[], weight_of)
            }
            SlotRead::Waiters(tasks) => {
                let waiters = tasks.iter().filter_map(|key| self.waiters.get(key)).cloned().collect();
                self.rows(self.limits.keys().copied(), waiters, &[], weight_of)
            }
            SlotRead::Last(left) => {
                let groups: Vec<FairnessGroup> = left.iter().map(|(_, group, _)| *group).collect();
                let of_left = |row: &Waiter| {
                    left.iter().any(|(limit, group, _)| row.waits_for(*limit) && row.group == *group)
                };
                let waiters = self.waiters.values().filter(|row| of_left(row)).cloned().collect();
                self.rows(left.iter().map(|(limit, ..)| *limit), waiters, &groups, weight_of)
            }
            SlotRead::First { removed, heads, .. } => {
                removed.iter().for_each(|key| drop(self.waiters.remove(key)));
                let is_head = |row: &Waiter| heads.iter().any(|(limit, _)| row.waits_for(*limit));
                let waiters: Vec<Waiter> =
                    self.waiters.values().filter(|row| is_head(row)).cloned().collect();
                let groups: Vec<FairnessGroup> = waiters.iter().map(|row| row.group).collect();
                self.rows(self.limits.keys().copied(), waiters, &groups, weight_of)
            }
        }
    }

    pub(super) fn save(&mut self, changes: &SlotChanges) {
        for (limit, by) in &changes.counted {
            let row = self.find_or_create(limit, limit.usual());
            row.used = row.used.saturating_add_signed(*by);
        }
        changes.removed.iter().for_each(|key| drop(self.waiters.remove(key)));
        self.waiters.extend(changes.waiters.iter().map(|row| (row.key, row.clone())));
        self.groups.extend(changes.groups.iter().copied());
        self.limits.extend(changes.limits.iter().map(|row| (row.id, row.clone())));
    }

    /// Those of these limits, if one of them has waiters and a free slot.
    pub(super) fn counted<'l>(&self, limits: impl Iterator<Item = &'l Limit>) -> Option<SlotRows> {
        let counted: BTreeMap<LimitId, LimitRow> =
            limits.filter_map(|limit| self.find(limit)).map(|row| (row.id, row.clone())).collect();
        let grantable = counted.values().any(LimitRow::could_grant);
        grantable.then(|| SlotRows { limits: counted, ..SlotRows::default() })
    }

    fn rows(
        &self,
        limits: impl Iterator<Item = LimitId>,
        waiters: Vec<Waiter>,
        groups: &[FairnessGroup],
        weight_of: impl Fn(BackfillId) -> Option<u32>,
    ) -> SlotRows {
        let limits: BTreeMap<LimitId, LimitRow> = limits.map(|id| (id, self.limits[&id].clone())).collect();
        let turns = |key: (LimitId, FairnessGroup)| {
            let tenant = self.weight(key.1.tenant);
            let backfill = key.1.backfill.map(|backfill| weight_of(backfill).unwrap_or(1));
            let turns = self.groups.get(&key).copied().unwrap_or_default();
            (key, GroupTurns { weight: Weight { tenant, backfill }, ..turns })
        };
        let keys = limits.keys().flat_map(|id| groups.iter().map(|group| (*id, *group)));
        let groups = keys.map(turns).collect();
        SlotRows { limits, waiters, groups }
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

    pub(super) fn used(&self, limit: &Limit) -> u32 {
        self.find(limit).map_or(0, |row| row.used)
    }

    pub(super) fn set_slots(&mut self, limit: &Limit, slots: Option<u32>) {
        self.find_or_create(limit, slots).slots = slots;
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

    /// The place of a task in a wait queue; until when it waits, the table of breakers says.
    pub(super) fn slot_wait(&self, key: TaskKey) -> Option<SlotWait> {
        let own = self.waiters.get(&key)?;
        let limit = &self.limits[&own.limit()];
        let order = |row: &Waiter| (row.id, row.rank, row.key);
        Some(SlotWait {
            limit: limit.limit.clone(),
            slots: limit.slots,
            used: limit.used,
            ahead: self.waiting(limit.id).filter(|row| order(row) < order(own)).count() as u32,
            since: own.since,
            granted: own.granted_at.is_some(),
            until: None,
        })
    }

    pub(super) fn untaken(&self, before: Instant, limit: u32) -> Vec<Granted> {
        let granted = self.waiters.values().filter_map(|row| Some((row.granted_at?, row.key, row.attempt)));
        let mut old: Vec<_> = granted.filter(|(at, ..)| *at <= before).collect();
        old.sort_unstable();
        let old = old.into_iter().take(limit as usize);
        old.map(|(_, key, attempt)| Granted { key, attempt }).collect()
    }

    pub(super) fn first_granted(&self) -> Option<Instant> {
        self.waiters.values().filter_map(|row| row.granted_at).min()
    }

    pub(super) fn waits_since(&self, tenant: TenantId) -> Option<Instant> {
        let waits = |row: &&Waiter| row.group.tenant == tenant && row.granted_at.is_none();
        self.waiters.values().filter(waits).map(|row| row.since).min()
    }

    pub(super) fn has_room(&self) -> bool {
        self.limits.values().any(LimitRow::could_grant)
    }

    fn waiting(&self, limit: LimitId) -> impl Iterator<Item = &Waiter> {
        self.waiters.values().filter(move |row| row.waits_for(limit))
    }

    fn find(&self, limit: &Limit) -> Option<&LimitRow> {
        let limit = normal::limit(limit);
        self.limits.values().find(|row| row.limit == limit)
    }

    fn find_or_create(&mut self, limit: &Limit, slots: Option<u32>) -> &mut LimitRow {
        let id = self.find(limit).map_or(self.limits.len() as LimitId + 1, |row| row.id);
        self.limits.entry(id).or_insert_with(|| {
            let limit = normal::limit(limit);
            LimitRow { id, limit, slots, used: 0, waiting: 0, frontier: 0 }
        })
    }
}

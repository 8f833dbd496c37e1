//! The wait queues of locked limits: the moves of waiters, over the rows at hand.

use std::collections::{BTreeMap, BTreeSet};

use model::slot::{return_turn, take_turn};
use model::wait_queue::{GroupTurns, LimitId, LimitRow, SlotChanges, SlotRows, Waiter};
use model::{Admission, FairnessGroup, Granted, Instant, Limit, SlotRelease, SlotRequest, TaskKey};

/// The rows that an admission is decided over, and what changed.
#[derive(Default)]
pub(super) struct WaitQueues {
    limits: BTreeMap<LimitId, LimitRow>,
    pub(super) waiters: BTreeMap<TaskKey, Waiter>,
    groups: BTreeMap<(LimitId, FairnessGroup), GroupTurns>,
    /// Waiters that the store has to write.
    written: BTreeSet<TaskKey>,
    /// Waiters that the store has to delete.
    removed: BTreeSet<TaskKey>,
    /// Waiters that were deleted already.
    deleted: BTreeSet<TaskKey>,
    /// The unused turns of waiters that left.
    left: BTreeMap<(LimitId, FairnessGroup), Vec<i64>>,
    /// Groups whose turns changed.
    moved: BTreeSet<(LimitId, FairnessGroup)>,
    pub(super) granted: Vec<Granted>,
    pub(super) again: bool,
}

impl WaitQueues {
    /// Adds rows. Those that are here stay as they are, since they may have changed.
    pub(super) fn add(&mut self, rows: SlotRows) {
        for (id, row) in rows.limits {
            self.limits.entry(id).or_insert(row);
        }
        for row in rows.waiters {
            if !self.removed.contains(&row.key) && !self.deleted.contains(&row.key) {
                self.waiters.entry(row.key).or_insert(row);
            }
        }
        for (key, turns) in rows.groups {
            self.groups.entry(key).or_insert(turns);
        }
    }

    pub(super) fn limit_ids(&self) -> Vec<LimitId> {
        self.limits.keys().copied().collect()
    }

    /// Sets the slots of a limit, as a workflow's definition or a breaker says.
    pub(super) fn resize(&mut self, limit: LimitId, slots: Option<u32>) {
        if let Some(row) = self.limits.get_mut(&limit) {
            row.slots = slots;
        }
    }

    /// The limits whose waiters could be granted slots now, with how many, at most `most` each.
    pub(super) fn heads(&self, most: u32) -> Vec<(LimitId, u32)> {
        let open = self.limits.values().filter(|row| row.could_grant());
        open.map(|row| (row.id, row.room().min(most))).collect()
    }

    /// The groups that waiters have left, with how many of each.
    pub(super) fn left_turns(&self) -> Vec<(LimitId, FairnessGroup, usize)> {
        self.left.iter().map(|((limit, group), turns)| (*limit, *group, turns.len())).collect()
    }

    /// The waiters to delete before more are read, so that none of them is read again.
    pub(super) fn take_removed(&mut self) -> Vec<TaskKey> {
        let removed = std::mem::take(&mut self.removed);
        self.deleted.extend(&removed);
        removed.into_iter().collect()
    }

    /// A task gives up its slots, or its position in a wait queue.
    pub(super) fn release(&mut self, release: &SlotRelease, needs: &[LimitId]) {
        if release.holds_slots {
            self.free(needs);
        } else {
            self.leave_queue(release.key);
        }
    }

    /// A task requests its slots.
    pub(super) fn request(&mut self, request: &SlotRequest, needs: Vec<LimitId>) -> Admission {
        match self.waiters.get(&request.key) {
            Some(row) if row.attempt == request.attempt && row.granted_at.is_some() => {
                // The task claims the slots that it was granted.
                self.remove(request.key);
                return Admission::Acquired;
            }
            Some(row) if row.attempt == request.attempt => return Admission::StillWaiting,
            Some(_) => self.leave_queue(request.key),
            None => {}
        }
        let row = Waiter {
            key: request.key,
            attempt: request.attempt,
            group: request.fairness_group(),
            step: 0,
            needs,
            id: 0,
            rank: request.rank(),
            since: request.since,
            granted_at: None,
        };
        match self.advance(row) {
            Ok(_) => Admission::Acquired,
            Err(row) => {
                let limit = self.limits[&row.limit()].limit.clone();
                self.join_queue(row);
                Admission::Waiting(limit)
            }
        }
    }

    /// Grants free slots to waiters. Limits are visited in the order in which tasks acquire them, so a waiter that gets its
    /// slot of one limit is considered for the next one, too.
    pub(super) fn grant(&mut self, now: Instant) {
        let mut order: Vec<(&Limit, LimitId)> =
            self.limits.iter().map(|(id, row)| (&row.limit, *id)).collect();
        order.sort_unstable();
        let order: Vec<LimitId> = order.into_iter().map(|(_, id)| id).collect();
        for limit in order {
            while self.limits[&limit].could_grant() {
                let Some(key) = self.next_waiter(limit) else { break };
                let row = &self.waiters[&key];
                if !row.needs[row.step..].iter().all(|need| self.limits.contains_key(need)) {
                    break; // Another transaction has locked one of its limits.
                }
                self.grant_one(key, now);
            }
        }
        self.again |= self.limits.values().any(LimitRow::could_grant);
    }

    /// The next waiter of a limit. The lowest id decides which group has its turn; the group sends its task of the lowest
    /// rank.
    fn next_waiter(&mut self, limit: LimitId) -> Option<TaskKey> {
        let waiting = || self.waiters.values().filter(|row| row.waits_for(limit));
        let turn = waiting().min_by_key(|row| (row.id, row.rank, row.key))?;
        let own = waiting().filter(|row| row.group == turn.group);
        let best = own.min_by_key(|row| (row.rank, row.id, row.key))?;
        let (turn, best) = ((turn.key, turn.id), (best.key, best.id));
        if turn.0 != best.0 {
            // They swap positions.
            self.rewrite(turn.0).id = best.1;
            self.rewrite(best.0).id = turn.1;
        }
        Some(best.0)
    }

    /// Grants the first waiter of a limit its slot there, and those of the other limits it needs.
    fn grant_one(&mut self, key: TaskKey, now: Instant) {
        let row = self.rewrite(key).clone();
        let (limit, group) = (row.limit(), row.group);
        let here = self.limits.get_mut(&limit).expect("a wait queue has a limit");
        here.waiting -= 1;
        here.frontier = here.frontier.max(row.id);
        // It was first, so those that wait behind it do not matter.
        here.used += 1;
        let turns = self.turns(limit, group);
        turns.received += 1;
        turns.pace.count(now);
        match self.advance(Waiter { step: row.step + 1, ..row }) {
            Ok(row) => {
                self.granted.push(Granted { key, attempt: row.attempt });
                self.waiters.insert(key, Waiter { granted_at: Some(now), ..row });
            }
            Err(row) => self.join_queue(row),
        }
    }

    /// Acquires slots from the waiter's step on. Returns the row as an error if it has to wait.
    fn advance(&mut self, mut row: Waiter) -> Result<Waiter, Waiter> {
        while let Some(need) = row.needs.get(row.step) {
            match self.limits.get_mut(need) {
                Some(limit) if limit.waiting == 0 && limit.room() > 0 => limit.used += 1,
                _ => return Err(row),
            }
            row.step += 1;
        }
        // A granted waiter stays at its last limit.
        row.step = row.needs.len().saturating_sub(1);
        Ok(row)
    }

    fn join_queue(&mut self, row: Waiter) {
        let (limit, group) = (row.limit(), row.group);
        let here = self.limits.get_mut(&limit).expect("a wait queue has a limit");
        here.waiting += 1;
        let frontier = here.frontier;
        let turns = self.turns(limit, group);
        let (id, position) = take_turn(group.tenant, turns.position, frontier, turns.weight);
        turns.position = position;
        self.removed.remove(&row.key);
        self.written.insert(row.key);
        self.waiters.insert(row.key, Waiter { id, ..row });
    }

    /// A task gives back the slots that it was granted at an attempt.
    pub(super) fn give_back(&mut self, granted: &Granted) {
        let row = self.waiters.get(&granted.key);
        if row.is_some_and(|row| row.attempt == granted.attempt && row.granted_at.is_some()) {
            self.leave_queue(granted.key);
        }
    }

    fn leave_queue(&mut self, key: TaskKey) {
        let Some(row) = self.remove(key) else { return };
        if row.granted_at.is_some() {
            return self.free(&row.needs);
        }
        self.free(&row.needs[..row.step]);
        if let Some(limit) = self.limits.get_mut(&row.limit()) {
            limit.waiting = limit.waiting.saturating_sub(1);
        }
        self.left.entry((row.limit(), row.group)).or_default().push(row.id);
    }

    /// Waiters that left had no turn. The last of their group take over their positions, so that no turn passes unused.
    pub(super) fn close_ranks(&mut self) {
        for ((limit, group), mut given_up) in std::mem::take(&mut self.left) {
            let turns = self.turns(limit, group);
            let returned = |position, _: &i64| return_turn(position, turns.weight);
            turns.position = given_up.iter().fold(turns.position, returned);
            given_up.sort_unstable();
            let of_group = |row: &&Waiter| row.waits_for(limit) && row.group == group;
            let mut last: Vec<_> =
                self.waiters.values().filter(of_group).map(|row| (row.id, row.rank, row.key)).collect();
            last.sort_unstable();
            for (turn, (id, _, key)) in given_up.into_iter().zip(last.into_iter().rev()) {
                if turn < id {
                    self.rewrite(key).id = turn;
                }
            }
        }
    }

    /// The rows to write.
    pub(super) fn changes(self) -> SlotChanges {
        let Self { limits, mut waiters, groups, written, removed, moved, .. } = self;
        SlotChanges {
            counted: BTreeMap::new(),
            removed: removed.into_iter().collect(),
            waiters: written.into_iter().filter_map(|key| waiters.remove(&key)).collect(),
            groups: moved.into_iter().map(|key| (key, groups[&key])).collect(),
            limits: limits.into_values().collect(),
        }
    }

    fn free(&mut self, needs: &[LimitId]) {
        for need in needs {
            if let Some(limit) = self.limits.get_mut(need) {
                limit.used = limit.used.saturating_sub(1);
            }
        }
    }

    fn remove(&mut self, key: TaskKey) -> Option<Waiter> {
        self.written.remove(&key);
        self.removed.insert(key);
        self.waiters.remove(&key)
    }

    fn rewrite(&mut self, key: TaskKey) -> &mut Waiter {
        self.written.insert(key);
        self.waiters.get_mut(&key).expect("it was found among the waiters")
    }

    fn turns(&mut self, limit: LimitId, group: FairnessGroup) -> &mut GroupTurns {
        self.moved.insert((limit, group));
        self.groups.entry((limit, group)).or_default()
    }
}

//! Who has a slot: decided here for both stores, over the rows that they have loaded and locked.
//!
//! A task takes its slots in the order of its needs. Where it finds none, or others in line before it, it stands in
//! that limit's line and keeps what it has so far: everybody takes them in the same order, so nobody waits in a circle.
//! Once it has all of them it is *granted*: its run is told, and the task takes them over.

use std::collections::{BTreeMap, BTreeSet};

use model::slot::{return_turn, take_turn};
use model::{Admission, FairnessGroup, Instant, Limit, SlotRelease, SlotRequest, TaskKey, Weight};

use crate::{Granted, Pace};

/// Names a limit's row.
pub(crate) type LimitId = i32;

/// A limit: how many slots it has, and who has them.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct LimitRow {
    pub(crate) id: LimitId,
    pub(crate) limit: Limit,
    /// How many there are; none if there is no bound.
    pub(crate) slots: Option<u32>,
    pub(crate) used: u32,
    /// How many stand in its line.
    pub(crate) waiting: u32,
    /// The id of whoever was given a slot last.
    pub(crate) frontier: i64,
}

impl LimitRow {
    /// How many more may have a slot now.
    pub(crate) fn room(&self) -> u32 {
        self.slots.map_or(u32::MAX, |slots| slots.saturating_sub(self.used))
    }

    /// Whether someone in its line could have a slot.
    pub(crate) fn could_grant(&self) -> bool {
        self.waiting > 0 && self.room() > 0
    }
}

/// A task in line, or one that was granted its slots and has not taken them over.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Waiter {
    pub(crate) key: TaskKey,
    pub(crate) attempt: u32,
    pub(crate) group: FairnessGroup,
    /// Which of its needs it waits for; it has a place of each before that one.
    pub(crate) step: usize,
    /// Where it needs slots, in order.
    pub(crate) needs: Vec<LimitId>,
    /// Its place in the line.
    pub(crate) id: i64,
    /// Its order within its group.
    pub(crate) rank: i64,
    pub(crate) since: Instant,
    pub(crate) granted_at: Option<Instant>,
}

impl Waiter {
    /// In whose line it stands.
    pub(crate) fn limit(&self) -> LimitId {
        self.needs[self.step]
    }

    /// Whether it waits for a slot there.
    pub(crate) fn waits_for(&self, limit: LimitId) -> bool {
        self.granted_at.is_none() && self.limit() == limit
    }
}

/// Where a group's next task goes in a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GroupTurns {
    /// The next position, in parts of a block.
    pub(crate) position: i64,
    /// How often it comes in each round.
    pub(crate) weight: Weight,
    /// How many of its tasks were given a slot from the line.
    pub(crate) received: i64,
    /// How many of late.
    pub(crate) pace: Pace,
}

impl Default for GroupTurns {
    fn default() -> Self {
        Self { position: 0, weight: Weight::live(1), received: 0, pace: Pace::default() }
    }
}

/// The rows that an admission is decided on, and what became of them.
#[derive(Default)]
pub(crate) struct WaitQueues {
    pub(crate) limits: BTreeMap<LimitId, LimitRow>,
    pub(crate) line: BTreeMap<TaskKey, Waiter>,
    pub(crate) groups: BTreeMap<(LimitId, FairnessGroup), GroupTurns>,
    /// Rows of the line to write.
    pub(crate) written: BTreeSet<TaskKey>,
    /// Rows of the line to delete.
    pub(crate) gone: BTreeSet<TaskKey>,
    /// The turns of those who left lines without having had them.
    pub(crate) left: BTreeMap<(LimitId, FairnessGroup), Vec<i64>>,
    /// Standings to write.
    pub(crate) moved: BTreeSet<(LimitId, FairnessGroup)>,
    /// Who was granted all slots just now.
    pub(crate) granted: Vec<Granted>,
    /// Whether someone might have been granted a slot had more rows been at hand.
    pub(crate) again: bool,
}

impl WaitQueues {
    /// A task gives up its slots, or where it stood.
    pub(crate) fn leave(&mut self, leave: &SlotRelease, needs: &[LimitId]) {
        if leave.holds_slots {
            self.free(needs);
        } else {
            self.leave_queue(leave.key);
        }
    }

    /// A task asks for its slots.
    pub(crate) fn ask(&mut self, ask: &SlotRequest, needs: Vec<LimitId>) -> Admission {
        match self.line.get(&ask.key) {
            Some(row) if row.attempt == ask.attempt && row.granted_at.is_some() => {
                // From now on they are the task's own.
                self.remove(ask.key);
                return Admission::Acquired;
            }
            Some(row) if row.attempt == ask.attempt => return Admission::StillWaiting,
            Some(_) => self.leave_queue(ask.key),
            None => {}
        }
        let row = Waiter {
            key: ask.key,
            attempt: ask.attempt,
            group: ask.fairness_group(),
            step: 0,
            needs,
            id: 0,
            rank: ask.rank(),
            since: ask.since,
            granted_at: None,
        };
        match self.advance(row) {
            Ok(_) => Admission::Acquired,
            Err(row) => {
                let limit = self.limits[&row.limit()].limit.clone();
                self.stand(row);
                Admission::Waiting(limit)
            }
        }
    }

    /// Grants what is free to those who wait, in the order of their needs.
    pub(crate) fn grant(&mut self, now: Instant) {
        let mut order: Vec<(&Limit, LimitId)> =
            self.limits.iter().map(|(id, row)| (&row.limit, *id)).collect();
        order.sort_unstable();
        let order: Vec<LimitId> = order.into_iter().map(|(_, id)| id).collect();
        for limit in order {
            while self.limits[&limit].could_grant() {
                let Some(key) = self.next_waiter(limit) else { break };
                let row = &self.line[&key];
                if !row.needs[row.step..].iter().all(|need| self.limits.contains_key(need)) {
                    break; // Someone else has one of its limits in hand just now.
                }
                self.grant_one(key, now);
            }
        }
        self.again |= self.limits.values().any(LimitRow::could_grant);
    }

    /// Whose turn it is: the group's that the first id belongs to, which sends its task of the lowest rank.
    fn next_waiter(&mut self, limit: LimitId) -> Option<TaskKey> {
        let slot_wait = || self.line.values().filter(|row| row.waits_for(limit));
        let turn = slot_wait().min_by_key(|row| (row.id, row.rank, row.key))?;
        let own = slot_wait().filter(|row| row.group == turn.group);
        let best = own.min_by_key(|row| (row.rank, row.id, row.key))?;
        let (turn, best) = ((turn.key, turn.id), (best.key, best.id));
        if turn.0 != best.0 {
            // They change slots.
            self.rewrite(turn.0).id = best.1;
            self.rewrite(best.0).id = turn.1;
        }
        Some(best.0)
    }

    /// Gives the head of a line its slot there, and those that it needs beside it.
    fn grant_one(&mut self, key: TaskKey, now: Instant) {
        let row = self.rewrite(key).clone();
        let (limit, group) = (row.limit(), row.group);
        let here = self.limits.get_mut(&limit).expect("a line has a limit");
        here.waiting -= 1;
        here.frontier = here.frontier.max(row.id);
        // It stood first, so whoever waits behind it is no obstacle.
        here.used += 1;
        let turns = self.turns(limit, group);
        turns.received += 1;
        turns.pace.count(now);
        match self.advance(Waiter { step: row.step + 1, ..row }) {
            Ok(row) => {
                self.granted.push(Granted { key, attempt: row.attempt });
                self.line.insert(key, Waiter { granted_at: Some(now), ..row });
            }
            Err(row) => self.stand(row),
        }
    }

    /// Takes slots from its step on, as far as there are. Gives the row back where it has to wait.
    fn advance(&mut self, mut row: Waiter) -> Result<Waiter, Waiter> {
        while let Some(need) = row.needs.get(row.step) {
            match self.limits.get_mut(need) {
                Some(limit) if limit.waiting == 0 && limit.room() > 0 => limit.used += 1,
                _ => return Err(row),
            }
            row.step += 1;
        }
        // There is no line behind the last one.
        row.step = row.needs.len().saturating_sub(1);
        Ok(row)
    }

    fn stand(&mut self, row: Waiter) {
        let (limit, group) = (row.limit(), row.group);
        let here = self.limits.get_mut(&limit).expect("a line has a limit");
        here.waiting += 1;
        let frontier = here.frontier;
        let turns = self.turns(limit, group);
        let (id, position) = take_turn(group.tenant, turns.position, frontier, turns.weight);
        turns.position = position;
        self.gone.remove(&row.key);
        self.written.insert(row.key);
        self.line.insert(row.key, Waiter { id, ..row });
    }

    /// A task gives back what it was granted at an attempt.
    pub(crate) fn give_back(&mut self, granted: &Granted) {
        let row = self.line.get(&granted.key);
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

    /// Who left a line had no turn there: the last of its group takes it, so that nobody waits for turns that no one takes.
    pub(crate) fn close_ranks(&mut self) {
        for ((limit, group), mut given_up) in std::mem::take(&mut self.left) {
            let turns = self.turns(limit, group);
            let returned = |position, _: &i64| return_turn(position, turns.weight);
            turns.position = given_up.iter().fold(turns.position, returned);
            given_up.sort_unstable();
            let of_group = |row: &&Waiter| row.waits_for(limit) && row.group == group;
            let mut last: Vec<_> =
                self.line.values().filter(of_group).map(|row| (row.id, row.rank, row.key)).collect();
            last.sort_unstable();
            for (turn, (id, _, key)) in given_up.into_iter().zip(last.into_iter().rev()) {
                if turn < id {
                    self.rewrite(key).id = turn;
                }
            }
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
        self.gone.insert(key);
        self.line.remove(&key)
    }

    fn rewrite(&mut self, key: TaskKey) -> &mut Waiter {
        self.written.insert(key);
        self.line.get_mut(&key).expect("it was found in the line")
    }

    fn turns(&mut self, limit: LimitId, group: FairnessGroup) -> &mut GroupTurns {
        self.moved.insert((limit, group));
        self.groups.entry((limit, group)).or_default()
    }
}

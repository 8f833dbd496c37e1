//! The rows of limits and their wait queues: what a store loads, and what the engine decides over.

use std::collections::BTreeMap;

use crate::{FairnessGroup, Instant, Limit, Pace, TaskKey, Weight};

/// The key of a limit's row.
pub type LimitId = i32;

/// A limit with the state of its slots and its wait queue.
#[derive(Clone, PartialEq, Debug)]
pub struct LimitRow {
    /// The key that waiters and groups refer to.
    pub id: LimitId,
    /// The limit that counts the slots.
    pub limit: Limit,
    /// The number of slots; none if there is no bound.
    pub slots: Option<u32>,
    /// The slots that are taken or granted.
    pub used: u32,
    /// The tasks in its wait queue.
    pub waiting: u32,
    /// The highest id that was granted a slot from the wait queue.
    pub frontier: i64,
}

impl LimitRow {
    /// The number of free slots.
    pub fn room(&self) -> u32 {
        self.slots.map_or(u32::MAX, |slots| slots.saturating_sub(self.used))
    }

    /// Whether a task waits although a slot is free.
    pub fn could_grant(&self) -> bool {
        self.waiting > 0 && self.room() > 0
    }
}

/// A task in a wait queue, or one that was granted its slots and has not claimed them.
#[derive(Clone, PartialEq, Debug)]
pub struct Waiter {
    /// The task that waits.
    pub key: TaskKey,
    /// The attempt that requested the slots.
    pub attempt: u32,
    /// The group whose turns it uses.
    pub group: FairnessGroup,
    /// The position in `needs` of the limit it waits for; it holds a slot of each limit before that one.
    pub step: usize,
    /// The limits it needs slots of, in order.
    pub needs: Vec<LimitId>,
    /// Its position in the wait queue.
    pub id: i64,
    /// Its order within its group, lowest first.
    pub rank: i64,
    /// When it became queued.
    pub since: Instant,
    /// When it was granted all its slots; none while it waits.
    pub granted_at: Option<Instant>,
}

impl Waiter {
    /// The limit whose wait queue it is in.
    pub fn limit(&self) -> LimitId {
        self.needs[self.step]
    }

    /// Whether it waits for a slot of this limit.
    pub fn waits_for(&self, limit: LimitId) -> bool {
        self.granted_at.is_none() && self.limit() == limit
    }
}

/// The turns of a fairness group in one wait queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupTurns {
    /// The position of its next task, in parts of a block.
    pub position: i64,
    /// How many turns it has in each round.
    pub weight: Weight,
    /// How many of its tasks were granted a slot from the wait queue.
    pub received: i64,
    /// How many were granted one in the last minute.
    pub pace: Pace,
}

impl Default for GroupTurns {
    fn default() -> Self {
        Self { position: 0, weight: Weight::live(1), received: 0, pace: Pace::default() }
    }
}

/// A waiter that was granted its slots.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Granted {
    /// The task that waited.
    pub key: TaskKey,
    /// The attempt that requested the slots.
    pub attempt: u32,
}

/// Rows about slots that a store has read.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SlotRows {
    /// Limits by their ids.
    pub limits: BTreeMap<LimitId, LimitRow>,
    /// Tasks in wait queues, in any order.
    pub waiters: Vec<Waiter>,
    /// The turns of groups in wait queues.
    pub groups: BTreeMap<(LimitId, FairnessGroup), GroupTurns>,
}

/// The rows that an admission needs next. Each is one or two statements.
#[derive(Clone, PartialEq, Debug)]
pub enum SlotRead {
    /// These limits, without a lock; one that does not exist is created with this number of slots. Each comes back under
    /// the name it was asked for by.
    Limits(BTreeMap<Limit, Option<u32>>),
    /// These limits, locked in id order, with these waiters and the turns of these groups.
    Locked {
        /// The limits to lock.
        limits: Vec<LimitId>,
        /// The tasks that may be in a wait queue.
        waiters: Vec<TaskKey>,
        /// The groups whose turns are needed.
        groups: Vec<FairnessGroup>,
    },
    /// Limits that have both waiters and free slots, locked in id order.
    Grantable,
    /// These waiters and, locked in id order, all limits that they need.
    Waiters(Vec<TaskKey>),
    /// The waiters at the end of these groups' turns, at least as many as given and their turns.
    Last(Vec<(LimitId, FairnessGroup, usize)>),
    /// The first waiters of these limits and the best of their groups, at least as many as given, with the turns of their
    /// groups and the other limits that they need. A limit that another transaction has locked is left out.
    First {
        /// Waiters that have left; the store deletes them before it reads.
        removed: Vec<TaskKey>,
        /// The limits, and how many of their waiters are needed.
        heads: Vec<(LimitId, u32)>,
        /// The limits that are locked already.
        locked: Vec<LimitId>,
    },
}

/// The changes that an admission made.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SlotChanges {
    /// Slots to add to those in use, counted as the last statement before the commit: each limit is locked only for a moment.
    pub counted: BTreeMap<Limit, i32>,
    /// Waiters that the store deletes.
    pub removed: Vec<TaskKey>,
    /// Waiters that the store inserts or updates.
    pub waiters: Vec<Waiter>,
    /// Turns of groups that the store writes.
    pub groups: Vec<((LimitId, FairnessGroup), GroupTurns)>,
    /// Limits that were locked; those that did not change need not be written.
    pub limits: Vec<LimitRow>,
}

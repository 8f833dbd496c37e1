//! Limits, their wait queues and circuit breakers, as readers see them.

use model::{Breaker, Instant, Limit};

/// A limit and how much of it is used.
#[derive(Clone, PartialEq, Debug)]
pub struct LimitRecord {
    /// The limit that counts the slots.
    pub limit: Limit,
    /// How many slots there are; none if there is no bound.
    pub slots: Option<u32>,
    /// How many are taken or granted.
    pub used: u32,
    /// How many tasks wait for a slot of it.
    pub waiting: u32,
    /// Since when the task that has waited longest waits.
    pub oldest: Option<Instant>,
}

/// The place of a task in a wait queue.
#[derive(Clone, PartialEq, Debug)]
pub struct SlotWait {
    /// The limit that it waits for.
    pub limit: Limit,
    /// How many slots there are.
    pub slots: Option<u32>,
    /// How many are taken or promised.
    pub used: u32,
    /// How many waiting tasks come before it, unless others join.
    pub ahead: u32,
    /// Since when it waits.
    pub since: Instant,
    /// Whether it was granted its slots and has not taken them over.
    pub granted: bool,
    /// When the pause of the circuit breaker that it waits for ends; none if it waits for something else.
    pub until: Option<Instant>,
}

/// A circuit breaker as people see it.
#[derive(Clone, PartialEq, Debug)]
pub struct BreakerRecord {
    /// The row of the breaker.
    pub breaker: Breaker,
    /// How many tasks wait for it.
    pub waiting: u32,
}

//! Places and lines, as readers see them.

use model::{FairnessGroup, Instant, Limit, Pace, RunId, Task, VersionId, Weight};

/// A limit as readers see it.
#[derive(Clone, PartialEq, Debug)]
pub struct LimitRecord {
    /// What is limited.
    pub limit: Limit,
    /// How many slots there are; none if there is no bound.
    pub slots: Option<u32>,
    /// How many are taken or promised.
    pub used: u32,
    /// How many stand in its line.
    pub waiting: u32,
    /// Since when the one who has waited longest does.
    pub oldest: Option<Instant>,
}

/// A group in a line, as readers see it.
#[derive(Clone, PartialEq, Debug)]
pub struct FairnessGroupRecord {
    /// The live tasks of a tenant, or one of its backfills.
    pub group: FairnessGroup,
    /// How often it comes in each round.
    pub weight: Weight,
    /// How many of its tasks stand in the line.
    pub waiting: u32,
    /// Since when the one that has waited longest does.
    pub oldest: Option<Instant>,
    /// How many were given a slot from the line.
    pub received: u64,
    /// How many of late.
    pub pace: Pace,
}

/// A task that has its slots, or waits for one.
#[derive(Clone, PartialEq, Debug)]
pub struct Contender {
    /// The run that it is of.
    pub run: RunId,
    /// That run's workflow.
    pub workflow: String,
    /// And its version, which says where the task needs slots.
    pub version: VersionId,
    /// The task itself.
    pub task: Task,
}

/// Where a task stands in line.
#[derive(Clone, PartialEq, Debug)]
pub struct SlotWait {
    /// In whose line.
    pub limit: Limit,
    /// How many slots there are.
    pub slots: Option<u32>,
    /// How many are taken or promised.
    pub used: u32,
    /// How many come before it if nobody else comes.
    pub ahead: u32,
    /// Since when it waits.
    pub since: Instant,
    /// Whether it was granted its slots and only has to take them over.
    pub granted: bool,
}

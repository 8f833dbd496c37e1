//! Slots and wait queues: how many tasks may be under way at the same time, and which is next.
//!
//! A task holds a **slot** from when its work message may be published until it ends or only waits. A **limit** has a
//! number of slots: of a queue, a tenant, a workflow, a pool or a circuit breaker. A task that finds none free waits in the limit's **wait
//! queue**. It is read in the order of its ids, and these encode round-robin: tenants take turns, however many tasks
//! each of them has there. A backfill takes turns of its own, fewer of them than the live tasks of its tenant.

use crate::{BackfillId, Instant, TaskKey, TenantId};

/// How far apart two turns of one tenant lie in a wait queue; there are fewer tenants than this.
pub const BLOCK: i64 = 1_048_576;

/// The parts of a block: a tenant of weight three has three turns in each block, a third of it apart.
const PARTS: i64 = 720_720;

/// The number of turns of its tenant's live tasks for which a backfill gets as many turns as its weight.
pub const LIVE_WEIGHT: u32 = 10;

/// The waiting time that one step of priority outweighs: a task that has waited longer comes before later ones of
/// higher priority.
const STEP_MILLISECONDS: i64 = 60_000;

/// A limit that counts slots. If several are full, a task waits for them in this order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Limit {
    /// The attempts of a task that its circuit breaker lets through. It comes first, so that a task which waits for it holds no
    /// slot of anything else.
    Breaker(TenantId, String),
    /// The tasks that name a pool.
    Pool(TenantId, String),
    /// The tasks of a workflow that has a maximum.
    Workflow(TenantId, String),
    /// The tasks of a tenant.
    Tenant(TenantId),
    /// The tasks of a queue, of all tenants: as many as its executors can hold.
    Queue(String),
}

impl Limit {
    /// Every kind, in order.
    pub const KINDS: [&str; 5] = ["breaker", "pool", "queue", "tenant", "workflow"];

    /// The kind of limit, as named in rows and API responses.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Breaker(..) => "breaker",
            Self::Pool(..) => "pool",
            Self::Workflow(..) => "workflow",
            Self::Tenant(_) => "tenant",
            Self::Queue(_) => "queue",
        }
    }

    /// The tenant that it belongs to; none if all tenants share it.
    pub fn tenant(&self) -> Option<TenantId> {
        match self {
            Self::Breaker(tenant, _)
            | Self::Pool(tenant, _)
            | Self::Workflow(tenant, _)
            | Self::Tenant(tenant) => Some(*tenant),
            Self::Queue(_) => None,
        }
    }

    /// The name of what it limits; empty for a tenant.
    pub fn name(&self) -> &str {
        match self {
            Self::Breaker(_, name) | Self::Pool(_, name) | Self::Workflow(_, name) | Self::Queue(name) => {
                name
            }
            Self::Tenant(_) => "",
        }
    }

    /// The limit of that kind, tenant and name.
    pub fn of(kind: &str, tenant: Option<TenantId>, name: &str) -> Option<Self> {
        match (kind, tenant) {
            ("breaker", Some(tenant)) => Some(Self::Breaker(tenant, name.into())),
            ("pool", Some(tenant)) => Some(Self::Pool(tenant, name.into())),
            ("workflow", Some(tenant)) => Some(Self::Workflow(tenant, name.into())),
            ("tenant", Some(tenant)) => Some(Self::Tenant(tenant)),
            ("queue", None) => Some(Self::Queue(name.into())),
            _ => None,
        }
    }

    /// The number of slots if none is configured; none if there is no bound.
    pub fn usual(&self) -> Option<u32> {
        match self {
            Self::Pool(..) => Some(10),
            Self::Queue(_) => Some(512),
            // A closed breaker lets everything through.
            Self::Breaker(..) | Self::Workflow(..) | Self::Tenant(_) => None,
        }
    }

    /// Whether a few tasks may exceed it for a moment; the bus then holds them.
    pub fn is_soft(&self) -> bool {
        matches!(self, Self::Queue(_))
    }
}

/// A limit that a task needs a slot of, and how many there are if its workflow says so.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Needed {
    /// The limit that must have a free slot.
    pub limit: Limit,
    /// The number of slots, if the task's own workflow defines it.
    pub slots: Option<u32>,
}

/// A queued task that asks for a slot.
#[derive(Clone, PartialEq, Debug)]
pub struct SlotRequest {
    /// The task that is queued.
    pub key: TaskKey,
    /// The attempt that is to begin.
    pub attempt: u32,
    /// The tenant that the task belongs to.
    pub tenant: TenantId,
    /// The backfill that its run belongs to, if any.
    pub backfill: Option<BackfillId>,
    /// Higher comes first within its fairness group.
    pub priority: i32,
    /// Since when it waits.
    pub since: Instant,
    /// Whether it was queued before: it may be in a wait queue, or have its slots granted.
    pub waited: bool,
    /// The limits that it needs a slot of, each once and in order.
    pub needs: Vec<Needed>,
}

impl SlotRequest {
    /// The group that shares its turns.
    pub fn fairness_group(&self) -> FairnessGroup {
        FairnessGroup { tenant: self.tenant, backfill: self.backfill }
    }

    /// Its order within its group, lowest first. All tasks age alike, so it does not change while they wait.
    pub fn rank(&self) -> i64 {
        rank(self.since, self.priority)
    }
}

/// The order of a task within its fairness group, lowest first: since when it waits, and by its priority earlier or
/// later. All tasks age alike, so it never changes.
pub fn rank(since: Instant, priority: i32) -> i64 {
    since.timestamp_millis() - i64::from(priority) * STEP_MILLISECONDS
}

/// A task that gives up its slots, or its place in a wait queue.
#[derive(Clone, PartialEq, Debug)]
pub struct SlotRelease {
    /// The task that gives them up.
    pub key: TaskKey,
    /// Whether it was under way; otherwise it was queued.
    pub holds_slots: bool,
    /// The limits that it had a slot of, or waited for.
    pub needs: Vec<Needed>,
}

/// The answer to a task that requested slots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Admission {
    /// It has all its slots.
    Acquired,
    /// It waits for a slot of this limit.
    Waiting(Limit),
    /// It waited for a slot before, and still does.
    StillWaiting,
}

/// Who takes turns in a wait queue: the live tasks of a tenant, or those of one of its backfills.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FairnessGroup {
    /// The tenant of the tasks.
    pub tenant: TenantId,
    /// The backfill; none for live tasks.
    pub backfill: Option<BackfillId>,
}

/// How often a group has a turn in each round of a wait queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Weight {
    /// The number of turns of the tenant's live tasks.
    pub tenant: u32,
    /// For a backfill, its number of turns for each [`LIVE_WEIGHT`] of these.
    pub backfill: Option<u32>,
}

impl Weight {
    /// The weight of a tenant's live tasks.
    pub fn live(tenant: u32) -> Self {
        Self { tenant, backfill: None }
    }

    /// How many turns it has in each round; less than one if it skips rounds.
    pub fn turns(self) -> f64 {
        f64::from(self.tenant) * f64::from(self.of_live()) / f64::from(LIVE_WEIGHT)
    }

    /// How far apart two turns lie, in parts of a block.
    fn stride(self) -> i64 {
        PARTS * i64::from(LIVE_WEIGHT) / (i64::from(self.tenant.max(1)) * i64::from(self.of_live().max(1)))
    }

    fn of_live(self) -> u32 {
        self.backfill.unwrap_or(LIVE_WEIGHT)
    }
}

/// The id that a group's next task in a wait queue gets, and the position of the one after it. A group that has been
/// away starts at the frontier, the id that was last granted a slot: otherwise it would come before it, with turns of
/// rounds that are over.
pub fn take_turn(tenant: TenantId, position: i64, frontier: i64, weight: Weight) -> (i64, i64) {
    let passed = i64::from(i64::from(tenant.0) < frontier % BLOCK);
    let position = position.max((block_of(frontier) + passed).saturating_mul(PARTS));
    let id = i64::from(tenant.0) + BLOCK * (position / PARTS);
    (id, position + weight.stride())
}

/// The position of a group's next task once one of its tasks has left the wait queue without having had its turn.
pub fn return_turn(position: i64, weight: Weight) -> i64 {
    (position - weight.stride()).max(0)
}

/// The block that an id of a wait queue lies in.
pub fn block_of(id: i64) -> i64 {
    id / BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(weight: u32, frontier: i64, count: usize) -> Vec<i64> {
        blocks_of(Weight::live(weight), frontier, count)
    }

    fn blocks_of(weight: Weight, frontier: i64, count: usize) -> Vec<i64> {
        let mut position = 0;
        let turn = |_| {
            let (id, next) = take_turn(TenantId(7), position, frontier, weight);
            position = next;
            assert_eq!(id % BLOCK, 7);
            block_of(id)
        };
        (0..count).map(turn).collect()
    }

    #[test]
    fn a_tenant_comes_once_in_each_block_and_by_its_weight_more_often() {
        assert_eq!(blocks(1, 0, 4), [0, 1, 2, 3]);
        assert_eq!(blocks(3, 0, 7), [0, 0, 0, 1, 1, 1, 2]);
    }

    #[test]
    fn a_backfill_comes_less_often_than_the_live_tasks_of_its_tenant() {
        let blocks = |tenant, own| blocks_of(Weight { tenant, backfill: Some(own) }, 0, 4);
        assert_eq!(blocks(1, 1), [0, 10, 20, 30]);
        assert_eq!(blocks(1, 5), [0, 2, 4, 6]);
        assert_eq!(blocks(2, 1), [0, 5, 10, 15]);
        assert_eq!(Weight { tenant: 2, backfill: Some(1) }.turns(), 0.2);
    }

    #[test]
    fn who_comes_late_starts_behind_the_frontier() {
        let frontier = |tenant| BLOCK * 9_000 + tenant;
        assert_eq!(blocks(1, frontier(3), 2), [9_000, 9_001]);
        assert_eq!(blocks(1, frontier(7), 2), [9_000, 9_001]);
        assert_eq!(blocks(1, frontier(8), 2), [9_001, 9_002]);
    }

    #[test]
    fn a_turn_that_was_not_taken_comes_again() {
        for weight in [1, 2, 3, 7].map(Weight::live) {
            let (_, position) = take_turn(TenantId(7), 5 * PARTS, 0, weight);
            assert_eq!(return_turn(position, weight), 5 * PARTS);
        }
    }

    #[test]
    fn weights_up_to_sixteen_are_exact() {
        for weight in 1..=16 {
            let taken = blocks(weight, 0, 1_000 * weight as usize);
            assert_eq!(taken.last(), Some(&999), "weight {weight}");
        }
    }

    #[test]
    fn waiting_outweighs_priority_in_the_end() {
        let ask = |seconds: i64, priority| SlotRequest {
            key: TaskKey { run: crate::RunId(uuid::Uuid::nil()), task: crate::TaskIndex(0) },
            attempt: 1,
            tenant: TenantId::DEFAULT,
            backfill: None,
            priority,
            since: Instant::from_timestamp(seconds, 0).unwrap_or_default(),
            waited: false,
            needs: Vec::new(),
        };
        assert!(ask(0, 0).rank() > ask(30, 1).rank(), "a step of priority is worth half a minute");
        assert!(ask(0, 0).rank() < ask(61, 1).rank(), "and not more than a minute");
    }
}

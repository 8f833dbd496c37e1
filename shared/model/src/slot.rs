//! Places and lines: how many tasks may be under way at the same time, and who is next.
//!
//! A task holds a **place** from when its work message may go out until it ends or only waits. A **limit** says how
//! many slots there are: in a queue, for a tenant, for a workflow, in a pool. Who finds none stands in the limit's
//! **line**. A line is read in the order of its ids, and these encode round-robin: tenants take turns, however many
//! tasks each of them has there. A backfill takes turns of its own, fewer of them than the live tasks of its tenant.

use crate::{BackfillId, Instant, TaskKey, TenantId};

/// How far apart two turns of one tenant lie in a line; there are fewer tenants than this.
pub const BLOCK: i64 = 1_048_576;

/// A block in parts: a tenant of weight three comes three times in each, and so goes on by a third of it each time.
const PARTS: i64 = 720_720;

/// For so many turns of its tenant's live tasks, a backfill has as many as its weight says.
pub const LIVE_WEIGHT: u32 = 10;

/// One step of priority outweighs so much waiting: who waits long enough comes before anyone of higher priority that
/// comes later.
const STEP_MILLISECONDS: i64 = 60_000;

/// What slots are counted for. In the order in which a task that finds several of them full stands in line.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Limit {
    /// The tasks that name a pool.
    Pool(TenantId, String),
    /// The tasks of a workflow that says how many.
    Workflow(TenantId, String),
    /// The tasks of a tenant.
    Tenant(TenantId),
    /// The tasks of a queue, of all tenants: as many as its executors can hold.
    Queue(String),
}

impl Limit {
    /// What it is a limit of: the name used in rows and answers.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Pool(..) => "pool",
            Self::Workflow(..) => "workflow",
            Self::Tenant(_) => "tenant",
            Self::Queue(_) => "queue",
        }
    }

    /// Whose it is; none where all share it.
    pub fn tenant(&self) -> Option<TenantId> {
        match self {
            Self::Pool(tenant, _) | Self::Workflow(tenant, _) | Self::Tenant(tenant) => Some(*tenant),
            Self::Queue(_) => None,
        }
    }

    /// The name of what it limits; empty for a tenant.
    pub fn name(&self) -> &str {
        match self {
            Self::Pool(_, name) | Self::Workflow(_, name) | Self::Queue(name) => name,
            Self::Tenant(_) => "",
        }
    }

    /// The limit of that kind, tenant and name.
    pub fn of(kind: &str, tenant: Option<TenantId>, name: &str) -> Option<Self> {
        match (kind, tenant) {
            ("pool", Some(tenant)) => Some(Self::Pool(tenant, name.into())),
            ("workflow", Some(tenant)) => Some(Self::Workflow(tenant, name.into())),
            ("tenant", Some(tenant)) => Some(Self::Tenant(tenant)),
            ("queue", None) => Some(Self::Queue(name.into())),
            _ => None,
        }
    }

    /// How many slots there are while nobody has said how many; none if there is no bound.
    pub fn usual(&self) -> Option<u32> {
        match self {
            Self::Pool(..) => Some(10),
            Self::Queue(_) => Some(512),
            Self::Workflow(..) | Self::Tenant(_) => None,
        }
    }

    /// Whether it may be exceeded by a few for a moment, which only lets the bus hold them instead of us.
    pub fn is_soft(&self) -> bool {
        matches!(self, Self::Queue(_))
    }
}

/// Whether a queue is served by workers elsewhere, who ask for what waits in it: it is pushed to nobody.
pub fn is_remote(queue: &str) -> bool {
    queue == "remote" || queue.starts_with("remote-")
}

/// A limit that a task needs a place of, and how many there are if its workflow says so.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Needed {
    /// The limit.
    pub limit: Limit,
    /// How many slots the task's own definition says there are.
    pub slots: Option<u32>,
}

/// A queued task that asks for a slot.
#[derive(Clone, PartialEq, Debug)]
pub struct SlotRequest {
    /// The task.
    pub key: TaskKey,
    /// The attempt that shall begin.
    pub attempt: u32,
    /// Whose it is.
    pub tenant: TenantId,
    /// The backfill whose run it belongs to, if it does to one's.
    pub backfill: Option<BackfillId>,
    /// Higher comes first within its group.
    pub priority: i32,
    /// Since when it waits.
    pub since: Instant,
    /// Whether it was queued before: it may stand in line, or have its slots granted.
    pub waited: bool,
    /// Where it needs a slot, each once and in order.
    pub needs: Vec<Needed>,
}

impl SlotRequest {
    /// With whom it takes turns.
    pub fn fairness_group(&self) -> FairnessGroup {
        FairnessGroup { tenant: self.tenant, backfill: self.backfill }
    }

    /// Its order within its group: lower first. Everybody ages alike, so it never changes while they wait.
    pub fn rank(&self) -> i64 {
        self.since.timestamp_millis() - i64::from(self.priority) * STEP_MILLISECONDS
    }
}

/// A task that gives up what it had: slots, or where it stood in line.
#[derive(Clone, PartialEq, Debug)]
pub struct SlotRelease {
    /// The task.
    pub key: TaskKey,
    /// Whether it was under way; else it was queued.
    pub holds_slots: bool,
    /// Where it had a slot, or waited for one.
    pub needs: Vec<Needed>,
}

/// What became of a task that asked for a slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Admission {
    /// It has one.
    Acquired,
    /// It stands in the line of this limit.
    Waiting(Limit),
    /// It stood in a line already, and still does.
    StillWaiting,
}

/// Who takes turns in a line: the live tasks of a tenant, or those of one of its backfills.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FairnessGroup {
    /// Whose tasks.
    pub tenant: TenantId,
    /// The backfill; none for live tasks.
    pub backfill: Option<BackfillId>,
}

/// How often a group comes in each round of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Weight {
    /// So often, if it is the tenant's live tasks.
    pub tenant: u32,
    /// So often for [`LIVE_WEIGHT`] turns of these, if it is a backfill.
    pub backfill: Option<u32>,
}

impl Weight {
    /// The weight of a tenant's live tasks.
    pub fn live(tenant: u32) -> Self {
        Self { tenant, backfill: None }
    }

    /// How many turns it has in each round; less than one where it does not come in each of them.
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

/// The id that a group's next task in a line gets, and the position of the one after it. A group that has not been
/// there for a while starts at the frontier, the id that was last given a slot: it does not come before it, or it had a
/// turn in a round whose turns of its own are over.
pub fn take_turn(tenant: TenantId, position: i64, frontier: i64, weight: Weight) -> (i64, i64) {
    let passed = i64::from(i64::from(tenant.0) < frontier % BLOCK);
    let position = position.max((block_of(frontier) + passed).saturating_mul(PARTS));
    let id = i64::from(tenant.0) + BLOCK * (position / PARTS);
    (id, position + weight.stride())
}

/// The position of a group's next task once one of its tasks has left the line without having had its turn.
pub fn return_turn(position: i64, weight: Weight) -> i64 {
    (position - weight.stride()).max(0)
}

/// The block that an id of a line lies in.
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

//! A wait queue played through without a store: which tenant gets a slot when.

use std::collections::{BTreeMap, VecDeque};

use model::wait_queue::{GroupTurns, LimitId, LimitRow, SlotRows, Waiter};
use model::{
    Admission, FairnessGroup, Instant, Limit, RunId, SlotRelease, SlotRequest, TaskIndex, TaskKey, TenantId,
    Weight,
};

use super::queues::WaitQueues;

/// The only limit there is.
const LIMIT: LimitId = 1;

/// Tasks of several tenants that need a slot of one queue.
pub struct Trial {
    queues: WaitQueues,
    /// The waiters, apart from the rows at hand: as with a database, few of them take part in a decision.
    waiting: BTreeMap<TenantId, VecDeque<Waiter>>,
    requested: u32,
}

impl Trial {
    /// A queue of `slots`, with the turns that each tenant has in a round; one for a tenant that is not given.
    pub fn new(slots: u32, weights: &BTreeMap<TenantId, u32>) -> Self {
        let limit = Limit::Queue("trial".into());
        let row = LimitRow { id: LIMIT, limit, slots: Some(slots), used: 0, waiting: 0, frontier: 0 };
        let turns = |(tenant, weight): (&TenantId, &u32)| {
            let group = FairnessGroup { tenant: *tenant, backfill: None };
            ((LIMIT, group), GroupTurns { weight: Weight::live(*weight), ..GroupTurns::default() })
        };
        let mut queues = WaitQueues::default();
        queues.add(SlotRows {
            limits: BTreeMap::from([(LIMIT, row)]),
            waiters: Vec::new(),
            groups: weights.iter().map(turns).collect(),
        });
        Self { queues, waiting: BTreeMap::new(), requested: 0 }
    }

    /// A task of a tenant requests a slot. Returns the task, and whether it gets one at once.
    pub fn request(&mut self, tenant: TenantId) -> (TaskKey, bool) {
        let key = TaskKey { run: RunId(Default::default()), task: TaskIndex(self.requested) };
        self.requested += 1;
        let (attempt, backfill, priority, since) = (1, None, 0, Instant::UNIX_EPOCH);
        let request =
            SlotRequest { key, attempt, tenant, backfill, priority, since, waited: false, needs: Vec::new() };
        let admission = self.queues.request(&request, vec![LIMIT]);
        if let Some(row) = self.queues.waiters.remove(&key) {
            self.waiting.entry(tenant).or_default().push_back(row);
        }
        (key, admission == Admission::Acquired)
    }

    /// A task releases its slot. Returns the waiters that are granted one.
    pub fn release(&mut self, key: TaskKey) -> Vec<TaskKey> {
        self.queues.release(&SlotRelease { key, holds_slots: true, needs: Vec::new() }, &[LIMIT]);
        // Only the first task of each tenant can be next.
        let firsts = self.waiting.values_mut().filter_map(VecDeque::pop_front);
        self.queues.waiters.extend(firsts.map(|row| (row.key, row)));
        self.queues.grant(Instant::UNIX_EPOCH);
        let granted: Vec<TaskKey> = self.queues.granted.drain(..).map(|granted| granted.key).collect();
        for key in &granted {
            self.queues.waiters.remove(key);
        }
        for row in std::mem::take(&mut self.queues.waiters).into_values() {
            self.waiting.entry(row.group.tenant).or_default().push_front(row);
        }
        granted
    }

    /// The tenants that have a waiting task.
    pub fn waiting(&self) -> impl Iterator<Item = TenantId> {
        self.waiting.iter().filter(|(_, queue)| !queue.is_empty()).map(|(tenant, _)| *tenant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TenantId = TenantId(1);
    const B: TenantId = TenantId(2);

    /// The tenants that are granted the next slots, in order.
    fn granted(
        trial: &mut Trial,
        first: TaskKey,
        owners: &BTreeMap<TaskKey, TenantId>,
        count: usize,
    ) -> Vec<TenantId> {
        let mut holder = first;
        let next = |_| {
            holder = trial.release(holder)[0];
            owners[&holder]
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn a_tenant_waits_for_one_task_of_another_tenant_however_many_that_one_has() {
        let mut trial = Trial::new(1, &BTreeMap::new());
        let (first, at_once) = trial.request(A);
        assert!(at_once);
        let mut owners: BTreeMap<TaskKey, TenantId> = (0..10_000).map(|_| (trial.request(A).0, A)).collect();
        owners.insert(trial.request(B).0, B);
        assert_eq!(trial.waiting().collect::<Vec<_>>(), [A, B]);
        assert_eq!(granted(&mut trial, first, &owners, 3), [A, B, A]);
    }

    #[test]
    fn a_weight_of_three_gives_three_turns_in_each_round() {
        let mut trial = Trial::new(1, &BTreeMap::from([(A, 3)]));
        let (first, _) = trial.request(A);
        let mut owners = BTreeMap::new();
        for tenant in [A, B] {
            owners.extend((0..8).map(|_| (trial.request(tenant).0, tenant)));
        }
        assert_eq!(granted(&mut trial, first, &owners, 8), [A, A, A, B, A, A, A, B]);
    }
}

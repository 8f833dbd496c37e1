//! A line played through without a store: who would be given a slot when, by the decision that both stores make.

use std::collections::{BTreeMap, VecDeque};

use model::{
    Admission, FairnessGroup, Instant, Limit, RunId, SlotRelease, SlotRequest, TaskIndex, TaskKey, TenantId,
    Weight,
};
use uuid::Uuid;

use crate::admission::{GroupTurns, LimitId, LimitRow, WaitQueues, Waiter};

/// The only limit there is.
const LIMIT: LimitId = 1;

/// Tasks of several tenants that need a place of one queue.
pub struct Trial {
    queues: WaitQueues,
    /// Who stands in line, beside the rows at hand: as in a database, few of them decide.
    waiting: BTreeMap<TenantId, VecDeque<Waiter>>,
    asked: u32,
}

impl Trial {
    /// A queue of so many slots, and how often each tenant comes in a round; once where nothing is said.
    pub fn new(slots: u32, weights: &BTreeMap<TenantId, u32>) -> Self {
        let limit = Limit::Queue("trial".into());
        let row = LimitRow { id: LIMIT, limit, slots: Some(slots), used: 0, waiting: 0, frontier: 0 };
        let turns = |(tenant, weight): (&TenantId, &u32)| {
            let group = FairnessGroup { tenant: *tenant, backfill: None };
            ((LIMIT, group), GroupTurns { weight: Weight::live(*weight), ..GroupTurns::default() })
        };
        let queues = WaitQueues {
            limits: BTreeMap::from([(LIMIT, row)]),
            groups: weights.iter().map(turns).collect(),
            ..WaitQueues::default()
        };
        Self { queues, waiting: BTreeMap::new(), asked: 0 }
    }

    /// A task of a tenant asks for a slot. Answers which task it is, and whether it has one at once.
    pub fn ask(&mut self, tenant: TenantId) -> (TaskKey, bool) {
        let key = TaskKey { run: RunId(Uuid::nil()), task: TaskIndex(self.asked) };
        self.asked += 1;
        let (attempt, backfill, priority, since) = (1, None, 0, Instant::UNIX_EPOCH);
        let ask =
            SlotRequest { key, attempt, tenant, backfill, priority, since, waited: false, needs: Vec::new() };
        let seat = self.queues.ask(&ask, vec![LIMIT]);
        if let Some(row) = self.queues.line.remove(&key) {
            self.waiting.entry(tenant).or_default().push_back(row);
        }
        (key, seat == Admission::Acquired)
    }

    /// A task gives its slot back. Answers who was given one from the line.
    pub fn leave(&mut self, key: TaskKey) -> Vec<TaskKey> {
        self.queues.leave(&SlotRelease { key, holds_slots: true, needs: Vec::new() }, &[LIMIT]);
        // The first of each tenant is all that can matter for the next place.
        let firsts = self.waiting.values_mut().filter_map(VecDeque::pop_front);
        self.queues.line.extend(firsts.map(|row| (row.key, row)));
        self.queues.grant(Instant::UNIX_EPOCH);
        let granted: Vec<TaskKey> = self.queues.granted.drain(..).map(|granted| granted.key).collect();
        for key in &granted {
            self.queues.line.remove(key);
        }
        for row in std::mem::take(&mut self.queues.line).into_values() {
            self.waiting.entry(row.group.tenant).or_default().push_front(row);
        }
        granted
    }

    /// The tenants that have a task in line.
    pub fn slot_wait(&self) -> impl Iterator<Item = TenantId> {
        self.waiting.iter().filter(|(_, line)| !line.is_empty()).map(|(tenant, _)| *tenant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TenantId = TenantId(1);
    const B: TenantId = TenantId(2);

    /// Who is given the next slots, one after the other.
    fn given(
        trial: &mut Trial,
        held: TaskKey,
        owners: &BTreeMap<TaskKey, TenantId>,
        count: usize,
    ) -> Vec<TenantId> {
        let mut held = held;
        let next = |_| {
            held = trial.leave(held)[0];
            owners[&held]
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn one_task_of_b_waits_for_one_of_a_however_many_there_are() {
        let mut trial = Trial::new(1, &BTreeMap::new());
        let (first, at_once) = trial.ask(A);
        assert!(at_once);
        let mut owners: BTreeMap<TaskKey, TenantId> = (0..10_000).map(|_| (trial.ask(A).0, A)).collect();
        owners.insert(trial.ask(B).0, B);
        assert_eq!(trial.slot_wait().collect::<Vec<_>>(), [A, B]);
        assert_eq!(given(&mut trial, first, &owners, 3), [A, B, A]);
    }

    #[test]
    fn a_weight_of_three_is_three_turns_in_each_round() {
        let mut trial = Trial::new(1, &BTreeMap::from([(A, 3)]));
        let (first, _) = trial.ask(A);
        let mut owners = BTreeMap::new();
        for tenant in [A, B] {
            owners.extend((0..8).map(|_| (trial.ask(tenant).0, tenant)));
        }
        assert_eq!(given(&mut trial, first, &owners, 8), [A, A, A, B, A, A, A, B]);
    }
}

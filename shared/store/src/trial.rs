//! A line played through without a store: who would be given a place when, by the decision that both stores make.

use std::collections::{BTreeMap, VecDeque};

use model::{Ask, Instant, Leave, Limit, Party, RunId, Seat, TaskIndex, TaskKey, TenantId, Weight};
use uuid::Uuid;

use crate::seating::{LimitId, LimitRow, LineRow, Seating, Standing};

/// The only limit there is.
const LIMIT: LimitId = 1;

/// Tasks of several tenants that need a place of one queue.
pub struct Trial {
    seating: Seating,
    /// Who stands in line, beside the rows at hand: as in a database, few of them decide.
    waiting: BTreeMap<TenantId, VecDeque<LineRow>>,
    asked: u32,
}

impl Trial {
    /// A queue of so many places, and how often each tenant comes in a round; once where nothing is said.
    pub fn new(places: u32, weights: &BTreeMap<TenantId, u32>) -> Self {
        let limit = Limit::Queue("trial".into());
        let row = LimitRow { id: LIMIT, limit, places: Some(places), used: 0, waiting: 0, frontier: 0 };
        let standing = |(tenant, weight): (&TenantId, &u32)| {
            let party = Party { tenant: *tenant, backfill: None };
            ((LIMIT, party), Standing { weight: Weight::live(*weight), ..Standing::default() })
        };
        let seating = Seating {
            limits: BTreeMap::from([(LIMIT, row)]),
            standings: weights.iter().map(standing).collect(),
            ..Seating::default()
        };
        Self { seating, waiting: BTreeMap::new(), asked: 0 }
    }

    /// A task of a tenant asks for a place. Answers which task it is, and whether it has one at once.
    pub fn ask(&mut self, tenant: TenantId) -> (TaskKey, bool) {
        let key = TaskKey { run: RunId(Uuid::nil()), task: TaskIndex(self.asked) };
        self.asked += 1;
        let (attempt, backfill, priority, since) = (1, None, 0, Instant::UNIX_EPOCH);
        let ask = Ask { key, attempt, tenant, backfill, priority, since, waited: false, needs: Vec::new() };
        let seat = self.seating.ask(&ask, vec![LIMIT]);
        if let Some(row) = self.seating.line.remove(&key) {
            self.waiting.entry(tenant).or_default().push_back(row);
        }
        (key, seat == Seat::Given)
    }

    /// A task gives its place back. Answers who was given one from the line.
    pub fn leave(&mut self, key: TaskKey) -> Vec<TaskKey> {
        self.seating.leave(&Leave { key, placed: true, needs: Vec::new() }, &[LIMIT]);
        // The first of each tenant is all that can matter for the next place.
        let firsts = self.waiting.values_mut().filter_map(VecDeque::pop_front);
        self.seating.line.extend(firsts.map(|row| (row.key, row)));
        self.seating.grant(Instant::UNIX_EPOCH);
        let granted: Vec<TaskKey> = self.seating.granted.drain(..).map(|granted| granted.key).collect();
        for key in &granted {
            self.seating.line.remove(key);
        }
        for row in std::mem::take(&mut self.seating.line).into_values() {
            self.waiting.entry(row.party.tenant).or_default().push_front(row);
        }
        granted
    }

    /// The tenants that have a task in line.
    pub fn in_line(&self) -> impl Iterator<Item = TenantId> {
        self.waiting.iter().filter(|(_, line)| !line.is_empty()).map(|(tenant, _)| *tenant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TenantId = TenantId(1);
    const B: TenantId = TenantId(2);

    /// Who is given the next places, one after the other.
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
        assert_eq!(trial.in_line().collect::<Vec<_>>(), [A, B]);
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

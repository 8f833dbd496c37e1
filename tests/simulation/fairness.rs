//! The invariant of fair turns: while a tenant waits in a wait queue, each other tenant gets at most its share of one round.
//! Turns are counted from the states of tasks, not from what the store says about turns.

use std::collections::{BTreeMap, BTreeSet};

use model::{Limit, TaskKey, TenantId};

use crate::check::{Checked, Replays, violation};
use crate::slots::Line;

/// Who held slots at the last check, and the turns since then.
#[derive(Default)]
pub(crate) struct Fairness {
    held: BTreeSet<(Limit, TaskKey, u32)>,
    /// By limit and waiting tenant: the turns of each other tenant meanwhile.
    passed_over: BTreeMap<(Limit, TenantId), BTreeMap<TenantId, u32>>,
}

impl Fairness {
    /// Checks the wait queue after a change to it.
    pub(crate) fn look(
        &mut self,
        line: Line,
        replays: &Replays,
        weights: &BTreeMap<TenantId, u32>,
    ) -> Checked {
        let tenant = |key: &TaskKey| replays[&key.run].run.tenant;
        let mut turns: BTreeMap<(Limit, TenantId), u32> = BTreeMap::new();
        for (limit, key, _) in line.held.difference(&self.held) {
            *turns.entry((limit.clone(), tenant(key))).or_default() += 1;
        }
        let waiting: BTreeSet<(Limit, TenantId)> =
            line.waiting.iter().map(|(limit, key)| (limit.clone(), tenant(key))).collect();
        // A tenant that had a turn, or no longer waits, starts from zero.
        self.passed_over.retain(|place, _| !turns.contains_key(place) && waiting.contains(place));
        for ((limit, other), count) in &turns {
            // In one round a tenant has as many turns as its weight.
            let round = weights.get(other).copied().unwrap_or(1);
            for ((_, one), passed) in self.passed_over.iter_mut().filter(|((of, _), _)| of == limit) {
                let passed = passed.entry(*other).or_default();
                *passed += count;
                if *passed > round {
                    let what = format!("{other:?} had {passed} turns of {limit:?} while {one:?} waited");
                    return violation("nobody_waits_for_more_than_a_round", what);
                }
            }
        }
        for place in waiting {
            self.passed_over.entry(place).or_default();
        }
        self.held = line.held;
        Ok(())
    }
}

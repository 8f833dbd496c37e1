//! What must hold of turns: while a tenant waits in a line, each other one has at most the turns of one round before it has
//! its next. They are counted from what becomes of the tasks, not from what the store says of turns.

use std::collections::{BTreeMap, BTreeSet};

use model::{Limit, TaskKey, TenantId};

use crate::check::{Checked, Shadows, trouble};
use crate::places::Line;

/// Who had places when somebody last looked, and who has had turns since those who wait had theirs.
#[derive(Default)]
pub(crate) struct Turns {
    held: BTreeSet<(Limit, TaskKey, u32)>,
    /// By limit and who waits there: how many turns each other one had meanwhile.
    passed_over: BTreeMap<(Limit, TenantId), BTreeMap<TenantId, u32>>,
}

impl Turns {
    /// Looks at the line after a change to it.
    pub(crate) fn look(
        &mut self,
        line: Line,
        shadows: &Shadows,
        weights: &BTreeMap<TenantId, u32>,
    ) -> Checked {
        let tenant = |key: &TaskKey| shadows[&key.run].run.tenant;
        let mut turns: BTreeMap<(Limit, TenantId), u32> = BTreeMap::new();
        for (limit, key, _) in line.held.difference(&self.held) {
            *turns.entry((limit.clone(), tenant(key))).or_default() += 1;
        }
        let waiting: BTreeSet<(Limit, TenantId)> =
            line.waiting.iter().map(|(limit, key)| (limit.clone(), tenant(key))).collect();
        // Whoever had a turn, or does not wait any more, begins anew.
        self.passed_over.retain(|place, _| !turns.contains_key(place) && waiting.contains(place));
        for ((limit, other), count) in &turns {
            // A round has as many turns of a tenant as its weight says.
            let round = weights.get(other).copied().unwrap_or(1);
            for ((_, one), passed) in self.passed_over.iter_mut().filter(|((of, _), _)| of == limit) {
                let passed = passed.entry(*other).or_default();
                *passed += count;
                if *passed > round {
                    let what = format!("{other:?} had {passed} turns of {limit:?} while {one:?} waited");
                    return trouble("nobody_waits_for_more_than_a_round", what);
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

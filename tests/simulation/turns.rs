//! What must hold of turns: while a tenant waits in a line, each other one has at most a round of turns before it has
//! its next. They are counted from what becomes of the tasks, not from what the store says of turns.

use std::collections::{BTreeMap, BTreeSet};

use model::{Limit, RunState, TaskKey, TaskState, TenantId};

use crate::check::{Checked, Shadows, trouble};
use crate::places::Line;

/// Who stood in line when somebody last looked, and who has had turns since those who wait had theirs.
#[derive(Default)]
pub(crate) struct Turns {
    line: Line,
    /// By limit and who waits there: how many turns each other one had meanwhile.
    passed_over: BTreeMap<(Limit, TenantId), BTreeMap<TenantId, u32>>,
}

impl Turns {
    /// Looks at the line after a change to it.
    pub(crate) fn look(&mut self, line: Line, shadows: &Shadows, weights: &BTreeMap<TenantId, u32>) -> Checked {
        let tenant = |key: &TaskKey| shadows[&key.run].run.tenant;
        let is_there = |line: &Line, place: &(Limit, TenantId)| {
            line.iter().any(|(key, limit)| *limit == place.0 && tenant(key) == place.1)
        };
        let gone = || self.line.iter().filter(|(key, limit)| line.get(key) != Some(limit));
        let left: BTreeSet<(Limit, TenantId)> =
            gone().map(|(key, limit)| (limit.clone(), tenant(key))).collect();
        let mut turns: BTreeMap<(Limit, TenantId), u32> = BTreeMap::new();
        for (key, limit) in gone().filter(|(key, limit)| had_a_turn(key, limit, &line, shadows)) {
            *turns.entry((limit.clone(), tenant(key))).or_default() += 1;
        }
        // Whoever had a turn, or gave it up, or does not wait any more, begins anew.
        self.passed_over.retain(|place, _| !left.contains(place) && is_there(&line, place));
        for ((limit, other), count) in &turns {
            for ((_, one), passed) in self.passed_over.iter_mut().filter(|((of, _), _)| of == limit) {
                let passed = passed.entry(*other).or_default();
                *passed += count;
                // A round has as many turns of a tenant as its weight says.
                let round = weights.get(other).copied().unwrap_or(1);
                if *passed > round {
                    let what = format!("{other:?} had {passed} turns of {limit:?} while {one:?} waited");
                    return trouble("nobody_waits_for_more_than_a_round", what);
                }
            }
        }
        for (key, limit) in &line {
            self.passed_over.entry((limit.clone(), tenant(key))).or_default();
        }
        self.line = line;
        Ok(())
    }
}

/// Whether a task that waited has its place, as far as that is sure.
fn had_a_turn(key: &TaskKey, limit: &Limit, line: &Line, shadows: &Shadows) -> bool {
    let shadow = &shadows[&key.run];
    let state = shadow.tasks.get(&key.task).map(|task| task.state);
    match line.get(key) {
        // Needs are met in this order.
        Some(now) => now > limit,
        None => state.is_some_and(|state| {
            state.is_placed() || state == TaskState::Queued && shadow.run.state != RunState::Paused
        }),
    }
}

//! What must hold of turns: while a tenant waits in a line, each other one has at most the turns of two rounds before it
//! has its next: those of the round that goes on, and those of the next. They are counted from what becomes of the tasks,
//! not from what the store says of turns. A place in the line that a task of its own gave up is a turn that the tenant let
//! go by: it waits for a round more.

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
    /// How many of its own places in the line each has given up.
    given_up: BTreeMap<(Limit, TenantId), u32>,
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
        let is_there = |line: &Line, place: &(Limit, TenantId)| {
            line.iter().any(|(key, (limit, _))| *limit == place.0 && tenant(key) == place.1)
        };
        let gone = || self.line.iter().filter(|(key, stood)| line.get(key) != Some(stood));
        let mut turns: BTreeMap<(Limit, TenantId), u32> = BTreeMap::new();
        let mut left = BTreeSet::new();
        for (key, (limit, _)) in gone() {
            let place = (limit.clone(), tenant(key));
            if had_a_turn(key, limit, &line, shadows) {
                *turns.entry(place.clone()).or_default() += 1;
            } else {
                *self.given_up.entry(place.clone()).or_default() += 1;
            }
            left.insert(place);
        }
        let round = |of: &TenantId| weights.get(of).copied().unwrap_or(1);
        // Whoever had a turn, or does not wait any more, begins anew.
        self.passed_over.retain(|place, _| !left.contains(place) && is_there(&line, place));
        for ((limit, other), count) in &turns {
            for ((_, one), passed) in self.passed_over.iter_mut().filter(|((of, _), _)| of == limit) {
                let passed = passed.entry(*other).or_default();
                *passed += count;
                // A round has as many turns of a tenant as its weight says.
                let rounds = 2 + self.given_up.get(&(limit.clone(), *one)).copied().unwrap_or_default();
                if *passed > round(other) * rounds {
                    let what = format!("{other:?} had {passed} turns of {limit:?} while {one:?} waited");
                    return trouble("nobody_waits_for_more_than_two_rounds", what);
                }
            }
        }
        for (key, (limit, _)) in &line {
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
        Some((now, _)) => now > limit,
        None => state.is_some_and(|state| {
            state.is_placed() || state == TaskState::Queued && shadow.run.state != RunState::Paused
        }),
    }
}

//! What must hold of turns: while a tenant waits in a line, each other one has at most a round of turns before it has
//! its next. They are counted from what becomes of the tasks, not from what the store says of turns. A place in the line
//! that a task of its own gave up is a turn that the tenant let go by: it waits for a round more. So it does once for
//! another one that comes meanwhile, which still has its turn in the round that goes on.

use std::collections::{BTreeMap, BTreeSet};

use model::{Limit, RunState, TaskKey, TaskState, TenantId};

use crate::check::{Checked, Shadows, trouble};
use crate::places::Line;

/// Who stood in line when somebody last looked, and who has had turns since those who wait had theirs.
#[derive(Default)]
pub(crate) struct Turns {
    line: Line,
    /// By limit and who waits there.
    passed_over: BTreeMap<(Limit, TenantId), Wait>,
    /// How many of its own places in the line each has given up, and not yet waited for.
    given_up: BTreeMap<(Limit, TenantId), u32>,
}

/// What happened since a tenant had its turn, or began to wait for it.
#[derive(Default)]
struct Wait {
    /// Who else was in the line then.
    beside: BTreeSet<TenantId>,
    /// How many turns each other one had meanwhile.
    turns: BTreeMap<TenantId, u32>,
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
            line.iter().any(|(key, limit)| *limit == place.0 && tenant(key) == place.1)
        };
        let gone = || self.line.iter().filter(|(key, limit)| line.get(key) != Some(limit));
        let mut turns: BTreeMap<(Limit, TenantId), u32> = BTreeMap::new();
        let mut left = BTreeSet::new();
        for (key, limit) in gone() {
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
        let over =
            self.passed_over.extract_if(.., |place, _| left.contains(place) || !is_there(&line, place));
        for (place, wait) in over {
            let rounds = wait.turns.iter().map(|(of, turns)| turns.saturating_sub(1) / round(of)).max();
            let given_up = self.given_up.entry(place).or_default();
            *given_up = given_up.saturating_sub(rounds.unwrap_or_default());
        }
        for ((limit, other), count) in &turns {
            for ((_, one), wait) in self.passed_over.iter_mut().filter(|((of, _), _)| of == limit) {
                let passed = wait.turns.entry(*other).or_default();
                *passed += count;
                // A round has as many turns of a tenant as its weight says.
                let came = u32::from(!wait.beside.contains(other));
                let rounds =
                    1 + came + self.given_up.get(&(limit.clone(), *one)).copied().unwrap_or_default();
                if *passed > round(other) * rounds {
                    let what = format!("{other:?} had {passed} turns of {limit:?} while {one:?} waited");
                    return trouble("nobody_waits_for_more_than_a_round", what);
                }
            }
        }
        for (key, limit) in &line {
            let beside = || line.iter().filter(|(_, of)| *of == limit).map(|(key, _)| tenant(key)).collect();
            let begins = || Wait { beside: beside(), ..Wait::default() };
            self.passed_over.entry((limit.clone(), tenant(key))).or_insert_with(begins);
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

//! The invariants of slots: the count equals the tasks that hold one, and no task waits for a free slot.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::Graph;
use model::{Limit, Needed, Run, RunState, Task, TaskKey, TaskState, TenantId, VersionId};
use store::{LimitRecord, Memory, Slots};

use crate::check::{Checked, Replays, Violation, violation};
use crate::fault_points::now;

/// How many slots tasks hold, and how many tasks wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Taken {
    used: u32,
    waiting: u32,
}

/// Who holds slots, and who waits for one.
#[derive(Default)]
pub(crate) struct Line {
    /// The tasks that hold a slot of a limit, each at its attempt.
    pub(crate) held: BTreeSet<(Limit, TaskKey, u32)>,
    /// The tasks that wait for a slot of a limit.
    pub(crate) waiting: BTreeSet<(Limit, TaskKey)>,
}

/// Checks all limits of some tenants and every task that may hold a slot. Returns who waits.
pub(crate) fn add_up(
    memory: &Memory,
    replays: &Replays,
    graphs: &BTreeMap<VersionId, Arc<Graph>>,
    tenants: &[TenantId],
) -> Result<Line, Violation> {
    let mut line = Line::default();
    for replay in replays.values() {
        let graph = &graphs[&replay.run.version];
        for task in replay.tasks.values() {
            count(memory, &replay.run, task, graph, &mut line)?;
        }
    }
    the_limits_agree(&limits(memory, tenants), line.taken())?;
    Ok(line)
}

/// The limits of some tenants, and those that all share.
pub(crate) fn limits(memory: &Memory, tenants: &[TenantId]) -> Vec<LimitRecord> {
    let all = tenants.iter().flat_map(|tenant| now(memory.limits(*tenant)).unwrap());
    let each: BTreeMap<Limit, LimitRecord> = all.map(|record| (record.limit.clone(), record)).collect();
    each.into_values().collect()
}

fn the_limits_agree(limits: &[LimitRecord], mut taken: BTreeMap<Limit, Taken>) -> Checked {
    for limit in limits {
        let there = Taken { used: limit.used, waiting: limit.waiting };
        let counted = taken.remove(&limit.limit).unwrap_or_default();
        if there != counted {
            let what = format!("of {:?} there are {there:?}, by the tasks {counted:?}", limit.limit);
            return violation("places_equal_the_tasks", what);
        }
        if limit.waiting > 0 && limit.slots.is_none_or(|slots| slots > limit.used) {
            let what =
                format!("{} wait, though {} of {:?} slots are used", limit.waiting, limit.used, limit.slots);
            return violation("nobody_waits_while_there_is_room", what);
        }
    }
    match taken.first_key_value() {
        Some((limit, taken)) => {
            violation("places_equal_the_tasks", format!("{taken:?} of {limit:?}, which is not known"))
        }
        None => Ok(()),
    }
}

impl Line {
    fn taken(&self) -> BTreeMap<Limit, Taken> {
        let mut taken: BTreeMap<Limit, Taken> = BTreeMap::new();
        self.held.iter().for_each(|(limit, ..)| taken.entry(limit.clone()).or_default().used += 1);
        self.waiting.iter().for_each(|(limit, _)| taken.entry(limit.clone()).or_default().waiting += 1);
        taken
    }
}

/// Counts the slots that a task holds, and where it waits.
fn count(memory: &Memory, run: &Run, task: &Task, graph: &Graph, whole: &mut Line) -> Checked {
    let key = TaskKey { run: run.id, task: task.index };
    let line = now(memory.slot_wait(key)).unwrap();
    let stands = task.state == TaskState::Queued && run.state != RunState::Paused;
    if line.is_some() != stands {
        let what = format!(
            "task {} of the {} run {} is {}: {line:?}",
            task.index.0,
            run.state.name(),
            run.id,
            task.state.name()
        );
        return violation("every_queued_task_waits_for_a_slot", what);
    }
    for Needed { limit: need, .. } in graph.needs(run.tenant, task.index, task.child) {
        let has_one = match &line {
            Some(line) if !line.granted && line.limit == need => {
                whole.waiting.insert((need, key));
                break; // It has not requested the later ones.
            }
            Some(_) => true,
            None => task.state.holds_slots(),
        };
        if has_one {
            whole.held.insert((need, key, task.attempt));
        }
    }
    Ok(())
}

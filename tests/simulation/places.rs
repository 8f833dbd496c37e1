//! What must hold of places: as many are taken as tasks have them, and nobody waits for what is there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::Graph;
use model::{Limit, Needed, Run, RunState, Task, TaskKey, TaskState, TenantId, VersionId};
use store::{LimitRecord, Memory, Store};

use crate::check::{Checked, Shadows, Trouble, trouble};
use crate::points::now;

/// How many places tasks have, and how many tasks stand in line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Taken {
    used: u32,
    waiting: u32,
}

/// Who has places, and who waits for one.
#[derive(Default)]
pub(crate) struct Line {
    /// The tasks that have a place of a limit, each at its attempt.
    pub(crate) held: BTreeSet<(Limit, TaskKey, u32)>,
    /// The tasks that wait for a place of one.
    pub(crate) waiting: BTreeSet<(Limit, TaskKey)>,
}

/// Looks at all limits of some tenants, and at every task that may have a place. Answers who stands in line.
pub(crate) fn add_up(
    memory: &Memory,
    shadows: &Shadows,
    graphs: &BTreeMap<VersionId, Arc<Graph>>,
    tenants: &[TenantId],
) -> Result<Line, Trouble> {
    let mut line = Line::default();
    for shadow in shadows.values() {
        let graph = &graphs[&shadow.run.version];
        for task in shadow.tasks.values() {
            count(memory, &shadow.run, task, graph, &mut line)?;
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
            return trouble("places_equal_the_tasks", what);
        }
        if limit.waiting > 0 && limit.places.is_none_or(|places| places > limit.used) {
            let what = format!(
                "{} wait, though {} of {:?} places are used",
                limit.waiting, limit.used, limit.places
            );
            return trouble("nobody_waits_while_there_is_room", what);
        }
    }
    match taken.first_key_value() {
        Some((limit, taken)) => {
            trouble("places_equal_the_tasks", format!("{taken:?} of {limit:?}, which is not known"))
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

/// Counts the places that a task has, and where it stands in line.
fn count(memory: &Memory, run: &Run, task: &Task, graph: &Graph, whole: &mut Line) -> Checked {
    let key = TaskKey { run: run.id, task: task.index };
    let line = now(memory.in_line(key)).unwrap();
    let stands = task.state == TaskState::Queued && run.state != RunState::Paused;
    if line.is_some() != stands {
        let what = format!(
            "task {} of the {} run {} is {}: {line:?}",
            task.index.0,
            run.state.name(),
            run.id,
            task.state.name()
        );
        return trouble("whoever_is_queued_stands_in_line", what);
    }
    for Needed { limit: need, .. } in graph.needs(run.tenant, task.index, task.child) {
        let has_one = match &line {
            Some(line) if !line.granted && line.limit == need => {
                whole.waiting.insert((need, key));
                break; // What comes after that it has not asked for.
            }
            Some(_) => true,
            None => task.state.is_placed(),
        };
        if has_one {
            whole.held.insert((need, key, task.attempt));
        }
    }
    Ok(())
}

//! Fan-outs: their children, which of them are released, and the end of the fan-out.
//!
//! One decision puts the fan-out to sleep and creates a row for each item; as many children as may be active are released.
//! A child that ends is counted on the fan-out's row and releases the next one: three task rows, however long the list is.
//! Once more have failed than are tolerated, children that have not started are skipped. The end of the last child is the
//! end of the fan-out; children never count for the run themselves.

use std::collections::BTreeSet;

use model::{Child, EventKind, Failure, Fan, FanOut, Task, TaskEvent, TaskIndex, TaskState, Tolerance};
use serde_json::{Value, json};

use crate::run_slice::RunSlice;
use crate::{activate, decide, propagate};

/// How many children of a fan-out without `max_parallel` are active at a time, if they need slots: it goes
/// on as they end, and others do not wait behind all of it.
const USUAL_PARALLEL: u32 = 256;
/// How many children are loaded together, where some of them had ended before their turn.
const MAX_LOADED_AHEAD: usize = 200;

/// Creates a child for each item; over nothing, the fan-out succeeds at once.
pub(crate) fn fan_out(slice: &mut RunSlice<'_>, index: TaskIndex, items: Vec<Value>) {
    let total = items.len() as u32;
    if total == 0 {
        return activate::settle_at_once(
            slice,
            index,
            &json!({"count": 0, "succeeded": 0, "failed": 0}),
            Value::Null,
        );
    }
    slice.must(index, TaskEvent::FellAsleep, EventKind::TaskFannedOut, json!({"count": total}));
    // Rows are only ever added, so the next index is their number.
    let first = TaskIndex(slice.run.counts.total());
    let fan = Fan { first, total, released: 0, ended: Default::default() };
    slice.run.counts.grew(total);
    for ((child, item), place) in fan.children().zip(items).zip(0..) {
        let place = Child { of: index, item: place };
        slice.tasks.insert(child, Task { child: Some(place), ..Task::pending(child, slice.now) });
        slice.draft.create_child(child, item);
    }
    slice.tasks.get_mut(&index).expect("it has just been moved").fan = Some(fan);
    slice.open.turn(index);
}

/// Begins the children whose turn it is. Returns the tasks whose rows are needed for that.
pub(crate) fn take_turns(slice: &mut RunSlice<'_>) -> Vec<TaskIndex> {
    let (mut missing, mut asking, mut passed) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    while let Some(index) = slice.open.next_turn() {
        if slice.tasks[&index].state != TaskState::Sleeping || slice.run.waiting || slice.is_paused() {
            continue; // Those who wait have their turn once the run is admitted or resumed.
        }
        let wanted = wanted_children(slice, index);
        if wanted.iter().any(|child| !slice.knows(*child)) {
            // Where one had ended before its turn, those after it may have, too: they are loaded together.
            let ahead =
                if passed.contains(&index) { MAX_LOADED_AHEAD.max(wanted.len()) } else { wanted.len() };
            let unknown = next_children(slice, index).filter(|child| !slice.knows(*child));
            missing.extend(unknown.take(ahead));
            asking.insert(index);
            continue;
        }
        for child in wanted {
            if take_turn(slice, index, child) {
                passed.insert(index);
            }
        }
    }
    asking.into_iter().for_each(|index| slice.open.turn(index));
    missing
}

/// A child ended: it counts for its fan-out, whose next child may have its turn, or which may have ended with it.
pub(crate) fn child_ended(slice: &mut RunSlice<'_>, index: TaskIndex, child: Child) {
    let name = slice.name(index);
    let ended = &slice.tasks[&index];
    let (state, failure) = (ended.state, ended.failure.clone());
    let parent = slice.tasks.get_mut(&child.of).expect("its row was asked for");
    let (Some(fan), TaskState::Sleeping) = (parent.fan.as_mut(), parent.state) else { return };
    fan.ended.count(state);
    let over = fan.ended.done == fan.total;
    if let (TaskState::Failed, Some(failure)) = (state, failure) {
        // The first failure is kept, to be named if the fan-out fails for it.
        let message = format!("{name}: {}", failure.message);
        parent.failure.get_or_insert(Failure { message, ..failure });
    }
    slice.draft.change(child.of);
    if over {
        conclude_fan(slice, child.of);
    } else {
        slice.open.turn(child.of);
    }
}

/// Fan-outs that wait for their children, in case a turn was missed.
pub(crate) fn turn_all(slice: &mut RunSlice<'_>) {
    let waiting = |task: &&Task| task.fan.is_some() && task.state == TaskState::Sleeping;
    let fans: BTreeSet<TaskIndex> = slice.tasks.values().filter(waiting).map(|task| task.index).collect();
    fans.into_iter().for_each(|index| slice.open.turn(index));
}

/// The children that may begin now; once too many have failed, all that are left, since none of them has to run.
fn wanted_children(slice: &RunSlice<'_>, index: TaskIndex) -> Vec<TaskIndex> {
    let Some((fan, plan)) = fan_of(slice, index) else { return Vec::new() };
    let usual = if plan.task.kind.is_engine_task() { fan.total } else { USUAL_PARALLEL };
    let cap = plan.max_parallel.unwrap_or(usual);
    let under_way = fan.released - fan.ended.done;
    let room = if is_lost(plan, &fan) { fan.total } else { cap.saturating_sub(under_way) };
    next_children(slice, index).take(room as usize).collect()
}

/// The children that have not had their turn.
fn next_children(slice: &RunSlice<'_>, index: TaskIndex) -> impl Iterator<Item = TaskIndex> + use<> {
    let fan = slice.tasks[&index].fan;
    fan.into_iter().flat_map(|fan| fan.children().skip(fan.released as usize))
}

/// Gives a child its turn. Returns whether it had ended before: then it only counts, for a fan-out that waits
/// again for others.
fn take_turn(slice: &mut RunSlice<'_>, index: TaskIndex, child: TaskIndex) -> bool {
    let Some((fan, plan)) = fan_of(slice, index) else { return false };
    let fan = Fan { released: fan.released + 1, ..fan };
    slice.tasks.get_mut(&index).expect("its fan was read just before").fan = Some(fan);
    slice.draft.change(index);
    if let Some(place) = slice.tasks[&child].child.filter(|_| slice.tasks[&child].state.is_final()) {
        child_ended(slice, child, place);
        return true;
    }
    if is_lost(plan, &fan) {
        let why = json!({"fan_out": slice.name(index)});
        slice.must(child, TaskEvent::Skipped, EventKind::TaskSkipped, why);
    } else {
        propagate::ready(slice, child);
    }
    false
}

fn conclude_fan(slice: &mut RunSlice<'_>, index: TaskIndex) {
    let Some((fan, plan)) = fan_of(slice, index) else { return };
    let (total, ended) = (fan.total, fan.ended);
    let task = &slice.tasks[&index];
    if !is_lost(plan, &fan) {
        let output = json!({"count": total, "succeeded": ended.succeeded, "failed": ended.failed});
        let (attempt, started_at) = (task.attempt, task.started_at.unwrap_or(slice.now));
        decide::succeed(slice, index, attempt, started_at, &output);
        return;
    }
    let first = task.failure.as_ref().map(|failure| format!("; {}", failure.message)).unwrap_or_default();
    let tolerated = match plan.tolerated_failures {
        Tolerance::Count(count) => count.to_string(),
        Tolerance::Percent(percent) => format!("{percent}%"),
    };
    let message = format!("{} of {total} children failed, {tolerated} tolerated{first}", ended.failed);
    decide::fail(slice, index, Failure::permanent(message));
}

fn fan_of<'g>(slice: &RunSlice<'g>, index: TaskIndex) -> Option<(Fan, &'g FanOut)> {
    let graph = slice.graph;
    Some((slice.tasks[&index].fan?, graph.spec(index).fan_out.as_ref()?))
}

fn is_lost(plan: &FanOut, fan: &Fan) -> bool {
    !plan.tolerated_failures.allows(fan.ended.failed, fan.total)
}

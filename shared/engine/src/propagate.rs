//! Propagates the end of a task to its dependants, or to the fan-out whose child it is.

use std::collections::BTreeSet;

use model::message::TaskDispatched;
use model::{EventKind, Message, TaskEvent, TaskIndex, TaskState};
use serde_json::{Value, json};

use crate::rule::{self, Verdict};
use crate::run_slice::{Need, RunSlice};
use crate::{decide, fan_out, oversee, slot};

impl<'g> RunSlice<'g> {
    /// Notifies the dependants of tasks that ended, and the dependants of those that end with them, as far as the rows here
    /// reach. Returns what is missing.
    pub fn propagate(&mut self) -> Need {
        let mut missing = BTreeSet::new();
        while let Some(ended) = self.open.next_ended() {
            let unknown: Vec<TaskIndex> =
                concerned(self, ended).into_iter().filter(|task| !self.knows(*task)).collect();
            if unknown.is_empty() {
                notify_of(self, ended);
            } else {
                missing.extend(unknown);
                self.open.block(ended);
            }
        }
        missing.extend(fan_out::take_turns(self));
        let is_open = self.open.unblock();
        if is_open && missing.is_empty() {
            // A turn ended something at once, such as the children that are not needed any more.
            return self.propagate();
        }
        Need { tasks: missing.into_iter().collect(), directives: self.open.undirected() }
    }
}

/// The tasks whose rows are needed to propagate the end of a task.
fn concerned(slice: &RunSlice<'_>, ended: TaskIndex) -> Vec<TaskIndex> {
    match slice.tasks[&ended].child {
        Some(child) => vec![child.of],
        None => {
            let dependants = slice.graph.dependants(ended);
            dependants.iter().flat_map(|task| switches_of(slice, *task).chain([*task])).collect()
        }
    }
}

fn notify_of(slice: &mut RunSlice<'_>, ended: TaskIndex) {
    match slice.tasks[&ended].child {
        Some(child) => fan_out::child_ended(slice, ended, child),
        None => slice.graph.dependants(ended).iter().for_each(|task| notify(slice, *task, ended)),
    }
}

/// Decides about a pending task by the ends of its parents so far.
pub(crate) fn consider(slice: &mut RunSlice<'_>, index: TaskIndex) {
    let task = &slice.tasks[&index];
    if task.child.is_some() {
        return; // A child waits for its turn and for nothing else.
    }
    let gated = switches_of(slice, index).any(|switch| !has_chosen(slice, switch));
    if task.state != TaskState::Pending || gated || slice.open.is_undirected(index) {
        return;
    }
    let parents = slice.graph.parents(index).len() as u32;
    match rule::judge(slice.graph.spec(index).trigger_rule, parents, task.parents) {
        Verdict::Wait => {}
        Verdict::Go => ready(slice, index),
        Verdict::Skip => slice.must(index, TaskEvent::Skipped, EventKind::TaskSkipped, Value::Null),
        Verdict::UpstreamFailed => {
            slice.must(index, TaskEvent::UpstreamFailed, EventKind::TaskUpstreamFailed, Value::Null)
        }
    }
}

/// Lets a pending task begin; one that has a condition or is an engine task waits for its directive.
pub(crate) fn ready(slice: &mut RunSlice<'_>, index: TaskIndex) {
    if slice.run.waiting || slice.is_paused() {
        return; // It is considered again once the run is admitted or resumed.
    }
    oversee::start_run(slice);
    let spec = slice.spec(index);
    if spec.when.is_some() || spec.global.is_some() || spec.kind.is_engine_task() {
        slice.open.needs_directive(index);
    } else {
        slice.apply(index, TaskEvent::Readied).expect("only pending tasks are readied");
        slot::release(slice, index);
    }
}

/// Lets a queued task be tried again.
pub(crate) fn relaunch(slice: &mut RunSlice<'_>, index: TaskIndex) {
    if slice.is_paused() {
        return; // It stays queued until the run is resumed.
    }
    if slice.spec(index).kind.is_engine_task() {
        slice.open.needs_directive(index);
    } else {
        slot::release(slice, index);
    }
}

/// Publishes the work message of a dispatched task, the first time or again. A leased task has none: it is offered instead.
pub(crate) fn dispatch(slice: &mut RunSlice<'_>, index: TaskIndex) {
    if slice.spec(index).leased {
        return;
    }
    let task = &slice.tasks[&index];
    slice.messages.derive(Message::TaskDispatched(TaskDispatched {
        key: slice.key(index),
        tenant: slice.run.tenant,
        attempt: task.attempt,
        version: slice.run.version,
        queue: slice.spec(index).queue.clone(),
        child: task.child,
        give_up_at: decide::give_up_at(slice, index),
    }));
}

/// How a parent's end counts for a task.
pub(crate) fn end_for(slice: &RunSlice<'_>, index: TaskIndex, parent: TaskIndex) -> TaskState {
    if is_passed_over(slice, parent, index) { TaskState::Skipped } else { slice.tasks[&parent].state }
}

fn notify(slice: &mut RunSlice<'_>, index: TaskIndex, parent: TaskIndex) {
    let passed_over = is_passed_over(slice, parent, index);
    let state = end_for(slice, index, parent);
    let task = slice.tasks.get_mut(&index).expect("only known dependants are notified");
    task.parents.count(state);
    slice.draft.change(index);
    // Whatever its rule says of its other parents, a branch goes on only if its switch chose it.
    if passed_over && task.state == TaskState::Pending && has_one_switch(slice, index) {
        pass_over(slice, index, parent);
    } else {
        consider(slice, index);
    }
}

/// Skips a branch that its switch did not choose.
pub(crate) fn pass_over(slice: &mut RunSlice<'_>, index: TaskIndex, switch: TaskIndex) {
    let why = json!({"switch": slice.name(switch)});
    slice.must(index, TaskEvent::Skipped, EventKind::TaskSkipped, why);
}

/// Whether a parent is a switch that succeeded and chose other branches.
pub(crate) fn is_passed_over(slice: &RunSlice<'_>, parent: TaskIndex, index: TaskIndex) -> bool {
    let chosen = || slice.chosen.get(&parent).is_some_and(|next| next.contains(&index));
    let succeeded = slice.tasks[&parent].state == TaskState::Succeeded;
    succeeded && slice.graph.is_branch(parent, index) && !chosen()
}

pub(crate) fn has_one_switch(slice: &RunSlice<'_>, index: TaskIndex) -> bool {
    switches_of(slice, index).count() == 1
}

/// The switches that name a task as one of their branches.
fn switches_of<'g>(slice: &RunSlice<'g>, index: TaskIndex) -> impl Iterator<Item = TaskIndex> + use<'g> {
    let graph = slice.graph;
    graph.parents(index).iter().copied().filter(move |parent| graph.is_branch(*parent, index))
}

/// Whether a switch has ended and its branches know. One whose row is not here ended before.
fn has_chosen(slice: &RunSlice<'_>, switch: TaskIndex) -> bool {
    let ended = slice.tasks.get(&switch).is_none_or(|task| task.state.is_final());
    ended && slice.open.is_notified(switch)
}

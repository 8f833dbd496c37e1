//! Reruns: which tasks run again, and how they are reset as if they had never begun.
//!
//! Everything that depends on a rerun task runs again, too. So the counters of rerun tasks can be derived from the
//! states of their other parents, and those of other tasks do not change. All tasks of the run are in the slice.

use std::collections::BTreeSet;

use model::run::RunEvent;
use model::task::Tally;
use model::{AttemptRecord, Child, EventKind, Fan, Task, TaskEvent, TaskIndex, TaskState};
use serde_json::{Value, json};

use crate::command::{By, Command, Operation};
use crate::run_slice::{RECHECK_AFTER, RunSlice};
use crate::{close, operate, oversee, propagate};

/// The reason with which a run is cancelled if the task that waits for it runs again.
const TAKEN_BACK: &str = "the task that started it was cleared or marked";

impl RunSlice<'_> {
    /// Remembers what a switch that has ended chose, according to its output.
    pub fn recall_choice(&mut self, switch: TaskIndex, output: &Value) {
        let names = output["next"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let next = names.filter_map(|name| self.graph.index_of(name)).collect();
        self.chosen.insert(switch, next);
    }

    /// Whether these commands rerun every task of the definition: no earlier output is needed then.
    pub fn is_rerun_by<'c>(&self, commands: impl IntoIterator<Item = &'c Command>) -> bool {
        let operations = commands.into_iter().filter_map(|command| match command {
            Command::Operate { operation, .. } => Some(operation),
            _ => None,
        });
        let rerun: BTreeSet<TaskIndex> = operations
            .flat_map(|operation| match operation {
                Operation::Retry => what_a_retry_takes_back(self).1,
                Operation::Clear(task) if self.tasks.get(task).is_some_and(|task| task.child.is_none()) => {
                    with_descendants(self, *task)
                }
                _ => BTreeSet::new(),
            })
            .collect();
        self.graph.indices().all(|task| rerun.contains(&task))
    }
}

/// The fan-outs that wait again if all tasks that failed or were cancelled are rerun, and the tasks that run again.
fn what_a_retry_takes_back(slice: &RunSlice<'_>) -> (Vec<TaskIndex>, BTreeSet<TaskIndex>) {
    use TaskState::{Cancelled, Failed, UpstreamFailed};
    let bad = |task: &&Task| matches!(task.state, Failed | UpstreamFailed | Cancelled);
    let own = slice.tasks.values().filter(|task| task.child.is_none());
    let roots: BTreeSet<TaskIndex> = own.filter(bad).map(|task| task.index).collect();
    let below = slice.graph.descendants(roots.iter().copied());
    let (fans, others): (Vec<TaskIndex>, Vec<TaskIndex>) =
        roots.into_iter().partition(|root| slice.tasks[root].fan.is_some() && !below.contains(root));
    (fans, below.into_iter().chain(others).collect())
}

/// Reruns all tasks that failed or were cancelled, with everything downstream. A fan-out that failed waits again for
/// those of its children that did not succeed.
pub(crate) fn retry(slice: &mut RunSlice<'_>, by: &By) -> bool {
    let (fans, rerun) = what_a_retry_takes_back(slice);
    if fans.is_empty() && rerun.is_empty() {
        return false;
    }
    operate::note(slice, EventKind::RunRetried, None, by, json!({}));
    for fan_out in fans {
        reopen_fan(slice, fan_out, |task| task.state != TaskState::Succeeded, by);
    }
    take_back(slice, &rerun, by);
    reconsider(slice, &rerun);
    true
}

/// Reruns a task, with everything downstream.
pub(crate) fn clear(slice: &mut RunSlice<'_>, index: TaskIndex, by: &By) -> bool {
    if let Some(place) = slice.tasks[&index].child {
        return clear_child(slice, index, place, by);
    }
    let rerun = with_descendants(slice, index);
    let begun = |task: &TaskIndex| slice.tasks[task].state != TaskState::Pending;
    if !rerun.iter().any(begun) {
        return false;
    }
    take_back(slice, &rerun, by);
    reconsider(slice, &rerun);
    true
}

fn clear_child(slice: &mut RunSlice<'_>, index: TaskIndex, place: Child, by: &By) -> bool {
    if matches!(slice.tasks[&index].state, TaskState::Pending | TaskState::Removed) {
        return false;
    }
    if slice.tasks[&place.of].state == TaskState::Sleeping {
        void(slice, index, by);
        turn_back(slice, index, place, by);
    } else {
        // It cannot succeed with children that were cancelled, or skipped because too many had failed.
        let undone = |state| matches!(state, TaskState::Cancelled | TaskState::Skipped);
        reopen_fan(slice, place.of, |task| task.index == index || undone(task.state), by);
    }
    let rerun = slice.graph.descendants([place.of]);
    take_back(slice, &rerun, by);
    reconsider(slice, &rerun);
    true
}

/// A task and all that depend on it.
pub(crate) fn with_descendants(slice: &RunSlice<'_>, index: TaskIndex) -> BTreeSet<TaskIndex> {
    let mut all = slice.graph.descendants([index]);
    all.insert(index);
    all
}

/// Resets tasks to where they had not begun. They must be tasks of the definition, with all that depend on them.
pub(crate) fn take_back(slice: &mut RunSlice<'_>, rerun: &BTreeSet<TaskIndex>, by: &By) {
    reopen_run(slice);
    for index in rerun {
        void(slice, *index, by);
    }
    rerun.iter().for_each(|index| recount_parents(slice, *index));
    recount_failures(slice);
}

/// Derives a task's counters from the states of its parents: where a run was ended from outside, nothing was propagated.
fn recount_parents(slice: &mut RunSlice<'_>, index: TaskIndex) {
    let parents = slice.graph.parents(index).iter().filter(|parent| is_propagated(slice, **parent));
    let mut tally = Tally::default();
    parents.for_each(|parent| tally.count(propagate::end_for(slice, index, *parent)));
    slice.tasks.get_mut(&index).expect("all tasks are here").parents = tally;
    slice.draft.change(index);
}

/// Lets tasks that were taken back begin, as far as they may.
pub(crate) fn reconsider(slice: &mut RunSlice<'_>, rerun: &BTreeSet<TaskIndex>) {
    for index in rerun.iter().copied() {
        let passed_over = |parent: &&TaskIndex| {
            is_propagated(slice, **parent) && propagate::is_passed_over(slice, **parent, index)
        };
        let switch = slice.graph.parents(index).iter().find(passed_over).copied();
        let pending = slice.tasks[&index].state == TaskState::Pending;
        if let Some(switch) = switch.filter(|_| pending && propagate::has_one_switch(slice, index)) {
            propagate::pass_over(slice, index, switch);
        }
    }
    rerun.iter().for_each(|index| propagate::consider(slice, *index));
}

/// Whether a task has ended and its dependants have counted it.
fn is_propagated(slice: &RunSlice<'_>, index: TaskIndex) -> bool {
    let ended = slice.tasks[&index].state.is_final();
    ended && slice.open.is_notified(index)
}

/// A run that has ended goes on. In a concurrency group it waits for its turn like any other.
fn reopen_run(slice: &mut RunSlice<'_>) {
    let Some(state) = slice.run.state.on(RunEvent::Reopened) else { return };
    slice.run.state = state;
    slice.run.started_at = None;
    slice.run.finished_at = None;
    slice.run.waiting = slice.run.concurrency_group.is_some();
    slice.recheck.at(slice.now + RECHECK_AFTER);
    oversee::set_deadline(slice);
    close::republish_concurrency_group(slice);
    if !slice.run.waiting {
        oversee::start_run(slice);
    }
}

/// Derives the run's failures and its error from the tasks that are failed now.
fn recount_failures(slice: &mut RunSlice<'_>) {
    let counts = |task: &&Task| task.child.is_none() && !slice.graph.spec(task.index).allow_failure;
    let bad = |task: &&Task| matches!(task.state, TaskState::Failed | TaskState::UpstreamFailed);
    let failures: Vec<&Task> = slice.tasks.values().filter(counts).filter(bad).collect();
    let failed = failures.iter().filter(|task| task.state == TaskState::Failed);
    let first = failed.min_by_key(|task| (task.finished_at, task.index)).map(|task| task.index);
    slice.run.failures = failures.len() as u32;
    slice.run.error = first.map(|index| close::run_error(slice, index));
}

/// Takes one task back, with whatever it has under way.
fn void(slice: &mut RunSlice<'_>, index: TaskIndex, by: &By) {
    let was = slice.tasks[&index].state;
    if matches!(was, TaskState::Pending | TaskState::Removed) {
        return;
    }
    let_go_of_work(slice, index, by);
    let_go_of_share(slice, index);
    move_back(slice, index, TaskEvent::Cleared);
    operate::note(slice, EventKind::TaskCleared, Some(index), by, json!({"was": was}));
}

/// Lets go of the attempt, the children and the run that a task has under way, and keeps the attempt's history.
pub(crate) fn let_go_of_work(slice: &mut RunSlice<'_>, index: TaskIndex, by: &By) {
    for child in children_of(slice, index) {
        oversee::cancel_child(slice, child, &by.actor, TAKEN_BACK);
        let_go_of_share(slice, child);
        move_back(slice, child, TaskEvent::Removed);
    }
    slice.tasks.get_mut(&index).expect("all tasks are here").fan = None;
    oversee::cancel_child(slice, index, &by.actor, TAKEN_BACK);
    let Task { state, attempt, worker, started_at, finished_at, failure, .. } = slice.tasks[&index].clone();
    // What waits for another try was archived when it failed.
    if attempt > slice.tasks[&index].voided && state != TaskState::UpForRetry {
        let kept = matches!(state, TaskState::Succeeded | TaskState::Failed);
        slice.draft.archive(AttemptRecord {
            task: index,
            attempt,
            state: if kept { state } else { TaskState::Cancelled },
            worker,
            started_at,
            finished_at: finished_at.unwrap_or(slice.now),
            failure: failure.filter(|_| state == TaskState::Failed),
            decision: format!("{} cleared or marked the task", by.actor),
            next_attempt_at: None,
        });
    }
}

/// A shared task is taken back: runs that wait for it are dispatched themselves, and its output is no longer reused.
fn let_go_of_share(slice: &mut RunSlice<'_>, index: TaskIndex) {
    if slice.spec(index).global.is_none() {
        return;
    }
    match slice.tasks[&index].state {
        TaskState::Sleeping | TaskState::Pending => {}
        TaskState::Queued | TaskState::Dispatched | TaskState::Running | TaskState::UpForRetry => {
            close::share_ended(slice, index, TaskState::Cancelled);
        }
        _ => slice.draft.end_share(index, false),
    }
}

/// Moves a task back to a state in which it has not ended, and drops what would have followed from its end.
fn move_back(slice: &mut RunSlice<'_>, index: TaskIndex, event: TaskEvent) {
    let task = slice.tasks.get_mut(&index).expect("all tasks are here");
    let from = task.state;
    task.on(event, slice.now).expect("the event was chosen for the state");
    slice.run.counts.moved(from, task.state);
    slice.draft.change(index);
    slice.slots.moved(index, from);
    slice.draft.withdraw(index);
    slice.chosen.remove(&index);
    slice.open.forget(index);
    if matches!(from, TaskState::Sleeping | TaskState::UpForRetry) {
        slice.timers.unset(Some(index));
        if slice.spec(index).global.is_some() {
            slice.draft.end_wait(index);
        }
    }
}

/// A fan-out that ended waits again, for these of its children. Each child has another turn; those that keep their
/// end are only counted.
fn reopen_fan(slice: &mut RunSlice<'_>, index: TaskIndex, reruns: impl Fn(&Task) -> bool, by: &By) {
    reopen_run(slice);
    let was = slice.tasks[&index].state;
    for child in children_of(slice, index) {
        slice.open.forget_end(child);
        if reruns(&slice.tasks[&child]) {
            void(slice, child, by);
        }
    }
    move_back(slice, index, TaskEvent::Reopened);
    recount_parents(slice, index);
    operate::note(slice, EventKind::TaskCleared, Some(index), by, json!({"was": was, "reopened": true}));
    let task = slice.tasks.get_mut(&index).expect("it has just been moved");
    task.fan = task.fan.map(|fan| Fan { released: 0, ended: Tally::default(), ..fan });
    slice.open.turn(index);
}

/// Reruns a child of a fan-out that still waits. Children after it that were skipped, perhaps since too many had
/// failed, have their turn again.
fn turn_back(slice: &mut RunSlice<'_>, index: TaskIndex, place: Child, by: &By) {
    let Some(fan) = slice.tasks[&place.of].fan.filter(|fan| place.item < fan.released) else { return };
    let mut turned: Vec<TaskIndex> = fan.children().take(fan.released as usize).collect();
    let idle =
        |child: &TaskIndex| matches!(slice.tasks[child].state, TaskState::Skipped | TaskState::Pending);
    let busy = turned.iter().rposition(|child| !idle(child)).unwrap_or(0).max(place.item as usize);
    turned.split_off(busy + 1).into_iter().for_each(|child| void(slice, child, by));
    let mut ended = Tally::default();
    let counted = turned.iter().filter(|child| is_propagated(slice, **child));
    counted.for_each(|child| ended.count(slice.tasks[child].state));
    let task = slice.tasks.get_mut(&place.of).expect("all tasks are here");
    task.failure = None;
    task.fan = Some(Fan { released: turned.len() as u32, ended, ..fan });
    slice.draft.change(place.of);
    slice.open.turn(place.of);
    propagate::ready(slice, index);
}

fn children_of(slice: &RunSlice<'_>, index: TaskIndex) -> Vec<TaskIndex> {
    slice.tasks[&index].fan.into_iter().flat_map(|fan| fan.children()).collect()
}

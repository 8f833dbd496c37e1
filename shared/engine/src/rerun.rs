//! Reruns: which tasks run again, and what it takes to make it as if they had never begun.
//!
//! Whatever depends on a rerun task runs again, too. So the counters of rerun tasks can be derived from
//! how their other parents stand, and nobody else's change. All tasks of the run are at hand here.

use std::collections::BTreeSet;

use model::change::Recheck;
use model::run::RunEvent;
use model::task::Tally;
use model::{AttemptRecord, Child, EventKind, Fan, Task, TaskEvent, TaskIndex, TaskState};
use serde_json::{Value, json};

use crate::command::{By, Command, Operation};
use crate::run_slice::{RECHECK_AFTER, RunSlice};

/// Why a run ends that a task started and waited for.
const TAKEN_BACK: &str = "the task that started it was cleared or marked";

impl RunSlice<'_> {
    /// Remembers what a switch that has ended chose, as its output tells it.
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
        let anew: BTreeSet<TaskIndex> = operations
            .flat_map(|operation| match operation {
                Operation::Retry => self.what_a_retry_takes_back().1,
                Operation::Clear(task) if self.tasks.get(task).is_some_and(|task| task.child.is_none()) => {
                    self.with_descendants(*task)
                }
                _ => BTreeSet::new(),
            })
            .collect();
        self.graph.indices().all(|task| anew.contains(&task))
    }

    /// Which fan-outs wait again if whatever failed or was cancelled is rerun, and which tasks run again.
    fn what_a_retry_takes_back(&self) -> (Vec<TaskIndex>, BTreeSet<TaskIndex>) {
        use TaskState::{Cancelled, Failed, UpstreamFailed};
        let bad = |task: &&Task| matches!(task.state, Failed | UpstreamFailed | Cancelled);
        let own = self.tasks.values().filter(|task| task.child.is_none());
        let roots: BTreeSet<TaskIndex> = own.filter(bad).map(|task| task.index).collect();
        let below = self.graph.descendants(roots.iter().copied());
        let (fans, others): (Vec<TaskIndex>, Vec<TaskIndex>) =
            roots.into_iter().partition(|root| self.tasks[root].fan.is_some() && !below.contains(root));
        (fans, below.into_iter().chain(others).collect())
    }

    /// Reruns whatever failed or was cancelled, with everything downstream. A fan-out that failed waits again
    /// for those of its children that did not succeed.
    pub(crate) fn retry(&mut self, by: &By) -> bool {
        let (fans, anew) = self.what_a_retry_takes_back();
        if fans.is_empty() && anew.is_empty() {
            return false;
        }
        self.note(EventKind::RunRetried, None, by, json!({}));
        for fan_out in fans {
            self.reopen_fan(fan_out, |task| task.state != TaskState::Succeeded, by);
        }
        self.take_back(&anew, by);
        self.reconsider(&anew);
        true
    }

    /// Reruns a task, with everything downstream.
    pub(crate) fn clear(&mut self, index: TaskIndex, by: &By) -> bool {
        if let Some(place) = self.tasks[&index].child {
            return self.clear_child(index, place, by);
        }
        let anew = self.with_descendants(index);
        let begun = |task: &TaskIndex| self.tasks[task].state != TaskState::Pending;
        if !anew.iter().any(begun) {
            return false;
        }
        self.take_back(&anew, by);
        self.reconsider(&anew);
        true
    }

    fn clear_child(&mut self, index: TaskIndex, place: Child, by: &By) -> bool {
        if matches!(self.tasks[&index].state, TaskState::Pending | TaskState::Removed) {
            return false;
        }
        if self.tasks[&place.of].state == TaskState::Sleeping {
            self.void(index, by);
            self.turn_back(index, place, by);
        } else {
            // It cannot end well over children that were cancelled, or not done since too many had failed.
            let undone = |state| matches!(state, TaskState::Cancelled | TaskState::Skipped);
            self.reopen_fan(place.of, |task| task.index == index || undone(task.state), by);
        }
        let anew = self.graph.descendants([place.of]);
        self.take_back(&anew, by);
        self.reconsider(&anew);
        true
    }

    /// A task and all that depends on it.
    pub(crate) fn with_descendants(&self, index: TaskIndex) -> BTreeSet<TaskIndex> {
        let mut all = self.graph.descendants([index]);
        all.insert(index);
        all
    }

    /// Takes tasks back to where they had not begun. They must be of the definition, with all that depends on them.
    pub(crate) fn take_back(&mut self, anew: &BTreeSet<TaskIndex>, by: &By) {
        self.reopen_run();
        for index in anew {
            self.void(*index, by);
        }
        anew.iter().for_each(|index| self.recount_parents(*index));
        self.recount_failures();
    }

    /// What a task knows of its parents follows from how they stand: where a run ended from outside, nobody was told.
    fn recount_parents(&mut self, index: TaskIndex) {
        let parents = self.graph.parents(index).iter().filter(|parent| self.is_told(**parent));
        let mut tally = Tally::default();
        parents.for_each(|parent| tally.count(self.end_for(index, *parent)));
        self.tasks.get_mut(&index).expect("all tasks are here").parents = tally;
        self.changed.insert(index);
    }

    /// Lets tasks that were taken back begin, as far as they may.
    pub(crate) fn reconsider(&mut self, anew: &BTreeSet<TaskIndex>) {
        for index in anew.iter().copied() {
            let passed_over =
                |parent: &&TaskIndex| self.is_told(**parent) && self.is_passed_over(**parent, index);
            let switch = self.graph.parents(index).iter().find(passed_over).copied();
            let pending = self.tasks[&index].state == TaskState::Pending;
            if let Some(switch) = switch.filter(|_| pending && self.has_one_switch(index)) {
                self.pass_over(index, switch);
            }
        }
        anew.iter().for_each(|index| self.consider(*index));
    }

    /// Whether a task has ended and those who depend on it know.
    fn is_told(&self, index: TaskIndex) -> bool {
        let ended = self.tasks[&index].state.is_final();
        ended && !self.ended.contains(&index) && !self.untold.contains(&index)
    }

    /// A run that has ended goes on. In a group it waits for its turn like any other.
    fn reopen_run(&mut self) {
        let Some(state) = self.run.state.on(RunEvent::Reopened) else { return };
        self.run.state = state;
        self.run.started_at = None;
        self.run.finished_at = None;
        self.run.waiting = self.run.concurrency_group.is_some();
        self.recheck = Recheck::At(self.now + RECHECK_AFTER);
        self.set_deadline();
        self.announcements.extend(self.concurrency_group());
        if !self.run.waiting {
            self.start_run();
        }
    }

    /// What the run says of failures follows from the tasks that stand as failed now.
    fn recount_failures(&mut self) {
        let counts = |task: &&Task| task.child.is_none() && !self.graph.spec(task.index).allow_failure;
        let bad = |task: &&Task| matches!(task.state, TaskState::Failed | TaskState::UpstreamFailed);
        let failures: Vec<&Task> = self.tasks.values().filter(counts).filter(bad).collect();
        let failed = failures.iter().filter(|task| task.state == TaskState::Failed);
        let first = failed.min_by_key(|task| (task.finished_at, task.index)).map(|task| task.index);
        self.run.failures = failures.len() as u32;
        self.run.error = first.map(|index| self.complaint(index));
    }

    /// Takes one task back, with whatever it has under way.
    fn void(&mut self, index: TaskIndex, by: &By) {
        let was = self.tasks[&index].state;
        if matches!(was, TaskState::Pending | TaskState::Removed) {
            return;
        }
        self.let_go_of_work(index, by);
        self.let_go_of_share(index);
        self.move_back(index, TaskEvent::Cleared);
        self.note(EventKind::TaskCleared, Some(index), by, json!({"was": was}));
    }

    /// Lets go of the attempt, the children and the run that a task has under way, and keeps the attempt's history.
    pub(crate) fn let_go_of_work(&mut self, index: TaskIndex, by: &By) {
        for child in self.children_of(index) {
            self.cancel_child(child, &by.actor, TAKEN_BACK);
            self.let_go_of_share(child);
            self.move_back(child, TaskEvent::Removed);
        }
        self.tasks.get_mut(&index).expect("all tasks are here").fan = None;
        self.cancel_child(index, &by.actor, TAKEN_BACK);
        let Task { state, attempt, worker, started_at, finished_at, failure, .. } =
            self.tasks[&index].clone();
        // What waits for another try was archived when it failed.
        if attempt > self.tasks[&index].voided && state != TaskState::UpForRetry {
            let kept = matches!(state, TaskState::Succeeded | TaskState::Failed);
            self.attempts.push(AttemptRecord {
                task: index,
                attempt,
                state: if kept { state } else { TaskState::Cancelled },
                worker,
                started_at,
                finished_at: finished_at.unwrap_or(self.now),
                failure: failure.filter(|_| state == TaskState::Failed),
                decision: format!("{} cleared or marked the task", by.actor),
            });
        }
    }

    /// Runs that wait for a shared task that is taken back must find another way, and what it delivered serves nobody
    /// any more.
    fn let_go_of_share(&mut self, index: TaskIndex) {
        if self.spec(index).global.is_none() {
            return;
        }
        match self.tasks[&index].state {
            TaskState::Sleeping | TaskState::Pending => {}
            TaskState::Queued | TaskState::Dispatched | TaskState::Running | TaskState::UpForRetry => {
                self.share_ended(index, TaskState::Cancelled);
            }
            _ => self.shares_ended.push((index, false)),
        }
    }

    /// Moves a task to where it has not ended, and forgets what was to follow from how it stood.
    fn move_back(&mut self, index: TaskIndex, event: TaskEvent) {
        let task = self.tasks.get_mut(&index).expect("all tasks are here");
        let from = task.state;
        task.on(event, self.now).expect("the state was looked at just before");
        self.run.counts.moved(from, task.state);
        self.changed.insert(index);
        // Whatever place it had, or asked for just now, it has or wants no more.
        self.before.entry(index).or_insert(from);
        self.asking.remove(&index);
        self.withdrawn.insert(index);
        self.outputs.retain(|(task, _)| *task != index);
        self.chosen.remove(&index);
        self.ended.retain(|task| *task != index);
        self.untold.retain(|task| *task != index);
        self.undirected.remove(&index);
        self.turning.remove(&index);
        if matches!(from, TaskState::Sleeping | TaskState::UpForRetry) {
            self.unset_timers(Some(index));
            if self.spec(index).global.is_some() {
                self.waits_over.push(index);
            }
        }
    }

    /// A fan-out that ended waits again, for these of its children. Each child has another turn; those that stay as
    /// they ended only count.
    fn reopen_fan(&mut self, index: TaskIndex, anew: impl Fn(&Task) -> bool, by: &By) {
        self.reopen_run();
        let was = self.tasks[&index].state;
        for child in self.children_of(index) {
            self.ended.retain(|task| *task != child);
            if anew(&self.tasks[&child]) {
                self.void(child, by);
            }
        }
        self.move_back(index, TaskEvent::Reopened);
        self.recount_parents(index);
        self.note(EventKind::TaskCleared, Some(index), by, json!({"was": was, "reopened": true}));
        let task = self.tasks.get_mut(&index).expect("it has just been moved");
        task.fan = task.fan.map(|fan| Fan { released: 0, ended: Tally::default(), ..fan });
        self.turning.insert(index);
    }

    /// Reruns a child of a fan-out that still waits. Those after it that were skipped, perhaps since too many
    /// had failed, have their turn again.
    fn turn_back(&mut self, index: TaskIndex, place: Child, by: &By) {
        let Some(fan) = self.tasks[&place.of].fan.filter(|fan| place.item < fan.released) else { return };
        let mut turned: Vec<TaskIndex> = fan.children().take(fan.released as usize).collect();
        let idle =
            |child: &TaskIndex| matches!(self.tasks[child].state, TaskState::Skipped | TaskState::Pending);
        let busy = turned.iter().rposition(|child| !idle(child)).unwrap_or(0).max(place.item as usize);
        turned.split_off(busy + 1).into_iter().for_each(|child| self.void(child, by));
        let mut ended = Tally::default();
        let told = turned.iter().filter(|child| self.is_told(**child));
        told.for_each(|child| ended.count(self.tasks[child].state));
        let task = self.tasks.get_mut(&place.of).expect("all tasks are here");
        task.failure = None;
        task.fan = Some(Fan { released: turned.len() as u32, ended, ..fan });
        self.changed.insert(place.of);
        self.turning.insert(place.of);
        self.ready(index);
    }

    fn children_of(&self, index: TaskIndex) -> Vec<TaskIndex> {
        self.tasks[&index].fan.into_iter().flat_map(|fan| fan.children()).collect()
    }
}

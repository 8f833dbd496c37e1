//! Telling those who wait: dependants of a task that ended, and fan-outs of their children.

use std::collections::BTreeSet;

use model::message::TaskDispatched;
use model::{EventKind, Message, TaskEvent, TaskIndex, TaskState};
use serde_json::{Value, json};

use crate::rule::{self, Verdict};
use crate::run_slice::{Need, RunSlice};

impl<'g> RunSlice<'g> {
    /// Tells dependants of what ended, and they theirs, as far as the rows here reach. Says what is missing.
    pub fn propagate(&mut self) -> Need {
        let mut missing = BTreeSet::new();
        while let Some(ended) = self.ended.pop() {
            let unknown: Vec<TaskIndex> =
                self.concerned(ended).into_iter().filter(|task| !self.knows(*task)).collect();
            if unknown.is_empty() {
                self.tell_of(ended);
            } else {
                missing.extend(unknown);
                self.untold.push(ended);
            }
        }
        self.ended = std::mem::take(&mut self.untold);
        missing.extend(self.take_turns());
        let open = !self.ended.is_empty() && missing.is_empty();
        if open {
            // A turn ended something at once, such as the children that are not needed any more.
            return self.propagate();
        }
        Need { tasks: missing.into_iter().collect(), directives: self.undirected.iter().copied().collect() }
    }

    /// Whose rows are needed to tell of a task that ended.
    fn concerned(&self, ended: TaskIndex) -> Vec<TaskIndex> {
        match self.tasks[&ended].child {
            Some(child) => vec![child.of],
            None => {
                let dependants = self.graph.dependants(ended);
                dependants.iter().flat_map(|task| self.switches_of(*task).chain([*task])).collect()
            }
        }
    }

    fn tell_of(&mut self, ended: TaskIndex) {
        match self.tasks[&ended].child {
            Some(child) => self.child_ended(ended, child),
            None => self.graph.dependants(ended).iter().for_each(|task| self.tell(*task, ended)),
        }
    }

    /// Judges a pending task by what became of its parents so far.
    pub(crate) fn consider(&mut self, index: TaskIndex) {
        let task = &self.tasks[&index];
        if task.child.is_some() {
            return; // A child waits for its turn and for nothing else.
        }
        let gated = self.switches_of(index).any(|switch| !self.has_chosen(switch));
        if task.state != TaskState::Pending || gated || self.undirected.contains(&index) {
            return;
        }
        let parents = self.graph.parents(index).len() as u32;
        match rule::judge(self.graph.spec(index).trigger_rule, parents, task.parents) {
            Verdict::Wait => {}
            Verdict::Go => self.ready(index),
            Verdict::Skip => self.must(index, TaskEvent::Skipped, EventKind::TaskSkipped, Value::Null),
            Verdict::UpstreamFailed => {
                self.must(index, TaskEvent::UpstreamFailed, EventKind::TaskUpstreamFailed, Value::Null)
            }
        }
    }

    /// Lets a pending task begin; one that has a condition or is an engine task waits for its directive.
    pub(crate) fn ready(&mut self, index: TaskIndex) {
        if self.run.waiting || self.is_paused() {
            return; // It is considered again once the run is admitted or resumed.
        }
        self.start_run();
        let spec = self.spec(index);
        if spec.when.is_some() || spec.global.is_some() || spec.kind.is_engine_task() {
            self.undirected.insert(index);
        } else {
            self.apply(index, TaskEvent::Readied).expect("only pending tasks are readied");
            self.release(index);
        }
    }

    /// Lets a queued task be tried again.
    pub(crate) fn relaunch(&mut self, index: TaskIndex) {
        if self.is_paused() {
            return; // It stays queued until the run is resumed.
        }
        if self.spec(index).kind.is_engine_task() {
            self.undirected.insert(index);
        } else {
            self.release(index);
        }
    }

    /// Says (again) that a dispatched task's work is to be done.
    pub(crate) fn announce(&mut self, index: TaskIndex) {
        let task = &self.tasks[&index];
        self.announcements.push(Message::TaskDispatched(TaskDispatched {
            key: self.key(index),
            tenant: self.run.tenant,
            attempt: task.attempt,
            version: self.run.version,
            queue: self.spec(index).queue.clone(),
            child: task.child,
            give_up_at: self.give_up_at(index),
        }));
    }

    /// How a parent's end counts for a task.
    pub(crate) fn end_for(&self, index: TaskIndex, parent: TaskIndex) -> TaskState {
        if self.is_passed_over(parent, index) { TaskState::Skipped } else { self.tasks[&parent].state }
    }

    fn tell(&mut self, index: TaskIndex, parent: TaskIndex) {
        let passed_over = self.is_passed_over(parent, index);
        let state = self.end_for(index, parent);
        let task = self.tasks.get_mut(&index).expect("only known dependants are notified");
        task.parents.count(state);
        self.changed.insert(index);
        // Whatever its rule says of its other parents, a branch goes on only if its switch chose it.
        if passed_over && task.state == TaskState::Pending && self.has_one_switch(index) {
            self.pass_over(index, parent);
        } else {
            self.consider(index);
        }
    }

    /// Skips a branch that its switch did not choose.
    pub(crate) fn pass_over(&mut self, index: TaskIndex, switch: TaskIndex) {
        let why = json!({"switch": self.name(switch)});
        self.must(index, TaskEvent::Skipped, EventKind::TaskSkipped, why);
    }

    /// Whether a parent is a switch that succeeded and chose other branches.
    pub(crate) fn is_passed_over(&self, parent: TaskIndex, index: TaskIndex) -> bool {
        let chosen = || self.chosen.get(&parent).is_some_and(|next| next.contains(&index));
        let succeeded = self.tasks[&parent].state == TaskState::Succeeded;
        succeeded && self.graph.is_branch(parent, index) && !chosen()
    }

    pub(crate) fn has_one_switch(&self, index: TaskIndex) -> bool {
        self.switches_of(index).count() == 1
    }

    /// The switches that name a task as one of their branches.
    fn switches_of(&self, index: TaskIndex) -> impl Iterator<Item = TaskIndex> + use<'g> {
        let graph = self.graph;
        graph.parents(index).iter().copied().filter(move |parent| graph.is_branch(*parent, index))
    }

    /// Whether a switch has ended and its branches know. One whose row is not here ended before.
    fn has_chosen(&self, switch: TaskIndex) -> bool {
        let ended = self.tasks.get(&switch).is_none_or(|task| task.state.is_final());
        ended && !self.ended.contains(&switch) && !self.untold.contains(&switch)
    }
}

//! The parts of a slice: what still follows, what changed, and what to write about slots, timers and messages.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use model::change::Recheck;
use model::{
    AttemptRecord, Changes, Event, Instant, Message, Offer, Run, Signal, Task, TaskIndex, TaskState, Timer,
    TimerKind,
};
use serde_json::Value;

/// The consequences that still follow from the decisions made so far.
#[derive(Debug, Default)]
pub(crate) struct OpenWork {
    /// Tasks that ended and whose dependants are not notified yet.
    ended: Vec<TaskIndex>,
    /// Those of them whose dependants' rows are missing.
    blocked: Vec<TaskIndex>,
    /// Tasks that wait for their directive.
    undirected: BTreeSet<TaskIndex>,
    /// Fan-outs whose next children may start.
    turning: BTreeSet<TaskIndex>,
}

impl OpenWork {
    pub(crate) fn end(&mut self, task: TaskIndex) {
        self.ended.push(task);
    }

    pub(crate) fn next_ended(&mut self) -> Option<TaskIndex> {
        self.ended.pop()
    }

    /// Postpones notifying the dependants of a task until their rows are loaded.
    pub(crate) fn block(&mut self, ended: TaskIndex) {
        self.blocked.push(ended);
    }

    /// Takes up the postponed tasks again. Returns whether any task has dependants to notify.
    pub(crate) fn unblock(&mut self) -> bool {
        self.ended.append(&mut self.blocked);
        !self.ended.is_empty()
    }

    /// Whether the dependants of a task that ended are notified.
    pub(crate) fn is_notified(&self, ended: TaskIndex) -> bool {
        !self.ended.contains(&ended) && !self.blocked.contains(&ended)
    }

    /// Leaves the dependants of a task as they are.
    pub(crate) fn forget_end(&mut self, task: TaskIndex) {
        self.ended.retain(|ended| *ended != task);
        self.blocked.retain(|ended| *ended != task);
    }

    pub(crate) fn needs_directive(&mut self, task: TaskIndex) {
        self.undirected.insert(task);
    }

    pub(crate) fn directed(&mut self, task: TaskIndex) {
        self.undirected.remove(&task);
    }

    pub(crate) fn is_undirected(&self, task: TaskIndex) -> bool {
        self.undirected.contains(&task)
    }

    pub(crate) fn undirected(&self) -> Vec<TaskIndex> {
        self.undirected.iter().copied().collect()
    }

    pub(crate) fn drop_directives(&mut self) {
        self.undirected.clear();
    }

    pub(crate) fn turn(&mut self, fan_out: TaskIndex) {
        self.turning.insert(fan_out);
    }

    pub(crate) fn next_turn(&mut self) -> Option<TaskIndex> {
        self.turning.pop_first()
    }

    /// Drops everything that would follow for a task.
    pub(crate) fn forget(&mut self, task: TaskIndex) {
        self.forget_end(task);
        self.undirected.remove(&task);
        self.turning.remove(&task);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ended.is_empty() && self.undirected.is_empty() && self.turning.is_empty()
    }
}

/// The slots that tasks request, give up or no longer need.
#[derive(Debug, Default)]
pub(crate) struct SlotDemand {
    requested: BTreeSet<TaskIndex>,
    /// Queued tasks that leave their wait queue although they stay queued.
    leaving: BTreeSet<TaskIndex>,
    /// The states that tasks had before they moved.
    before: BTreeMap<TaskIndex, TaskState>,
}

impl SlotDemand {
    /// Notes that a task moved: whatever it requested, it must request again.
    pub(crate) fn moved(&mut self, task: TaskIndex, from: TaskState) {
        self.before.entry(task).or_insert(from);
        self.requested.remove(&task);
    }

    pub(crate) fn request(&mut self, task: TaskIndex) {
        self.requested.insert(task);
    }

    pub(crate) fn answered(&mut self, task: TaskIndex) {
        self.requested.remove(&task);
    }

    pub(crate) fn leave(&mut self, task: TaskIndex) {
        self.leaving.insert(task);
    }

    pub(crate) fn drop_requests(&mut self) {
        self.requested.clear();
    }

    pub(crate) fn requested(&self) -> impl Iterator<Item = TaskIndex> {
        self.requested.iter().copied()
    }

    pub(crate) fn leaving(&self) -> impl Iterator<Item = TaskIndex> {
        self.leaving.iter().copied()
    }

    /// The state that a task had before it moved; none if it did not move.
    pub(crate) fn before(&self, task: TaskIndex) -> Option<TaskState> {
        self.before.get(&task).copied()
    }

    /// The tasks that moved, with their states before.
    pub(crate) fn moves(&self) -> impl Iterator<Item = (TaskIndex, TaskState)> {
        self.before.iter().map(|(task, state)| (*task, *state))
    }
}

/// The rows that a decision writes, besides timers and messages.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    changed: BTreeSet<TaskIndex>,
    new_tasks: BTreeSet<TaskIndex>,
    items: Vec<(TaskIndex, Value)>,
    outputs: Vec<(TaskIndex, Value)>,
    /// Tasks whose stored output no longer counts.
    withdrawn: BTreeSet<TaskIndex>,
    attempts: Vec<AttemptRecord>,
    events: Vec<Event>,
    kept_signals: Vec<Signal>,
    taken_signals: Vec<String>,
    shares_ended: Vec<(TaskIndex, bool)>,
    waits_over: Vec<TaskIndex>,
}

impl Draft {
    pub(crate) fn change(&mut self, task: TaskIndex) {
        self.changed.insert(task);
    }

    pub(crate) fn create(&mut self, task: TaskIndex) {
        self.new_tasks.insert(task);
    }

    pub(crate) fn create_child(&mut self, child: TaskIndex, item: Value) {
        self.new_tasks.insert(child);
        self.items.push((child, item));
    }

    pub(crate) fn items(&self) -> &[(TaskIndex, Value)] {
        &self.items
    }

    /// Stores a task's output; null stores none.
    pub(crate) fn deliver(&mut self, task: TaskIndex, output: &Value) {
        if !output.is_null() {
            self.outputs.push((task, output.clone()));
        }
    }

    pub(crate) fn outputs(&self) -> &[(TaskIndex, Value)] {
        &self.outputs
    }

    pub(crate) fn withdraw(&mut self, task: TaskIndex) {
        self.withdrawn.insert(task);
        self.outputs.retain(|(delivered, _)| *delivered != task);
    }

    pub(crate) fn has_withdrawn(&self, task: TaskIndex) -> bool {
        self.withdrawn.contains(&task)
    }

    pub(crate) fn archive(&mut self, attempt: AttemptRecord) {
        self.attempts.push(attempt);
    }

    pub(crate) fn record(&mut self, event: Event) {
        self.events.push(event);
    }

    pub(crate) fn events(&self) -> &[Event] {
        &self.events
    }

    pub(crate) fn last_event(&mut self) -> &mut Event {
        self.events.last_mut().expect("an event was recorded")
    }

    /// Keeps a signal for the first task that will wait for it. A later one of the same name replaces it.
    pub(crate) fn keep_signal(&mut self, signal: Signal) {
        self.kept_signals.retain(|kept| kept.name != signal.name);
        self.kept_signals.push(signal);
    }

    /// Takes back a signal that was kept in this slice.
    pub(crate) fn take_kept_signal(&mut self, name: &str) -> Option<Value> {
        let kept = self.kept_signals.iter().position(|kept| kept.name == name)?;
        Some(self.kept_signals.remove(kept).payload)
    }

    /// Takes a stored signal. Returns whether it was still there.
    pub(crate) fn take_signal(&mut self, name: &str) -> bool {
        let is_there = !self.taken_signals.iter().any(|taken| taken == name);
        if is_there {
            self.taken_signals.push(name.to_owned());
        }
        is_there
    }

    pub(crate) fn end_share(&mut self, task: TaskIndex, succeeded: bool) {
        self.shares_ended.push((task, succeeded));
    }

    /// A task that was cleared executes its shared work again: the share has not ended after all.
    pub(crate) fn resume_share(&mut self, task: TaskIndex) {
        self.shares_ended.retain(|(ended, _)| *ended != task);
    }

    pub(crate) fn end_wait(&mut self, task: TaskIndex) {
        self.waits_over.push(task);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.new_tasks.is_empty() && self.events.is_empty()
    }

    /// The rows to write.
    pub(crate) fn into_changes(
        self,
        run: Run,
        mut tasks: BTreeMap<TaskIndex, Task>,
        timers: TimerChanges,
        (offers, withdrawn_offers): (Vec<Offer>, Vec<TaskIndex>),
        outbox: Vec<Message>,
        recheck: Recheck,
    ) -> Changes {
        Changes {
            new_tasks: self.new_tasks.iter().filter_map(|index| tasks.remove(index)).collect(),
            items: self.items,
            // New tasks are taken out just before.
            tasks: self.changed.iter().filter_map(|index| tasks.remove(index)).collect(),
            withdrawn: self.withdrawn.into_iter().collect(),
            outputs: self.outputs,
            attempts: latest(self.attempts),
            events: self.events,
            timers: timers.set.into_values().collect(),
            unset_timers: timers.unset.into_iter().collect(),
            kept_signals: self.kept_signals,
            taken_signals: self.taken_signals,
            shares_ended: self.shares_ended,
            waits_over: self.waits_over,
            offers,
            withdrawn_offers,
            outbox,
            recheck,
            run,
        }
    }
}

/// Of several records of one attempt, the last.
fn latest(attempts: Vec<AttemptRecord>) -> Vec<AttemptRecord> {
    let by_attempt: BTreeMap<(TaskIndex, u32), AttemptRecord> =
        attempts.into_iter().map(|record| ((record.task, record.attempt), record)).collect();
    by_attempt.into_values().collect()
}

/// Timers to set, and the tasks or the run whose timers are unset before.
#[derive(Debug, Default)]
pub(crate) struct TimerChanges {
    set: BTreeMap<(Option<TaskIndex>, TimerKind), Timer>,
    unset: BTreeSet<Option<TaskIndex>>,
}

impl TimerChanges {
    pub(crate) fn set(&mut self, timer: Timer) {
        self.set.insert((timer.task, timer.kind), timer);
    }

    /// Unsets all timers of a task, or the run's own.
    pub(crate) fn unset(&mut self, owner: Option<TaskIndex>) {
        self.unset.insert(owner);
        self.set.retain(|(task, _), _| *task != owner);
    }

    /// When the first of the timers set here is due.
    pub(crate) fn first(&self) -> Option<Instant> {
        self.set.values().map(|timer| timer.wake_at).min()
    }
}

/// Messages to publish after the commit.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    outbox: Vec<Message>,
    derived: Vec<Message>,
}

impl Messages {
    /// Adds a message that follows from no row: it is written to the outbox.
    pub(crate) fn store(&mut self, message: Message) {
        self.outbox.push(message);
    }

    /// Adds a message that follows from the rows: the sweep can publish it again.
    pub(crate) fn derive(&mut self, message: Message) {
        self.derived.push(message);
    }

    pub(crate) fn has_derived(&self) -> bool {
        !self.derived.is_empty()
    }

    /// The messages for the outbox, and those that follow from the rows.
    pub(crate) fn into_both(self) -> (Vec<Message>, Vec<Message>) {
        (self.outbox, self.derived)
    }
}

/// When the run is rechecked next.
#[derive(Debug)]
pub(crate) struct NextRecheck {
    recheck: Recheck,
    /// Set by a recheck: how old an unanswered message must be to count as lost.
    claim_timeout: Option<TimeDelta>,
}

impl Default for NextRecheck {
    fn default() -> Self {
        Self { recheck: Recheck::Keep, claim_timeout: None }
    }
}

impl NextRecheck {
    pub(crate) fn at(&mut self, instant: Instant) {
        *self = Self { recheck: Recheck::At(instant), claim_timeout: None };
    }

    pub(crate) fn by(&mut self, instant: Instant) {
        *self = Self { recheck: Recheck::By(instant), claim_timeout: None };
    }

    pub(crate) fn set(&mut self, recheck: Recheck) {
        *self = Self { recheck, claim_timeout: None };
    }

    /// The run was rechecked with this timeout: the next recheck is set at the close, once everything that follows is
    /// known.
    pub(crate) fn done(&mut self, claim_timeout: TimeDelta) {
        *self = Self { recheck: Recheck::Keep, claim_timeout: Some(claim_timeout) };
    }

    /// The timeout of a recheck in this slice, if nothing has set the next one since.
    pub(crate) fn claim_timeout(&self) -> Option<TimeDelta> {
        self.claim_timeout
    }

    pub(crate) fn get(&self) -> Recheck {
        self.recheck
    }
}

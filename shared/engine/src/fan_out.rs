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

/// How many children of a fan-out without `max_parallel` are active at a time, if they need slots: it goes
/// on as they end, and others do not wait behind all of it.
const USUAL_PARALLEL: u32 = 256;
/// How many children are loaded together, where some of them had ended before their turn.
const LOOKED_AHEAD: usize = 200;

impl<'g> RunSlice<'g> {
    /// Brings a child into being for each item; over nothing, the fan-out succeeds at once.
    pub(crate) fn fan_out(&mut self, index: TaskIndex, items: Vec<Value>) {
        let total = items.len() as u32;
        if total == 0 {
            return self.settle_at_once(
                index,
                &json!({"count": 0, "succeeded": 0, "failed": 0}),
                Value::Null,
            );
        }
        self.must(index, TaskEvent::FellAsleep, EventKind::TaskFannedOut, json!({"count": total}));
        // Rows are only ever added, so the next index is their number.
        let first = TaskIndex(self.run.counts.total());
        let fan = Fan { first, total, released: 0, ended: Default::default() };
        self.run.counts.grew(total);
        for ((child, item), place) in fan.children().zip(items).zip(0..) {
            let place = Child { of: index, item: place };
            self.tasks.insert(child, Task { child: Some(place), ..Task::pending(child, self.now) });
            self.new_tasks.insert(child);
            self.items.push((child, item));
        }
        self.tasks.get_mut(&index).expect("it has just been moved").fan = Some(fan);
        self.turning.insert(index);
    }

    /// Lets children go on whose turn it is. Returns whose rows are needed for that.
    pub(crate) fn take_turns(&mut self) -> Vec<TaskIndex> {
        let (mut missing, mut asking, mut passed) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        while let Some(index) = self.turning.pop_first() {
            if self.tasks[&index].state != TaskState::Sleeping || self.run.waiting || self.is_paused() {
                continue; // Those who wait have their turn once the run is admitted or resumed.
            }
            let wanted = self.wanted_children(index);
            if wanted.iter().any(|child| !self.knows(*child)) {
                // Where one had ended before its turn, those after it may have, too: they are looked at together.
                let ahead =
                    if passed.contains(&index) { LOOKED_AHEAD.max(wanted.len()) } else { wanted.len() };
                let unknown = self.next_children(index).filter(|child| !self.knows(*child));
                missing.extend(unknown.take(ahead));
                asking.insert(index);
                continue;
            }
            for child in wanted {
                if self.take_turn(index, child) {
                    passed.insert(index);
                }
            }
        }
        self.turning = asking;
        missing
    }

    /// A child ended: it counts for its fan-out, whose next child may have its turn, or which may have ended with it.
    pub(crate) fn child_ended(&mut self, index: TaskIndex, child: Child) {
        let name = self.name(index);
        let ended = &self.tasks[&index];
        let (state, failure) = (ended.state, ended.failure.clone());
        let parent = self.tasks.get_mut(&child.of).expect("its row was asked for");
        let (Some(fan), TaskState::Sleeping) = (parent.fan.as_mut(), parent.state) else { return };
        fan.ended.count(state);
        let over = fan.ended.done == fan.total;
        if let (TaskState::Failed, Some(failure)) = (state, failure) {
            // The first failure is kept, to be named if the fan-out fails for it.
            let message = format!("{name}: {}", failure.message);
            parent.failure.get_or_insert(Failure { message, ..failure });
        }
        self.changed.insert(child.of);
        if over {
            self.conclude_fan(child.of);
        } else {
            self.turning.insert(child.of);
        }
    }

    /// Fan-outs that wait for their children, in case a turn was missed.
    pub(crate) fn turn_all(&mut self) {
        let waiting = |task: &&Task| task.fan.is_some() && task.state == TaskState::Sleeping;
        let fans: BTreeSet<TaskIndex> = self.tasks.values().filter(waiting).map(|task| task.index).collect();
        self.turning.extend(fans);
    }

    /// The children that may go on now; once too many have failed, all that are left, since none is needed any more.
    fn wanted_children(&self, index: TaskIndex) -> Vec<TaskIndex> {
        let Some((fan, plan)) = self.fan_of(index) else { return Vec::new() };
        let usual = if plan.task.kind.is_engine_task() { fan.total } else { USUAL_PARALLEL };
        let cap = plan.max_parallel.unwrap_or(usual);
        let under_way = fan.released - fan.ended.done;
        let room = if is_lost(plan, &fan) { fan.total } else { cap.saturating_sub(under_way) };
        self.next_children(index).take(room as usize).collect()
    }

    /// The children that have not had their turn.
    fn next_children(&self, index: TaskIndex) -> impl Iterator<Item = TaskIndex> + use<> {
        let fan = self.tasks[&index].fan;
        fan.into_iter().flat_map(|fan| fan.children().skip(fan.released as usize))
    }

    /// Gives a child its turn. Returns whether it had ended before: then it only counts, for a fan-out that waits
    /// again for others.
    fn take_turn(&mut self, index: TaskIndex, child: TaskIndex) -> bool {
        let Some((fan, plan)) = self.fan_of(index) else { return false };
        let fan = Fan { released: fan.released + 1, ..fan };
        self.tasks.get_mut(&index).expect("its fan was looked at").fan = Some(fan);
        self.changed.insert(index);
        if let Some(place) = self.tasks[&child].child.filter(|_| self.tasks[&child].state.is_final()) {
            self.child_ended(child, place);
            return true;
        }
        if is_lost(plan, &fan) {
            let why = json!({"fan_out": self.name(index)});
            self.must(child, TaskEvent::Skipped, EventKind::TaskSkipped, why);
        } else {
            self.ready(child);
        }
        false
    }

    fn conclude_fan(&mut self, index: TaskIndex) {
        let Some((fan, plan)) = self.fan_of(index) else { return };
        let (total, ended) = (fan.total, fan.ended);
        let task = &self.tasks[&index];
        if !is_lost(plan, &fan) {
            let output = json!({"count": total, "succeeded": ended.succeeded, "failed": ended.failed});
            let (attempt, started_at) = (task.attempt, task.started_at.unwrap_or(self.now));
            self.succeed(index, attempt, started_at, &output);
            return;
        }
        let first = task.failure.as_ref().map(|failure| format!("; {}", failure.message)).unwrap_or_default();
        let tolerated = match plan.tolerated_failures {
            Tolerance::Count(count) => count.to_string(),
            Tolerance::Percent(percent) => format!("{percent}%"),
        };
        let message = format!("{} of {total} children failed, {tolerated} tolerated{first}", ended.failed);
        self.fail(index, Failure::permanent(message));
    }

    fn fan_of(&self, index: TaskIndex) -> Option<(Fan, &'g FanOut)> {
        let graph: &'g crate::Graph = self.graph;
        Some((self.tasks[&index].fan?, graph.spec(index).fan_out.as_ref()?))
    }
}

fn is_lost(plan: &FanOut, fan: &Fan) -> bool {
    !plan.tolerated_failures.allows(fan.ended.failed, fan.total)
}

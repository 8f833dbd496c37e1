//! Engine tasks, and tasks with a condition: what their directives mean.
//!
//! When the dependencies of such a task let it start, the slice asks for a directive, which the runtime renders. A switch
//! succeeds with its choice as the output; each branch that was not chosen is skipped in the same decision, whatever its rule
//! says. A branch whose other dependencies were quicker waits for its switch, so the result does not depend on who was first.
//! The event of a task that its `when` skipped records the condition and the values it saw.

use model::message::RunRequested;
use model::{
    EventKind, Failure, Instant, Message, Parent, TaskEvent, TaskIndex, TaskKey, TaskState, Timer, TimerKind,
};
use serde_json::{Map, Value, json};

use crate::run_slice::RunSlice;
use crate::{decide, fan_out, sensor, slot};

/// The rendered condition and settings of a task that becomes ready.
#[derive(Clone, PartialEq, Debug)]
pub enum Directive {
    /// Its condition holds: a worker executes it.
    Go,
    /// Its condition does not hold.
    Skip {
        /// The condition, as it was written.
        condition: String,
        /// The values it saw.
        seen: Value,
    },
    /// It succeeds at once with this output.
    Output(Value),
    /// It succeeds and chooses some of its branches.
    Choose {
        /// The tasks that were chosen.
        next: Vec<TaskIndex>,
        /// The condition that held, and the values it saw.
        why: Value,
    },
    /// Create a child for each of these items.
    FanOut(Vec<Value>),
    /// Start a run of another workflow.
    StartChild {
        /// The name of the workflow.
        workflow: String,
        /// The inputs of the run.
        inputs: Map<String, Value>,
        /// Whether to wait until it has ended.
        wait: bool,
    },
    /// Wait for the task of another run that does the same work.
    AwaitShared(TaskKey),
    /// Poll until the condition holds.
    Poll,
    /// Sleep until this instant.
    SleepUntil(Instant),
    /// Wait for a signal or an answer.
    Await {
        /// The signal's name; none where an answer is awaited.
        signal: Option<String>,
        /// When to give up.
        until: Option<Instant>,
    },
    /// The signal it waits for arrived before.
    Received {
        /// The name of the signal.
        signal: String,
        /// The data that the sender attached.
        payload: Value,
        /// When to give up, in case another task has taken the signal.
        until: Option<Instant>,
    },
    /// Its settings could not be rendered.
    Broken(Failure),
}

impl RunSlice<'_> {
    /// Lets a task begin, or not, as its directive says.
    pub fn activate(&mut self, index: TaskIndex, directive: Directive) {
        self.open.directed(index);
        match directive {
            Directive::Go => {
                // A task that was taken back executes it for other runs again, as it did before.
                self.draft.resume_share(index);
                queue(self, index);
                slot::release(self, index);
            }
            Directive::Skip { condition, seen } => {
                let why = json!({"condition": condition, "seen": seen});
                self.must(index, TaskEvent::Skipped, EventKind::TaskSkipped, why);
            }
            Directive::Output(output) => settle_at_once(self, index, &output, Value::Null),
            Directive::Choose { next, why } => {
                let names: Vec<String> = next.iter().map(|task| self.name(*task)).collect();
                let output = json!({"next": names});
                self.chosen.insert(index, next);
                settle_at_once(self, index, &output, why);
            }
            Directive::FanOut(items) => fan_out::fan_out(self, index, items),
            Directive::StartChild { workflow, inputs, wait } => {
                start_child(self, index, workflow, inputs, wait)
            }
            Directive::AwaitShared(owner) => {
                if fall_asleep(self, index) {
                    let what = json!({"shared_with": owner});
                    self.record(EventKind::TaskWaiting, Some(index), None, what);
                }
            }
            Directive::Poll => sensor::begin(self, index),
            Directive::SleepUntil(wake_at) => {
                wait(
                    self,
                    index,
                    EventKind::TaskSleeping,
                    json!({"until": wake_at}),
                    TimerKind::Sleep,
                    Some(wake_at),
                );
            }
            Directive::Await { signal, until } => wait_for(self, index, signal, until),
            Directive::Received { signal, payload, until } => {
                if self.draft.take_signal(&signal) {
                    settle_at_once(self, index, &payload, Value::Null);
                } else {
                    wait_for(self, index, Some(signal), until);
                }
            }
            Directive::Broken(failure) => {
                fall_asleep(self, index);
                decide::fail(self, index, failure);
            }
        }
    }
}

/// A pending task is readied; one that is tried again is queued already; one that waited for others finds that it
/// need not.
fn queue(slice: &mut RunSlice<'_>, index: TaskIndex) {
    let event = match slice.tasks[&index].state {
        TaskState::Pending => TaskEvent::Readied,
        TaskState::Sleeping => TaskEvent::WokeUp,
        _ => return,
    };
    slice.apply(index, event).expect("the state was matched just before");
}

/// Puts a task to sleep, unless it sleeps already. Returns whether it was awake.
fn fall_asleep(slice: &mut RunSlice<'_>, index: TaskIndex) -> bool {
    let awake = slice.tasks[&index].state != TaskState::Sleeping;
    if awake {
        slice.apply(index, TaskEvent::FellAsleep).expect("only tasks that begin are directed");
    }
    awake
}

/// Requests a run of another workflow. A task that waits for one requests it again: a message may have been lost.
fn start_child(
    slice: &mut RunSlice<'_>,
    index: TaskIndex,
    workflow: String,
    inputs: Map<String, Value>,
    waits: bool,
) {
    let first = !waits || fall_asleep(slice, index);
    if !waits {
        queue(slice, index);
    }
    let attempt = slice.tasks[&index].attempt;
    let parent = Parent { key: slice.key(index), attempt, waits, depth: slice.run.depth + 1 };
    let child = parent.child();
    if !waits {
        decide::succeed(slice, index, attempt, slice.now, &json!({"run_id": child}));
    } else if first {
        let what = json!({"run": child, "workflow": workflow});
        slice.record(EventKind::TaskWaiting, Some(index), None, what);
    }
    let request = Message::RunRequested(RunRequested {
        run: child,
        tenant: slice.run.tenant,
        workflow,
        inputs,
        logical_date: None,
        labels: Map::new(),
        trigger: "workflow".into(),
        parent: Some(parent),
        priority: slice.run.priority,
    });
    if first { slice.messages.store(request) } else { slice.messages.derive(request) }
}

pub(crate) fn settle_at_once(slice: &mut RunSlice<'_>, index: TaskIndex, output: &Value, why: Value) {
    queue(slice, index);
    let attempt = slice.tasks[&index].attempt;
    decide::succeed(slice, index, attempt, slice.now, output);
    slice.last_event().data = why;
}

/// Waits for a signal or an approval, unless the signal arrived just before.
fn wait_for(slice: &mut RunSlice<'_>, index: TaskIndex, signal: Option<String>, until: Option<Instant>) {
    if let Some(payload) = signal.as_ref().and_then(|name| slice.draft.take_kept_signal(name)) {
        return settle_at_once(slice, index, &payload, Value::Null);
    }
    let what = json!({"signal": signal, "until": until});
    wait(slice, index, EventKind::TaskWaiting, what, TimerKind::Timeout, until);
}

fn wait(
    slice: &mut RunSlice<'_>,
    index: TaskIndex,
    event: EventKind,
    data: Value,
    kind: TimerKind,
    until: Option<Instant>,
) {
    slice.must(index, TaskEvent::FellAsleep, event, data);
    let attempt = slice.tasks[&index].attempt;
    if let Some(wake_at) = until {
        slice.timers.set(Timer { task: Some(index), attempt, kind, wake_at });
    }
}

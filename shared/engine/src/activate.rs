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

/// What a task shall do that is about to begin: its condition and its settings, rendered.
#[derive(Clone, PartialEq, Debug)]
pub enum Directive {
    /// Its condition holds: let a worker do it.
    Go,
    /// Its condition does not hold.
    Skip {
        /// The condition, as it was written.
        condition: String,
        /// The values it saw.
        seen: Value,
    },
    /// It has come to this output at once.
    Output(Value),
    /// These of its branches go on.
    Choose {
        /// The tasks that go on.
        next: Vec<TaskIndex>,
        /// The condition that held, and the values it saw.
        why: Value,
    },
    /// Do it for each of these items.
    FanOut(Vec<Value>),
    /// Start a run of another workflow.
    StartChild {
        /// The workflow's name.
        workflow: String,
        /// Its inputs.
        inputs: Map<String, Value>,
        /// Whether to wait until it has ended.
        wait: bool,
    },
    /// Wait for a task of another run, which does the same work.
    AwaitShared(TaskKey),
    /// Look again and again, until what it waits for is there.
    Watch,
    /// Sleep until this instant.
    SleepUntil(Instant),
    /// Wait for a signal or an answer.
    Await {
        /// The signal's name; none where an answer is awaited.
        signal: Option<String>,
        /// When to give up.
        until: Option<Instant>,
    },
    /// The signal it waits for had come before.
    Received {
        /// The signal's name.
        signal: String,
        /// What it carried.
        payload: Value,
        /// When to give up, should somebody else have taken it.
        until: Option<Instant>,
    },
    /// Its settings could not be made sense of.
    Broken(Failure),
}

impl RunSlice<'_> {
    /// Lets a task begin, or not, as its directive says.
    pub fn activate(&mut self, index: TaskIndex, directive: Directive) {
        self.directed(index);
        match directive {
            Directive::Go => {
                // One that was taken back carries out for others, here and now, what it let go of before.
                self.shares_ended.retain(|(task, _)| *task != index);
                self.queue(index);
                self.release(index);
            }
            Directive::Skip { condition, seen } => {
                let why = json!({"condition": condition, "seen": seen});
                self.must(index, TaskEvent::Skipped, EventKind::TaskSkipped, why);
            }
            Directive::Output(output) => self.settle_at_once(index, &output, Value::Null),
            Directive::Choose { next, why } => {
                let names: Vec<String> = next.iter().map(|task| self.name(*task)).collect();
                let output = json!({"next": names});
                self.chosen.insert(index, next);
                self.settle_at_once(index, &output, why);
            }
            Directive::FanOut(items) => self.fan_out(index, items),
            Directive::StartChild { workflow, inputs, wait } => {
                self.start_child(index, workflow, inputs, wait)
            }
            Directive::AwaitShared(owner) => {
                if self.fall_asleep(index) {
                    let what = json!({"shared_with": owner});
                    self.record(EventKind::TaskWaiting, Some(index), None, what);
                }
            }
            Directive::Watch => self.watch(index),
            Directive::SleepUntil(wake_at) => {
                self.wait(
                    index,
                    EventKind::TaskSleeping,
                    json!({"until": wake_at}),
                    TimerKind::Sleep,
                    Some(wake_at),
                );
            }
            Directive::Await { signal, until } => self.wait_for(index, signal, until),
            Directive::Received { signal, until, .. } if self.taken_signals.contains(&signal) => {
                self.wait_for(index, Some(signal), until);
            }
            Directive::Received { signal, payload, .. } => {
                self.taken_signals.push(signal);
                self.settle_at_once(index, &payload, Value::Null);
            }
            Directive::Broken(failure) => {
                self.fall_asleep(index);
                self.fail(index, failure);
            }
        }
    }

    /// A pending task is readied; one that is tried again is queued already; one that waited for others finds that it
    /// need not.
    fn queue(&mut self, index: TaskIndex) {
        let event = match self.tasks[&index].state {
            TaskState::Pending => TaskEvent::Readied,
            TaskState::Sleeping => TaskEvent::WokeUp,
            _ => return,
        };
        self.apply(index, event).expect("the state was looked at just before");
    }

    /// Puts a task to sleep, unless it sleeps already. Returns whether it was awake.
    fn fall_asleep(&mut self, index: TaskIndex) -> bool {
        let awake = self.tasks[&index].state != TaskState::Sleeping;
        if awake {
            self.apply(index, TaskEvent::FellAsleep).expect("only tasks that begin are directed");
        }
        awake
    }

    /// Asks for a run of another workflow. A task that waits for one already asks again: somebody may not have heard.
    fn start_child(&mut self, index: TaskIndex, workflow: String, inputs: Map<String, Value>, waits: bool) {
        let first = !waits || self.fall_asleep(index);
        if !waits {
            self.queue(index);
        }
        let attempt = self.tasks[&index].attempt;
        let parent = Parent { key: self.key(index), attempt, waits, depth: self.run.depth + 1 };
        let child = parent.child();
        if !waits {
            self.succeed(index, attempt, self.now, &json!({"run_id": child}));
        } else if first {
            let what = json!({"run": child, "workflow": workflow});
            self.record(EventKind::TaskWaiting, Some(index), None, what);
        }
        let request = Message::RunRequested(RunRequested {
            run: child,
            tenant: self.run.tenant,
            workflow,
            inputs,
            logical_date: None,
            labels: Map::new(),
            trigger: "workflow".into(),
            parent: Some(parent),
            priority: self.run.priority,
        });
        if first { self.outbox.push(request) } else { self.announcements.push(request) }
    }

    pub(crate) fn settle_at_once(&mut self, index: TaskIndex, output: &Value, why: Value) {
        self.queue(index);
        let attempt = self.tasks[&index].attempt;
        self.succeed(index, attempt, self.now, output);
        self.last_event().data = why;
    }

    /// Waits for a signal or an answer, unless the signal came just now and found nobody.
    fn wait_for(&mut self, index: TaskIndex, signal: Option<String>, until: Option<Instant>) {
        let kept = self.kept_signals.iter().position(|kept| Some(&kept.name) == signal.as_ref());
        if let Some(place) = kept {
            let payload = self.kept_signals.remove(place).payload;
            return self.settle_at_once(index, &payload, Value::Null);
        }
        let what = json!({"signal": signal, "until": until});
        self.wait(index, EventKind::TaskWaiting, what, TimerKind::Timeout, until);
    }

    fn wait(
        &mut self,
        index: TaskIndex,
        event: EventKind,
        data: Value,
        kind: TimerKind,
        until: Option<Instant>,
    ) {
        self.must(index, TaskEvent::FellAsleep, event, data);
        let attempt = self.tasks[&index].attempt;
        if let Some(wake_at) = until {
            self.set_timer(Timer { task: Some(index), attempt, kind, wake_at });
        }
    }
}

//! The outcome of a run.

use chrono::TimeDelta;
use model::{Instant, Run, TaskKey, TaskSpec};
use serde_json::Value;
use store::TaskRecord;

use crate::action::Action;
use crate::tracked_run::TrackedRun;

/// Why the runner stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Finish {
    /// The run reached a final state.
    Ended,
    /// Nothing more happens, and it has not ended.
    Waiting,
    /// The next event is further away than this.
    TooLong(TimeDelta),
    /// It had not ended after this many steps.
    Endless(u32),
}

/// The outcome of a run.
pub(crate) struct Outcome<'t> {
    pub(crate) finish: Finish,
    pub(crate) run: Run,
    /// The run, and the runs that it started.
    pub(crate) runs: Vec<TrackedRun>,
    /// The tasks of all runs.
    pub(crate) tasks: Vec<TaskOutcome>,
    /// The tasks that started, in order.
    pub(crate) order: Vec<TaskKey>,
    /// The rendered callbacks, in order.
    pub(crate) callbacks: Vec<Value>,
    pub(crate) start: Instant,
    /// When the runner stopped.
    pub(crate) now: Instant,
    /// Actions that no task was waiting for, and when they happened.
    pub(crate) unused: Vec<(&'t Action, Instant)>,
    /// Actions that would have happened later.
    pub(crate) pending: &'t [Action],
}

/// The outcome of a task.
pub(crate) struct TaskOutcome {
    /// The name as written in test files.
    pub(crate) name: String,
    /// The index of its run among the runs.
    pub(crate) run: usize,
    pub(crate) record: TaskRecord,
}

impl Outcome<'_> {
    /// The task of that name; of the last run, if its run was started more than once.
    pub(crate) fn task(&self, name: &str) -> Option<&TaskOutcome> {
        self.tasks.iter().rev().find(|task| task.name == name)
    }

    /// The definition of a task.
    pub(crate) fn spec(&self, task: &TaskOutcome) -> &TaskSpec {
        self.runs[task.run].graph.spec_at(task.record.task.index, task.record.task.child)
    }

    /// The config of a task's latest attempt, rendered.
    pub(crate) fn config(&self, task: &TaskOutcome) -> Option<&Value> {
        self.runs[task.run].configs.get(&task.record.task.index)
    }

    /// When a task started, if it did.
    pub(crate) fn started(&self, task: &TaskOutcome) -> Option<Instant> {
        self.runs[task.run].started.get(&task.record.task.index).copied()
    }

    /// The time from the start of the run until `instant`.
    pub(crate) fn since_start(&self, instant: Instant) -> TimeDelta {
        instant - self.start
    }

    /// The names of all tasks that started, in order.
    pub(crate) fn order(&self) -> Vec<String> {
        let run_of = |key: &TaskKey| self.runs.iter().find(|tracked| tracked.run == key.run);
        self.order.iter().filter_map(|key| run_of(key).map(|tracked| tracked.name(key.task))).collect()
    }
}

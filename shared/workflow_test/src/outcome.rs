//! What came of a run that was played.

use chrono::TimeDelta;
use model::{Instant, Run, TaskKey, TaskSpec};
use serde_json::Value;
use store::TaskRecord;

use crate::line::Line;
use crate::role::Role;

/// How a run came to rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rest {
    /// It ended.
    Ended,
    /// Nothing more happens, and it has not ended.
    Waiting,
    /// What it waits for is further away than this.
    TooLong(TimeDelta),
    /// It had not ended after so many steps.
    Endless(u32),
}

/// What came of a run that was played.
pub(crate) struct Outcome<'t> {
    pub(crate) rest: Rest,
    pub(crate) run: Run,
    /// The run, and those that were played with it.
    pub(crate) roles: Vec<Role>,
    /// The tasks of all of them.
    pub(crate) tasks: Vec<Played>,
    /// The tasks that began, in the order in which they did.
    pub(crate) order: Vec<TaskKey>,
    /// Who was to be told what, in the order in which they were.
    pub(crate) callbacks: Vec<Value>,
    pub(crate) start: Instant,
    /// When it came to rest.
    pub(crate) now: Instant,
    /// The lines that came when nobody could use them, and when.
    pub(crate) unheard: Vec<(&'t Line, Instant)>,
    /// The lines that would have come later.
    pub(crate) unsaid: &'t [Line],
}

/// A task that was played.
pub(crate) struct Played {
    /// As test files name it.
    pub(crate) name: String,
    /// The place of its run among the roles.
    pub(crate) role: usize,
    pub(crate) record: TaskRecord,
}

impl Outcome<'_> {
    /// The task of that name; if its run was started more than once, that of the last.
    pub(crate) fn task(&self, name: &str) -> Option<&Played> {
        self.tasks.iter().rev().find(|task| task.name == name)
    }

    /// The definition of a task.
    pub(crate) fn spec(&self, task: &Played) -> &TaskSpec {
        self.roles[task.role].graph.spec_at(task.record.task.index, task.record.task.child)
    }

    /// The config of a task's latest attempt, rendered.
    pub(crate) fn config(&self, task: &Played) -> Option<&Value> {
        self.roles[task.role].configs.get(&task.record.task.index)
    }

    /// When a task began, if it did.
    pub(crate) fn began(&self, task: &Played) -> Option<Instant> {
        self.roles[task.role].began.get(&task.record.task.index).copied()
    }

    /// How long after the start of the run something was.
    pub(crate) fn since_start(&self, instant: Instant) -> TimeDelta {
        instant - self.start
    }

    /// The names of all tasks that began, in the order in which they did.
    pub(crate) fn order(&self) -> Vec<String> {
        let role = |key: &TaskKey| self.roles.iter().find(|role| role.run == key.run);
        self.order.iter().filter_map(|key| role(key).map(|role| role.name(key.task))).collect()
    }
}

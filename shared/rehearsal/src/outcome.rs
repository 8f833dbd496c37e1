//! What came of a run that was played.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::TimeDelta;
use engine::Graph;
use model::{Event, EventKind, Instant, Run, TaskIndex};
use serde_json::Value;
use store::TaskRecord;

use crate::line::Line;

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
    pub(crate) tasks: Vec<TaskRecord>,
    pub(crate) events: Vec<Event>,
    pub(crate) configs: BTreeMap<TaskIndex, Value>,
    pub(crate) start: Instant,
    /// When it came to rest.
    pub(crate) now: Instant,
    /// The lines that came when nobody could use them, and when.
    pub(crate) unheard: Vec<(&'t Line, Instant)>,
    /// The lines that would have come later.
    pub(crate) unsaid: &'t [Line],
    pub(crate) graph: Arc<Graph>,
}

impl Outcome<'_> {
    /// The name of a task.
    pub(crate) fn name(&self, task: TaskIndex) -> &str {
        &self.graph.spec(task).name
    }

    /// The task of that name.
    pub(crate) fn task(&self, name: &str) -> Option<&TaskRecord> {
        self.tasks.iter().find(|record| self.name(record.task.index) == name)
    }

    /// How long after the start of the run something was.
    pub(crate) fn since_start(&self, instant: Instant) -> TimeDelta {
        instant - self.start
    }

    /// When a task began, if it did, and its place in the order of all that began.
    pub(crate) fn began(&self, name: &str) -> Option<(usize, Instant)> {
        let index = self.task(name)?.task.index;
        let place = self.events.iter().position(|event| event.task == Some(index) && is_beginning(event))?;
        Some((place, self.events[place].at))
    }

    /// The names of all tasks that began, in the order in which they did.
    pub(crate) fn order(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for task in self.events.iter().filter(|event| is_beginning(event)).filter_map(|event| event.task) {
            if !names.contains(&self.name(task)) {
                names.push(self.name(task));
            }
        }
        names
    }
}

/// Whether a task has begun with this event, if it had not before.
fn is_beginning(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::TaskDispatched
            | EventKind::TaskSleeping
            | EventKind::TaskWaiting
            | EventKind::TaskSucceeded
            | EventKind::TaskFailed
    )
}

//! A run: counters over its tasks, and a state that is derived from them.

use serde::{Deserialize, Serialize};

use crate::{Instant, RunId, TaskKey, TaskState, TenantId, VersionId};

/// The state of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Created; none of its tasks has begun.
    Queued,
    /// At least one task has begun.
    Running,
    /// Begins no more tasks until it is resumed.
    Paused,
    /// Has not ended, but nothing can go on and nothing is waited for. That is a defect, and raises an alarm.
    Stalled,
    /// All tasks ended, and no failure counts.
    Succeeded,
    /// All tasks ended, and at least one failure counts.
    Failed,
    /// A person or a policy ended it.
    Cancelled,
}

impl RunState {
    /// Every state, in the order of their declaration.
    pub const ALL: [RunState; 7] = [
        Self::Queued,
        Self::Running,
        Self::Paused,
        Self::Stalled,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Whether nothing more will happen to the run by itself.
    pub fn is_final(self) -> bool {
        self >= Self::Succeeded
    }

    /// The name used in rows, API responses and pages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Stalled => "stalled",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// The state after `event`; none if the event does not fit.
    pub fn on(self, event: RunEvent) -> Option<Self> {
        use RunEvent as E;
        match (self, event) {
            (Self::Queued, E::Started) => Some(Self::Running),
            (Self::Queued | Self::Running, E::Paused) => Some(Self::Paused),
            (Self::Paused, E::Resumed { started: true }) => Some(Self::Running),
            (Self::Paused, E::Resumed { started: false }) => Some(Self::Queued),
            (from, E::Reopened) if from.is_final() => Some(Self::Queued),
            (Self::Running, E::Stalled) => Some(Self::Stalled),
            (Self::Stalled, E::Moved) => Some(Self::Running),
            (Self::Queued | Self::Running | Self::Paused | Self::Stalled, E::Ended(end)) => Some(end.state()),
            _ => None,
        }
    }
}

/// An event in the life of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunEvent {
    /// Its first task was given a slot.
    Started,
    /// A person paused it.
    Paused,
    /// A person resumed it.
    Resumed {
        /// Whether its first task had been given a slot before.
        started: bool,
    },
    /// A person re-runs some of its tasks after it has ended.
    Reopened,
    /// Nothing can go on and nothing is waited for.
    Stalled,
    /// A stalled run can go on after all.
    Moved,
    /// All its tasks ended.
    Ended(End),
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// No failure of a task counts.
    Succeeded,
    /// At least one failure of a task counts.
    Failed,
    /// At least one task was cancelled.
    Cancelled,
}

impl End {
    /// The run's state after that end.
    pub fn state(self) -> RunState {
        match self {
            Self::Succeeded => RunState::Succeeded,
            Self::Failed => RunState::Failed,
            Self::Cancelled => RunState::Cancelled,
        }
    }
}

/// How many tasks of a run are in each state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts([u32; TaskState::ALL.len()]);

impl Counts {
    /// `total` tasks, all pending.
    pub fn all_pending(total: u32) -> Self {
        let mut counts = Self::default();
        counts.0[TaskState::Pending as usize] = total;
        counts
    }

    /// From a stored array, one number per state in the order of [`TaskState::ALL`].
    pub fn from_array(numbers: [u32; TaskState::ALL.len()]) -> Self {
        Self(numbers)
    }

    /// As a stored array.
    pub fn to_array(self) -> [u32; TaskState::ALL.len()] {
        self.0
    }

    /// How many are in `state`.
    pub fn of(&self, state: TaskState) -> u32 {
        self.0[state as usize]
    }

    /// Whether tasks wait for a time, a signal or an approval, and none is under way.
    pub fn is_asleep(&self) -> bool {
        let any = |states: &[TaskState]| states.iter().any(|state| self.of(*state) > 0);
        any(&[TaskState::Sleeping, TaskState::UpForRetry])
            && !any(&[TaskState::Queued, TaskState::Dispatched, TaskState::Running])
    }

    /// Counts that a task went from one state to another.
    pub fn moved(&mut self, from: TaskState, to: TaskState) {
        self.0[from as usize] -= 1;
        self.0[to as usize] += 1;
    }

    /// Counts `more` pending tasks that were created.
    pub fn grew(&mut self, more: u32) {
        self.0[TaskState::Pending as usize] += more;
    }

    /// How many there are.
    pub fn total(&self) -> u32 {
        self.0.iter().sum()
    }

    /// How many have not ended.
    pub fn unfinished(&self) -> u32 {
        TaskState::ALL.iter().filter(|state| !state.is_final()).map(|state| self.of(*state)).sum()
    }

    /// The states that at least one task is in, with their counts.
    pub fn present(&self) -> impl Iterator<Item = (TaskState, u32)> + '_ {
        TaskState::ALL.into_iter().map(|state| (state, self.of(state))).filter(|(_, count)| *count > 0)
    }
}

/// One run: the small row that evaluation touches. Its lock is the lock of everything in the run.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// The run's id, chosen by the sender of the request.
    pub id: RunId,
    /// The tenant that it belongs to.
    pub tenant: TenantId,
    /// The name of its workflow.
    pub workflow: String,
    /// The version of the workflow, which never changes.
    pub version: VersionId,
    /// The state, derived from those of its tasks.
    pub state: RunState,
    /// Counts the writes to this row; a write based on another revision is refused.
    pub revision: i32,
    /// How many tasks are in each state.
    pub counts: Counts,
    /// How many tasks failed whose failure counts.
    pub failures: u32,
    /// How many events it has; also the number of the next one.
    pub events: i64,
    /// When it was created.
    pub created_at: Instant,
    /// When its first task was given a slot.
    pub started_at: Option<Instant>,
    /// When its last task ended.
    pub finished_at: Option<Instant>,
    /// Why it failed: the first task whose failure counted, and its message.
    pub error: Option<String>,
    /// The task that started it, if a task did.
    pub parent: Option<Parent>,
    /// How many parents it has above it: 0 unless a task started it.
    pub depth: u32,
    /// The concurrency key it was created with: it shares a limit with other runs of its workflow and key.
    pub concurrency_group: Option<String>,
    /// Whether it waits until others in its concurrency group have ended.
    pub waiting: bool,
    /// Added to the priority of each of its tasks.
    pub priority: i32,
}

/// A task that started a run, at the attempt that did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Parent {
    /// The task that started the run.
    #[serde(flatten)]
    pub key: TaskKey,
    /// The attempt that started it: another attempt starts another run.
    pub attempt: u32,
    /// Whether it waits for the run to end.
    pub waits: bool,
    /// The depth of the run that it starts.
    pub depth: u32,
}

impl Parent {
    /// The id of the run it starts: the same task and attempt, the same run.
    pub fn child(&self) -> RunId {
        RunId::of_task(self.key, self.attempt)
    }
}

impl Run {
    /// A run that is about to be created, with that many tasks.
    pub fn new(
        id: RunId,
        tenant: TenantId,
        workflow: &str,
        version: VersionId,
        tasks: u32,
        created_at: Instant,
    ) -> Self {
        Self {
            id,
            tenant,
            workflow: workflow.to_owned(),
            version,
            state: RunState::Queued,
            revision: 0,
            counts: Counts::all_pending(tasks),
            failures: 0,
            events: 0,
            created_at,
            started_at: None,
            finished_at: None,
            error: None,
            parent: None,
            depth: 0,
            concurrency_group: None,
            waiting: false,
            priority: 0,
        }
    }

    /// How the run has ended, if it has. It depends on the run's tasks alone.
    pub fn end(&self) -> Option<End> {
        if self.counts.unfinished() > 0 {
            None
        } else if self.counts.of(TaskState::Cancelled) > 0 {
            Some(End::Cancelled)
        } else if self.failures > 0 {
            Some(End::Failed)
        } else {
            Some(End::Succeeded)
        }
    }
}

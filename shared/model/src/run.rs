//! A run: counters over its tasks, and a state that is derived from them.

use serde::{Deserialize, Serialize};

use crate::{Instant, RunId, TaskKey, TaskState, TenantId, VersionId};

/// Where a run stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Created; nothing of it has begun.
    Queued,
    /// Under way.
    Running,
    /// Begins nothing new until it is resumed.
    Paused,
    /// Nothing can go on and nothing is waited for: a defect, and alarmed on.
    Stalled,
    /// All tasks ended, none of them badly.
    Succeeded,
    /// All tasks ended, at least one of them badly.
    Failed,
    /// Ended by a person or a policy.
    Cancelled,
}

impl RunState {
    /// Every state.
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

    /// The name used in rows, answers and pages.
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

    /// The state after `event`, or none where the event does not fit.
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

/// What happened to a run.
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
    /// A stalled run found something to do after all.
    Moved,
    /// All its tasks ended.
    Ended(End),
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// None of its tasks ended badly.
    Succeeded,
    /// At least one did.
    Failed,
    /// At least one was cancelled.
    Cancelled,
}

impl End {
    /// The final state it is.
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

    /// Whether something waits for its time, a signal or an answer, and nothing is under way.
    pub fn is_asleep(&self) -> bool {
        let any = |states: &[TaskState]| states.iter().any(|state| self.of(*state) > 0);
        any(&[TaskState::Sleeping, TaskState::UpForRetry])
            && !any(&[TaskState::Queued, TaskState::Dispatched, TaskState::Running])
    }

    /// One task went from one state to another.
    pub fn moved(&mut self, from: TaskState, to: TaskState) {
        self.0[from as usize] -= 1;
        self.0[to as usize] += 1;
    }

    /// `more` pending tasks came into being.
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

    /// The states that at least one task is in, with how many.
    pub fn present(&self) -> impl Iterator<Item = (TaskState, u32)> + '_ {
        TaskState::ALL.into_iter().map(|state| (state, self.of(state))).filter(|(_, count)| *count > 0)
    }
}

/// One run: the small row that evaluation touches. Its lock is the lock of everything in the run.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// Whose it is.
    pub tenant: TenantId,
    /// The workflow's name.
    pub workflow: String,
    /// The version it keeps for ever.
    pub version: VersionId,
    /// Where it stands.
    pub state: RunState,
    /// Counts the writes to this row; a write that names another one is refused.
    pub revision: i32,
    /// How many tasks are in each state.
    pub counts: Counts,
    /// How many tasks ended badly and may not.
    pub failures: u32,
    /// How many events it has; the next one's number.
    pub events: i64,
    /// When it was created.
    pub created_at: Instant,
    /// When its first task was given a slot.
    pub started_at: Option<Instant>,
    /// When its last task ended.
    pub finished_at: Option<Instant>,
    /// Why it failed: the first task that ended badly, and what it said.
    pub error: Option<String>,
    /// The task that started it, if one did and waits for it.
    pub parent: Option<Parent>,
    /// How many runs it is below the one that nobody's task started.
    pub depth: u32,
    /// The concurrency key it was created with: it shares a limit with others of its workflow and key.
    pub concurrency_group: Option<String>,
    /// Whether it waits until others in its group have ended.
    pub waiting: bool,
    /// Added to the priority of each of its tasks.
    pub priority: i32,
}

/// A task that started a run, at the attempt that did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Parent {
    /// The task.
    #[serde(flatten)]
    pub key: TaskKey,
    /// Its attempt: another one starts another run.
    pub attempt: u32,
    /// Whether it waits for the run to end.
    pub waits: bool,
    /// How deep the run it starts is below the one that nobody's task started.
    pub depth: u32,
}

impl Parent {
    /// The id of the run it starts: the same task and attempt, the same run.
    pub fn child(&self) -> RunId {
        RunId::of_task(self.key, self.attempt)
    }
}

impl Run {
    /// How the run has ended, if it has: derived from its tasks and nothing else.
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

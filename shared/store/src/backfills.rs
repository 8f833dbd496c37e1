//! Backfills: runs of dates that are past.

use std::collections::BTreeMap;

use async_trait::async_trait;
use model::{BackfillId, Instant, RunId, RunState, TenantId};
use serde::{Deserialize, Serialize};

use crate::Result;

/// The maximum number of backfills that are deleted in one transaction: each may have thousands of dates.
pub(crate) const MAX_DELETED_AT_ONCE: u32 = 20;

/// A person's request for the runs of past dates.
#[derive(Clone, PartialEq, Debug)]
pub struct BackfillRecord {
    /// The backfill's id, chosen by the caller.
    pub id: BackfillId,
    /// The tenant that it belongs to.
    pub tenant: TenantId,
    /// The workflow that it runs.
    pub workflow: String,
    /// The schedule whose dates they are.
    pub schedule: String,
    /// The number of the version that its runs take; none for the active one.
    pub version: Option<i32>,
    /// The first date that it covers.
    pub from: Instant,
    /// The last date that it covers, inclusive.
    pub to: Instant,
    /// The maximum number of its runs that are active at the same time.
    pub max_parallel: u32,
    /// Its turns in a wait queue, for ten turns of its tenant's live tasks.
    pub weight: u32,
    /// Which of its dates get a run.
    pub rerun: Rerun,
    /// Whether it runs, is paused, or has ended.
    pub state: BackfillState,
    /// When it was requested.
    pub created_at: Instant,
    /// The caller who requested it.
    pub created_by: String,
    /// When it ended, if it has.
    pub finished_at: Option<Instant>,
    /// Who cancelled it, if someone did.
    pub cancelled_by: Option<String>,
    /// When the sweep works on it: while it is running, and after it was cancelled until its runs are, too.
    pub due_at: Option<Instant>,
    /// Why it does not go on although it should.
    pub problem: Option<String>,
    /// Grows with every change.
    pub revision: i32,
}

/// Which dates of a backfill get a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rerun {
    /// Those that have none.
    #[default]
    Missing,
    /// Those whose run failed or was cancelled: it is retried.
    Failed,
    /// All of them: runs that exist are rerun.
    All,
}

impl Rerun {
    /// Every choice, in the order of their declaration.
    pub const ALL: [Self; 3] = [Self::Missing, Self::Failed, Self::All];

    /// The name used in rows and API responses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Failed => "failed",
            Self::All => "all",
        }
    }

    /// Whether a date gets a run, given the run that it has.
    pub fn wants(self, run: Option<RunState>) -> bool {
        let failed = matches!(run, Some(RunState::Failed | RunState::Cancelled));
        match self {
            Self::Missing => run.is_none(),
            Self::Failed => failed,
            // A run that is under way is left alone.
            Self::All => run.is_none_or(RunState::is_final),
        }
    }
}

/// The state of a backfill.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackfillState {
    /// Its runs are created, a few at a time.
    Running,
    /// No more runs are created until it is resumed; active ones go on.
    Paused,
    /// No more runs are created, and active ones were cancelled.
    Cancelled,
    /// All its dates have had their turn.
    Finished,
}

impl BackfillState {
    /// Every state, in the order of their declaration.
    pub const ALL: [Self; 4] = [Self::Running, Self::Paused, Self::Cancelled, Self::Finished];

    /// The name used in rows and API responses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Cancelled => "cancelled",
            Self::Finished => "finished",
        }
    }
}

/// A date of a backfill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BackfillDate {
    /// The logical date of its run.
    pub date: Instant,
    /// The start of the interval that its run is about; it ends at the date.
    pub interval_start: Instant,
    /// How far the date has come.
    pub step: DateStep,
    /// Its run, once it is known.
    pub run: Option<RunId>,
    /// Whether that run existed before.
    pub redo: bool,
}

/// How far a date of a backfill has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DateStep {
    /// It waits for its turn.
    Waiting,
    /// A process is about to create its run.
    Claimed,
    /// Its run was created.
    Begun,
}

impl DateStep {
    /// Every step, in the order in which a date takes them.
    pub const ALL: [Self; 3] = [Self::Waiting, Self::Claimed, Self::Begun];

    /// The name used in rows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Claimed => "claimed",
            Self::Begun => "begun",
        }
    }
}

/// The possible next steps of a backfill at one moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BackfillTurn {
    /// How many of its runs are active.
    pub active: u32,
    /// Whether one of them existed before the backfill.
    pub redoing: bool,
    /// Dates that were claimed, and whose run may not exist.
    pub claimed: Vec<BackfillDate>,
    /// The first of the dates that wait.
    pub waiting: Vec<BackfillDate>,
}

/// The part of a store that is about backfills.
#[async_trait]
pub trait Backfills: Send + Sync {
    /// The runs of a schedule's dates within these bounds, both included.
    async fn runs_of_dates(
        &self,
        tenant: TenantId,
        workflow: &str,
        schedule: &str,
        from: Instant,
        to: Instant,
    ) -> Result<BTreeMap<Instant, (RunId, RunState)>>;

    /// Creates a backfill with its dates. Its id again changes nothing.
    async fn create_backfill(&self, record: &BackfillRecord, dates: &[BackfillDate]) -> Result<()>;

    /// One backfill of any tenant.
    async fn any_backfill(&self, id: BackfillId) -> Result<Option<BackfillRecord>>;

    /// Backfills of a tenant, newest first, after the given one.
    async fn backfills(
        &self,
        tenant: TenantId,
        workflow: Option<&str>,
        after: Option<(Instant, BackfillId)>,
        limit: u32,
    ) -> Result<Vec<BackfillRecord>>;

    /// Backfills that are due, the longest overdue first.
    async fn due_backfills(&self, now: Instant, limit: u32) -> Result<Vec<BackfillRecord>>;

    /// Writes a backfill over the revision it was read at. Returns whether it still had that revision.
    async fn save_backfill(&self, record: &BackfillRecord) -> Result<bool>;

    /// The possible next steps of a backfill at one moment, with at most `limit` dates of each kind.
    async fn backfill_turn(&self, id: BackfillId, limit: u32) -> Result<BackfillTurn>;

    /// Moves a date on from a step. Returns whether it was at that step.
    async fn move_date(&self, id: BackfillId, from: DateStep, date: &BackfillDate) -> Result<bool>;

    /// The runs of a backfill that are in one of these states, by date; also those of dates that were only claimed.
    async fn backfill_runs(
        &self,
        id: BackfillId,
        states: &[RunState],
        limit: u32,
    ) -> Result<Vec<(BackfillDate, RunState)>>;

    /// Deletes backfills that ended before that instant, with their dates, some at a time. Returns how many.
    async fn forget_backfills(&self, before: Instant) -> Result<u64>;
}

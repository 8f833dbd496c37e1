//! Backfills: runs of dates that are past.

use std::collections::BTreeMap;

use async_trait::async_trait;
use model::{BackfillId, Instant, RunId, RunState, TenantId};
use serde::{Deserialize, Serialize};

use crate::Result;

/// No more backfills are forgotten in one transaction: each may have thousands of dates.
pub(crate) const MAX_DELETED_AT_ONCE: u32 = 20;

/// Runs of dates that are past, asked for by a person.
#[derive(Clone, PartialEq, Debug)]
pub struct BackfillRecord {
    /// Its id.
    pub id: BackfillId,
    /// Whose it is.
    pub tenant: TenantId,
    /// Of which workflow.
    pub workflow: String,
    /// The schedule whose dates they are.
    pub schedule: String,
    /// The number of the version that its runs take; none for the active one.
    pub version: Option<i32>,
    /// From when on.
    pub from: Instant,
    /// Until when.
    pub to: Instant,
    /// So many of its runs go on at the same time.
    pub max_parallel: u32,
    /// For ten turns of its tenant's live tasks in a line, so many of its own.
    pub weight: u32,
    /// Which of its dates get a run.
    pub rerun: Rerun,
    /// Where it stands.
    pub state: BackfillState,
    /// When it was asked for.
    pub created_at: Instant,
    /// Who asked.
    pub created_by: String,
    /// When it ended.
    pub finished_at: Option<Instant>,
    /// Who cancelled it, if somebody did.
    pub cancelled_by: Option<String>,
    /// When the sweep should look: while it is running, and once it was cancelled until its runs were, too.
    pub due_at: Option<Instant>,
    /// Why it does not go on, where it should.
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
    /// All of them: runs that are there begin anew.
    All,
}

impl Rerun {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Missing, Self::Failed, Self::All];

    /// The name used in rows and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Failed => "failed",
            Self::All => "all",
        }
    }

    /// Whether a date gets a run, by what it has.
    pub fn wants(self, run: Option<RunState>) -> bool {
        let failed = matches!(run, Some(RunState::Failed | RunState::Cancelled));
        match self {
            Self::Missing => run.is_none(),
            Self::Failed => failed,
            // What goes on already is left alone.
            Self::All => run.is_none_or(RunState::is_final),
        }
    }
}

/// Where a backfill stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackfillState {
    /// Its runs are made, a few at a time.
    Running,
    /// No more are made until it is resumed; those under way go on.
    Paused,
    /// No more are made, and those under way were cancelled.
    Cancelled,
    /// Every date had its turn.
    Finished,
}

impl BackfillState {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Running, Self::Paused, Self::Cancelled, Self::Finished];

    /// The name used in rows and answers.
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
    /// The logical date.
    pub date: Instant,
    /// What its run is about begins here, and ends at the date.
    pub interval_start: Instant,
    /// How far it has come.
    pub step: DateStep,
    /// Its run, once it is known.
    pub run: Option<RunId>,
    /// Whether that run was there before.
    pub redo: bool,
}

/// How far a date of a backfill has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DateStep {
    /// It waits for its turn.
    Waiting,
    /// Somebody is about to make its run.
    Claimed,
    /// Its run is there.
    Begun,
}

impl DateStep {
    /// Every one.
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

/// What a backfill could do next, as of one moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BackfillTurn {
    /// How many of its runs are under way.
    pub active: u32,
    /// Whether one of them was there before the backfill.
    pub redoing: bool,
    /// Dates that were claimed, and whose run may not be there.
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

    /// Backfills that should be looked at, the longest overdue first.
    async fn due_backfills(&self, now: Instant, limit: u32) -> Result<Vec<BackfillRecord>>;

    /// Writes a backfill over the revision it was read at. Returns whether it was still the one.
    async fn save_backfill(&self, record: &BackfillRecord) -> Result<bool>;

    /// What a backfill could do next, as of one moment, with at most so many dates of each kind.
    async fn backfill_turn(&self, id: BackfillId, limit: u32) -> Result<BackfillTurn>;

    /// Moves a date on, if it has come so far. Returns whether it had.
    async fn move_date(&self, id: BackfillId, from: DateStep, date: &BackfillDate) -> Result<bool>;

    /// How many dates of a backfill wait (`waiting`), and how many have a run in which state. Runs that are gone count
    /// as `forgotten`.
    async fn backfill_progress(&self, id: BackfillId) -> Result<BTreeMap<String, u32>>;

    /// The runs of a backfill that are in one of these states, by date; also those of dates that were only claimed.
    async fn backfill_runs(
        &self,
        id: BackfillId,
        states: &[RunState],
        limit: u32,
    ) -> Result<Vec<(BackfillDate, RunState)>>;

    /// Forgets backfills that ended before that instant, with their dates, some at a time. Returns how many.
    async fn forget_backfills(&self, before: Instant) -> Result<u64>;
}

//! What can go wrong when a run is changed.

use language::inputs::InputProblem;
use model::{RunId, VersionId};

/// What can go wrong when a run is changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such workflow.
    #[error("there is no workflow `{0}`")]
    NoSuchWorkflow(String),
    /// The workflow was taken out of use.
    #[error("workflow `{0}` is archived: register it again to run it")]
    Archived(String),
    /// Nothing of the workflow begins for now.
    #[error("workflow `{0}` is paused: resume it to run it")]
    Paused(String),
    /// The inputs do not fit the workflow.
    #[error("the inputs do not fit the workflow")]
    BadInputs(Vec<InputProblem>),
    /// A run of that workflow and logical date exists.
    #[error("run {0} exists for that logical date already")]
    DateTaken(RunId),
    /// The idempotency key was used for a run with other inputs.
    #[error("run {0} was created with the same idempotency key and other inputs")]
    KeyReused(RunId),
    /// The concurrency limit of that key is reached, and the policy is to skip.
    #[error("run {0} of the same concurrency key goes on, and the workflow skips others meanwhile")]
    ConcurrencyGroupTaken(RunId),
    /// The workflow's concurrency key cannot be rendered.
    #[error("the workflow's concurrency key cannot be rendered: {0}")]
    BadKey(String),
    /// The priority is out of range.
    #[error("`priority` is {0}, and must be a whole number from -100 to 100")]
    BadPriority(i32),
    /// The backfill cannot be as it was asked for.
    #[error("{0}")]
    BadBackfill(String),
    /// The tenant has as many unfinished runs as it may.
    #[error(
        "the tenant has {0} unfinished runs, the maximum (EBB_QUOTA_RUNS); wait until some have ended, or cancel some"
    )]
    TooManyRuns(u32),
    /// The task that asked for the run no longer waits for it.
    #[error("the task that asked for the run no longer waits for it")]
    Unwanted,
    /// What the run's tasks had delivered is deleted, and a rerun would need it.
    #[error("the outputs of run {0} were kept long enough and are deleted: it can only be rerun as a whole")]
    OutputsForgotten(RunId),
    /// There is no such tenant.
    #[error("there is no tenant `{0}`")]
    NoSuchTenant(String),
    /// A trigger can make nothing of an event.
    #[error("{0}")]
    BadTrigger(String),
    /// A stored definition that this version of the program cannot compile.
    #[error("version {} cannot be used: {why}", version.0)]
    Unusable {
        /// The version of the definition.
        version: VersionId,
        /// What is wrong with it.
        why: String,
    },
    /// The transaction that it shared with other commands failed.
    #[error("{0}")]
    Together(String),
    /// Deciding it broke down: a defect of ours, which is in the log.
    #[error("a defect of ours: deciding it broke down")]
    Defect,
    /// The bus said no.
    #[error(transparent)]
    Bus(bus::Error),
    /// The store said no.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Error {
    /// Whether the same call may succeed later.
    pub fn is_passing(&self) -> bool {
        self.is_outage() || matches!(self, Self::Store(store::Error::Conflict))
    }

    /// Whether something that everybody needs is away: other calls fail, too.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Bus(_) | Self::Together(_) | Self::Store(store::Error::Unavailable(_)))
    }

    /// Whether the same call can never succeed. A version that this program cannot use, a newer one perhaps can.
    pub fn is_hopeless(&self) -> bool {
        matches!(
            self,
            Self::NoSuchWorkflow(_)
                | Self::Archived(_)
                | Self::Paused(_)
                | Self::BadInputs(_)
                | Self::KeyReused(_)
                | Self::DateTaken(_)
                | Self::ConcurrencyGroupTaken(_)
                | Self::BadKey(_)
                | Self::BadPriority(_)
                | Self::OutputsForgotten(_)
                | Self::BadBackfill(_)
                | Self::Unwanted
                | Self::NoSuchTenant(_)
                | Self::BadTrigger(_)
        )
    }
}

/// A result of the runtime.
pub type Result<T> = std::result::Result<T, Error>;

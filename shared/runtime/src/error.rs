//! The errors of changing a run.

use language::inputs::InputProblem;
use model::{RunId, VersionId};

/// An error while changing a run.
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
    #[error("the inputs are invalid")]
    BadInputs(Vec<InputProblem>),
    /// A run of that workflow and logical date exists.
    #[error("run {0} exists for that logical date already")]
    DateTaken(RunId),
    /// The idempotency key was used for a run with other inputs.
    #[error("run {0} was created with the same idempotency key and other inputs")]
    KeyReused(RunId),
    /// The concurrency limit of that key is reached, and the policy is to skip.
    #[error("run {0} with the same concurrency key is active, and the workflow's policy is `skip`")]
    ConcurrencyGroupTaken(RunId),
    /// The workflow's concurrency key cannot be rendered.
    #[error("the workflow's concurrency key cannot be rendered: {0}")]
    BadKey(String),
    /// The priority is out of range.
    #[error("`priority` is {0}, and must be a whole number from -100 to 100")]
    BadPriority(i32),
    /// The backfill is not possible as it was requested.
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
    /// The outputs of the run's tasks were deleted, and a rerun would need them.
    #[error("retention deleted the outputs of run {0}; start a new run")]
    OutputsForgotten(RunId),
    /// There is no such tenant.
    #[error("there is no tenant `{0}`")]
    NoSuchTenant(String),
    /// A trigger's filter or inputs cannot be evaluated for an event.
    #[error("{0}")]
    BadTrigger(String),
    /// A stored definition that this version of the program cannot compile.
    #[error("version {} cannot be used: {why}", version.0)]
    Unusable {
        /// The version of the definition.
        version: VersionId,
        /// A description of the problem.
        why: String,
    },
    /// The transaction that it shared with other commands failed.
    #[error("{0}")]
    Together(String),
    /// Evaluating the run panicked; the log has the panic.
    #[error("internal error while evaluating the run; see the log")]
    Defect,
    /// The bus returned an error.
    #[error(transparent)]
    Bus(bus::Error),
    /// The store returned an error.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Error {
    /// Whether the same call may succeed later.
    pub fn is_passing(&self) -> bool {
        self.is_outage() || matches!(self, Self::Store(store::Error::Conflict))
    }

    /// Whether the database or the bus is unavailable: other calls fail, too.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Bus(_) | Self::Together(_) | Self::Store(store::Error::Unavailable(_)))
    }

    /// Whether the tenant has no room for another run now.
    pub fn is_quota(&self) -> bool {
        matches!(self, Self::TooManyRuns(_))
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

//! Workflows as people list them, and let them pause.

use async_trait::async_trait;
use model::{Instant, TenantId};

use crate::{Pause, Result, WorkflowPlace, WorkflowRecord, WorkflowSort};

/// Why a trigger pauses whose workflow does.
pub(crate) const WORKFLOW_PAUSES: &str = "its workflow is paused";

/// What became of a workflow that was to pause, or to go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Paused {
    /// It pauses now, or goes on, and did not before.
    Changed,
    /// It did already; nothing was written.
    Already,
    /// There is no such workflow, or it is out of use.
    Unknown,
}

/// The part of a store that is about workflows in use.
#[async_trait]
pub trait Workflows: Send + Sync {
    /// Workflows in use, in some order, after the given place; archived ones are left out.
    async fn sorted_workflows(
        &self,
        tenant: TenantId,
        sort: WorkflowSort,
        after: Option<&WorkflowPlace>,
        limit: u32,
    ) -> Result<Vec<WorkflowRecord>>;

    /// Lets nothing of a workflow begin by itself, or where no pause is given, lets it go on. Its triggers pause with it
    /// and go on with it, but for those that pause for reasons of their own; a new version changes nothing about that.
    async fn pause_workflow(
        &self,
        tenant: TenantId,
        workflow: &str,
        pause: Option<&Pause>,
        at: Instant,
    ) -> Result<Paused>;
}

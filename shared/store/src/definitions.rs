//! Workflows and their versions.

use async_trait::async_trait;
use model::{Instant, TenantId, VersionId};

use crate::{Activated, Active, NewVersion, Pause, Registered, Result, VersionRecord, WorkflowRecord};

/// Why a trigger pauses whose workflow does.
pub(crate) const WORKFLOW_PAUSES: &str = "its workflow is paused";

/// The outcome of pausing or resuming a workflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Paused {
    /// It is paused now, or resumed, and was not before.
    Changed,
    /// It was already; nothing was written.
    Already,
    /// There is no such workflow, or it is out of use.
    Unknown,
}

/// Workflows and their versions, as far as decisions need them.
#[async_trait]
pub trait Definitions: Send + Sync {
    /// Registers definitions, all of them or none. The same content again changes nothing and returns the version it has;
    /// other content becomes the next version and the active one. An archived workflow becomes active again.
    async fn register_all(&self, new: &[NewVersion]) -> Result<Vec<Registered>>;

    /// Registers one definition, as `register_all` does.
    async fn register(&self, new: &NewVersion) -> Result<Registered> {
        Ok(self.register_all(std::slice::from_ref(new)).await?.remove(0))
    }

    /// Takes a workflow out of use; its history stays. Returns whether it was in use.
    async fn archive(&self, tenant: TenantId, workflow: &str, at: Instant) -> Result<bool>;

    /// Which version of a workflow is active: all that starting a run has to ask for, since versions never change.
    async fn active(&self, tenant: TenantId, name: &str) -> Result<Option<Active>>;

    /// One workflow with its active version.
    async fn workflow(&self, tenant: TenantId, name: &str) -> Result<Option<WorkflowRecord>>;

    /// The version with that id.
    async fn version(&self, id: VersionId) -> Result<Option<VersionRecord>>;

    /// The version of that number.
    async fn numbered_version(
        &self,
        tenant: TenantId,
        workflow: &str,
        number: i32,
    ) -> Result<Option<VersionRecord>>;

    /// Makes a version that exists the active one. An archived workflow becomes active again.
    async fn activate(&self, tenant: TenantId, workflow: &str, number: i32, at: Instant)
    -> Result<Activated>;

    /// Pauses a workflow, so that nothing starts its runs, or resumes it if no pause is given. Its triggers pause and resume
    /// with it, except those that pause for reasons of their own; a new version does not change that.
    async fn pause_workflow(
        &self,
        tenant: TenantId,
        workflow: &str,
        pause: Option<&Pause>,
        at: Instant,
    ) -> Result<Paused>;
}

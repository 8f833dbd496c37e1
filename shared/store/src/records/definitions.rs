//! Workflows and their versions.

use model::{Instant, TenantId, VersionId, Workflow};

use crate::Pause;

/// A definition to be registered.
#[derive(Clone, PartialEq, Debug)]
pub struct NewVersion {
    /// The tenant that it belongs to.
    pub tenant: TenantId,
    /// The definition, known to be valid.
    pub workflow: Workflow,
    /// The text it was written as.
    pub source: String,
    /// The content hash, in hexadecimal.
    pub hash: String,
    /// The caller who registers it.
    pub by: String,
    /// When it is registered.
    pub at: Instant,
}

/// The outcome of a registration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Registered {
    /// The version that is active now.
    pub version: VersionId,
    /// Its number within the workflow, from 1.
    pub number: i32,
    /// Whether it was made by this call.
    pub new: bool,
    /// Whether it became active by this call.
    pub changed: bool,
}

/// The outcome of activating a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activated {
    /// It is active now, and was not before.
    Changed,
    /// It was active already; nothing was written.
    Already,
    /// There is no such version.
    Unknown,
}

/// The active version of a workflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Active {
    /// The id of the version.
    pub version: VersionId,
    /// Its number within the workflow.
    pub number: i32,
    /// Whether the workflow was taken out of use.
    pub archived: bool,
    /// Whether it is paused, so that only people start runs.
    pub paused: bool,
}

/// A workflow with its active version.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkflowRecord {
    /// The tenant that it belongs to.
    pub tenant: TenantId,
    /// The workflow's name, unique in the tenant.
    pub name: String,
    /// Whether it was taken out of use.
    pub archived: bool,
    /// When it was first registered.
    pub created_at: Instant,
    /// When it last changed.
    pub updated_at: Instant,
    /// Who paused it, and why; none if it is not paused.
    pub pause: Option<Pause>,
    /// The version that new runs take.
    pub version: VersionRecord,
}

/// One immutable version of a workflow.
#[derive(Clone, PartialEq, Debug)]
pub struct VersionRecord {
    /// The id, unique across tenants.
    pub id: VersionId,
    /// The tenant that it belongs to.
    pub tenant: TenantId,
    /// Its number within the workflow, from 1.
    pub number: i32,
    /// Its content hash, in hexadecimal.
    pub hash: String,
    /// The definition, known to be valid.
    pub workflow: Workflow,
    /// The text it was written as.
    pub source: String,
    /// When it was registered.
    pub created_at: Instant,
    /// The caller who registered it.
    pub created_by: String,
}

//! Workflows and their versions.

use model::{Instant, TenantId, VersionId, Workflow};

use crate::Pause;

/// A definition to be registered.
#[derive(Clone, PartialEq, Debug)]
pub struct NewVersion {
    /// For whom.
    pub tenant: TenantId,
    /// The sound definition.
    pub workflow: Workflow,
    /// The text it was written as.
    pub source: String,
    /// The content hash, in hexadecimal.
    pub hash: String,
    /// Who registers it.
    pub by: String,
    /// When.
    pub at: Instant,
}

/// What became of a definition to be registered.
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

/// What became of a version to be made the active one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activated {
    /// It is active now, and was not before.
    Changed,
    /// It was active already; nothing was written.
    Already,
    /// There is no such version.
    Unknown,
}

/// Which version of a workflow is active.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Active {
    /// The version.
    pub version: VersionId,
    /// Its number within the workflow.
    pub number: i32,
    /// Whether the workflow was taken out of use.
    pub archived: bool,
    /// Whether nothing of it begins by itself for now.
    pub paused: bool,
}

/// A workflow with its active version.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkflowRecord {
    /// Whose it is.
    pub tenant: TenantId,
    /// Its name.
    pub name: String,
    /// Whether it was taken out of use.
    pub archived: bool,
    /// When it was first registered.
    pub created_at: Instant,
    /// When it last changed.
    pub updated_at: Instant,
    /// Who lets nothing of it begin by itself for now, if somebody does.
    pub pause: Option<Pause>,
    /// Its active version.
    pub version: VersionRecord,
}

/// One immutable version.
#[derive(Clone, PartialEq, Debug)]
pub struct VersionRecord {
    /// Its id.
    pub id: VersionId,
    /// Whose it is.
    pub tenant: TenantId,
    /// Its number within the workflow, from 1.
    pub number: i32,
    /// Its content hash, in hexadecimal.
    pub hash: String,
    /// The sound definition.
    pub workflow: Workflow,
    /// The text it was written as.
    pub source: String,
    /// When it was made.
    pub created_at: Instant,
    /// Who made it.
    pub created_by: String,
}

//! Many runs at a glance, for whoever looks at them.

use async_trait::async_trait;
use model::{Instant, RunId, RunState, Task, TenantId, VersionId};

use crate::{Result, RunFilter, RunPlace};

/// A run at a glance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Glance {
    /// Its id.
    pub id: RunId,
    /// The workflow's name.
    pub workflow: String,
    /// The version that it follows.
    pub version: VersionId,
    /// How it stands.
    pub state: RunState,
    /// When it was created.
    pub created_at: Instant,
    /// When its first task began.
    pub started_at: Option<Instant>,
    /// When it ended.
    pub finished_at: Option<Instant>,
}

/// What is seen of many runs at once, at a cost that does not grow with history or with children of fan-outs.
#[async_trait]
pub trait Outlines: Send + Sync {
    /// The tasks of the definitions of some runs by run and index, without outputs and children.
    async fn outline(&self, runs: &[RunId]) -> Result<Vec<(RunId, Task)>>;

    /// When runs of a tenant were created and where they stand, newest first: since an instant, at most so many.
    async fn pulse(&self, tenant: TenantId, since: Instant, limit: u32) -> Result<Vec<(Instant, RunState)>>;

    /// How far a list reaches if so many rows are looked at: the place of the last of them, of those that the index has
    /// which serves the list. None where there are fewer.
    async fn horizon(&self, tenant: TenantId, filter: &RunFilter, rows: u32) -> Result<Option<RunPlace>>;

    /// The last runs of each of these workflows, at most so many of each: by workflow, newest first.
    async fn last_runs(&self, tenant: TenantId, workflows: &[String], each: u32) -> Result<Vec<Glance>>;
}

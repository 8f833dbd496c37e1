//! Many runs at a glance, for whoever looks at them.

use async_trait::async_trait;
use model::{Instant, RunId, RunState, Task, TenantId};

use crate::{Result, RunFilter, RunPlace};

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
}

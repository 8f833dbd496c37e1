//! Many runs at a glance, for whoever looks at them.

use async_trait::async_trait;
use model::{Instant, RunId, RunState, Task, TenantId};

use crate::Result;

/// What is seen of many runs at once, at a cost that does not grow with history or with children of fan-outs.
#[async_trait]
pub trait Outlines: Send + Sync {
    /// The tasks of the definitions of some runs by run and index, without outputs and children.
    async fn outline(&self, runs: &[RunId]) -> Result<Vec<(RunId, Task)>>;

    /// When runs of a tenant were created and where they stand, newest first: since an instant, at most so many.
    async fn pulse(&self, tenant: TenantId, since: Instant, limit: u32) -> Result<Vec<(Instant, RunState)>>;
}

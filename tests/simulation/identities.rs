//! What the simulated store passes on about who may do what and for whom: nobody in a simulated world asks.

use async_trait::async_trait;
use model::{Instant, TaskKey, TenantId};
use store::{
    Checkpoint, Checkpoints, GrantRecord, Identities, IdentityFilter, Pause, Paused, Result, TenantFilter,
    TenantRecord, Tenants, TokenRecord, WorkflowPlace, WorkflowRecord, WorkflowSort, Workflows,
};
use uuid::Uuid;

use crate::store::SimulatedStore;

macro_rules! pass_on {
    ($part:ident $(fn $name:ident($($given:ident: $gift:ty),*) -> $got:ty;)*) => {
        #[async_trait]
        impl $part for SimulatedStore {
            $(async fn $name(&self, $($given: $gift),*) -> Result<$got> {
                self.inner.$name($($given),*).await
            })*
        }
    };
}

pass_on! {
    Identities
    fn add_token(token: &TokenRecord) -> ();
    fn token_by_hash(hash: &[u8; 32]) -> Option<TokenRecord>;
    fn tokens(filter: &IdentityFilter) -> Vec<TokenRecord>;
    fn revoke_token(filter: &IdentityFilter, id: Uuid, by: &str, at: Instant) -> Option<TokenRecord>;
    fn add_grant(grant: &GrantRecord) -> GrantRecord;
    fn grants_of(who: &[String]) -> Vec<GrantRecord>;
    fn grants(filter: &IdentityFilter) -> Vec<GrantRecord>;
    fn remove_grant(filter: &IdentityFilter, id: Uuid) -> Option<GrantRecord>;
    fn end_session(hash: &[u8; 32], until: Instant, now: Instant) -> ();
    fn session_ended(hash: &[u8; 32]) -> bool;
}

pass_on! {
    Workflows
    fn sorted_workflows(
        tenant: TenantId,
        sort: WorkflowSort,
        after: Option<&WorkflowPlace>,
        limit: u32
    ) -> Vec<WorkflowRecord>;
    fn pause_workflow(tenant: TenantId, workflow: &str, pause: Option<&Pause>, at: Instant) -> Paused;
}

pass_on! {
    Tenants
    fn tenants(filter: &TenantFilter) -> Vec<TenantRecord>;
}

pass_on! {
    Checkpoints
    fn keep_checkpoint(key: TaskKey, checkpoint: &Checkpoint) -> bool;
    fn checkpoint(key: TaskKey) -> Option<Checkpoint>;
}

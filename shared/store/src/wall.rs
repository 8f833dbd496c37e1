//! The second wall between tenants: while something is done for one of them, readers see no rows of another.
//!
//! The first wall is that every statement names its tenant. This one holds where a statement forgets to.

use std::future::Future;

use model::TenantId;

tokio::task_local! {
    static TENANT: Option<TenantId>;
}

/// Does something for a tenant: what lists and details read meanwhile, in this task, is of that tenant only.
pub async fn walled<T>(tenant: TenantId, work: impl Future<Output = T>) -> T {
    TENANT.scope(Some(tenant), work).await
}

/// Does something for whoever it concerns, though it is a tenant's turn: the engine settles for several at a time.
pub async fn unwalled<T>(work: impl Future<Output = T>) -> T {
    TENANT.scope(None, work).await
}

/// The tenant that something is done for now.
pub(crate) fn tenant() -> Option<TenantId> {
    TENANT.try_with(|tenant| *tenant).ok().flatten()
}

//! Reads for one caller.

use std::fmt;
use std::sync::Arc;

use auth::{Caller, Permission};
use store::{Postgres, Store, TenantConnection};

use crate::Result;

/// What one caller may see. Every connection it reads with is in the caller's tenant.
#[derive(Clone)]
pub struct Reader {
    pub(crate) caller: Caller,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) database: Postgres,
}

impl Reader {
    /// The caller it reads for.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// A connection that sees the rows of the caller's tenant only.
    pub(crate) async fn connection(&self) -> Result<TenantConnection> {
        Ok(self.database.reading().await?)
    }

    /// Refuses what the caller may not read of a workflow. Without the permission for any workflow they are told so;
    /// with it for others, this one is not there.
    pub(crate) fn check(&self, permission: Permission, workflow: &str, what: &str) -> Result<()> {
        self.caller.check_some(permission)?;
        Ok(self.caller.check(permission, workflow, what)?)
    }

    /// The one question about grants: whether the caller has a permission for a workflow.
    pub(crate) fn may(&self, permission: Permission, workflow: &str) -> bool {
        self.caller.may(permission, workflow)
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("caller", &self.caller).finish_non_exhaustive()
    }
}

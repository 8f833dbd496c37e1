//! Connections that read for one tenant.

use std::ops::{Deref, DerefMut};

use model::TenantId;
use sqlx::{AssertSqlSafe, PgConnection, Transaction};
use tokio::runtime::Handle;

use super::Postgres;
use super::beginning::begin_with;
use crate::Result;

/// A connection in the role that sees the rows of one tenant. Dropping it gives the role up.
#[derive(Debug)]
pub struct TenantConnection(Option<Transaction<'static, sqlx::Postgres>>);

impl Postgres {
    /// A connection in the role that sees the rows of this tenant: a statement that forgets its tenant finds nothing of
    /// another one.
    pub async fn reading_as(&self, tenant: TenantId) -> Result<TenantConnection> {
        // A number: it cannot be anything but a part of the statement.
        let begin = format!("begin; set local role ebbflow_tenant; set local ebb.tenant = '{}'", tenant.0);
        Ok(TenantConnection(Some(begin_with(&self.pool, AssertSqlSafe(begin)).await?)))
    }
}

/// Commits. A rollback would count as undone work in the database's statistics, which operators watch for conflicts.
impl Drop for TenantConnection {
    fn drop(&mut self) {
        if let (Some(transaction), Ok(here)) = (self.0.take(), Handle::try_current()) {
            here.spawn(transaction.commit());
        }
    }
}

impl Deref for TenantConnection {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        self.0.as_ref().expect("only dropping it takes the transaction")
    }
}

impl DerefMut for TenantConnection {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.0.as_mut().expect("only dropping it takes the transaction")
    }
}

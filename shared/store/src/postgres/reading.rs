//! Connections to read with: of one tenant only, while something is done for one.

use std::ops::{Deref, DerefMut};

use model::TenantId;
use sqlx::pool::PoolConnection;
use sqlx::{AssertSqlSafe, PgConnection, Transaction};
use tokio::runtime::Handle;

use super::Postgres;
use super::beginning::begin_with;
use crate::{Result, wall};

/// A connection to read with.
#[derive(Debug)]
pub enum TenantConnection {
    /// Sees everything.
    Open(PoolConnection<sqlx::Postgres>),
    /// Sees one tenant. There until it is let go.
    Isolated(Option<Transaction<'static, sqlx::Postgres>>),
}

impl Postgres {
    /// The same database, of which [`reading`](Self::reading) sees one tenant's rows.
    pub fn in_tenant(&self, tenant: TenantId) -> Self {
        Self { tenant: Some(tenant), ..self.clone() }
    }

    /// A connection to read with. For a tenant it takes on a role that sees that tenant's rows only, until it is let go.
    pub async fn reading(&self) -> Result<TenantConnection> {
        let Some(tenant) = self.tenant.or_else(wall::tenant) else {
            return Ok(TenantConnection::Open(self.pool.acquire().await?));
        };
        // A number: nothing that could be anything else than a part of the statement.
        let begin = format!("begin; set local role ebbflow_tenant; set local ebb.tenant = '{}'", tenant.0);
        Ok(TenantConnection::Isolated(Some(begin_with(&self.pool, AssertSqlSafe(begin)).await?)))
    }
}

/// What is only let go is rolled back, and counts as work that was undone: whoever watches for conflicts would see some.
impl Drop for TenantConnection {
    fn drop(&mut self) {
        let Self::Isolated(transaction) = self else { return };
        if let (Some(transaction), Ok(here)) = (transaction.take(), Handle::try_current()) {
            here.spawn(transaction.commit());
        }
    }
}

impl Deref for TenantConnection {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        match self {
            Self::Open(connection) => connection,
            Self::Isolated(transaction) => transaction.as_ref().expect("it is there until it is let go"),
        }
    }
}

impl DerefMut for TenantConnection {
    fn deref_mut(&mut self) -> &mut PgConnection {
        match self {
            Self::Open(connection) => connection,
            Self::Isolated(transaction) => transaction.as_mut().expect("it is there until it is let go"),
        }
    }
}

//! Connections to read with: of one tenant only, while something is done for one.

use std::ops::{Deref, DerefMut};

use sqlx::pool::PoolConnection;
use sqlx::{AssertSqlSafe, PgConnection, Transaction};
use tokio::runtime::Handle;

use super::Postgres;
use super::beginning::begin_with;
use crate::{Result, wall};

/// A connection to read with.
pub(super) enum Reading {
    /// Sees everything.
    Open(PoolConnection<sqlx::Postgres>),
    /// Sees one tenant. There until it is let go.
    Walled(Option<Transaction<'static, sqlx::Postgres>>),
}

impl Postgres {
    /// A connection to read with. For a tenant it takes on a role that sees that tenant's rows only, until it is let go.
    pub(super) async fn reading(&self) -> Result<Reading> {
        let Some(tenant) = wall::tenant() else { return Ok(Reading::Open(self.pool.acquire().await?)) };
        // A number: nothing that could be anything else than a part of the statement.
        let begin = format!("begin; set local role ebbflow_tenant; set local ebb.tenant = '{}'", tenant.0);
        Ok(Reading::Walled(Some(begin_with(&self.pool, AssertSqlSafe(begin)).await?)))
    }
}

/// What is only let go is rolled back, and counts as work that was undone: whoever watches for conflicts would see some.
impl Drop for Reading {
    fn drop(&mut self) {
        let Self::Walled(transaction) = self else { return };
        if let (Some(transaction), Ok(here)) = (transaction.take(), Handle::try_current()) {
            here.spawn(transaction.commit());
        }
    }
}

impl Deref for Reading {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        match self {
            Self::Open(connection) => connection,
            Self::Walled(transaction) => transaction.as_ref().expect("it is there until it is let go"),
        }
    }
}

impl DerefMut for Reading {
    fn deref_mut(&mut self) -> &mut PgConnection {
        match self {
            Self::Open(connection) => connection,
            Self::Walled(transaction) => transaction.as_mut().expect("it is there until it is let go"),
        }
    }
}

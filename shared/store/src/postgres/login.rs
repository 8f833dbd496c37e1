//! Logging in with a password that changes, and letting others log in.

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor};

use super::Postgres;
use super::connecting::OWNER;
use crate::Result;

impl Postgres {
    /// Opens new connections with another password. Those that are open stay.
    pub fn use_password(&self, password: &str) {
        let options = (*self.pool.connect_options()).clone();
        self.pool.set_connect_options(options.password(password));
    }

    /// Lets database users assume the role that owns the tables. They need no other rights, and get none. Repeating it changes
    /// nothing.
    pub async fn grant_to(url: &str, users: &[String]) -> Result<()> {
        let mut connection = url.parse::<PgConnectOptions>()?.connect().await?;
        for user in users {
            // A grant takes no parameters; Postgres itself knows how names are quoted.
            let grant = "select format('grant %I to %I', $1::text, $2::text)";
            let grant = sqlx::query_scalar(grant).bind(OWNER).bind(user);
            let grant: String = grant.fetch_one(&mut connection).await?;
            connection.execute(AssertSqlSafe(grant)).await?;
        }
        Ok(connection.close().await?)
    }
}

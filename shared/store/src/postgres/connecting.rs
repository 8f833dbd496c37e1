//! Connections, and bringing a database up to date.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, Executor};

use super::{MIGRATIONS, Postgres};
use crate::{Error, Result};

/// A connection that was used within this time is taken to be alive without asking.
const PING_AFTER: Duration = Duration::from_secs(30);

/// The role that owns the tables.
pub(super) const OWNER: &str = "ebbflow_owner";

/// Admits one migrating user of a database at a time: Postgres refuses two that grant rights on one schema at once. Closing the
/// connection releases it.
const LOCK_ROLES: &str = "select pg_advisory_lock(hashtextextended('ebbflow roles', 0))";

/// The statements that create the roles, run by the migrating user.
const ROLES: &str = include_str!("../../../../migrations/roles.sql");

/// A transaction that a stopped process left open gives its locks back, and no statement runs away. Every statement has
/// its index and joins by key: a plan that was made while a table was still small must not read it whole when it has
/// grown.
///
/// Every user assumes the role that owns the tables: a partition made by one of them can be altered by another.
const SETTINGS: [(&str, &str); 7] = [
    ("role", OWNER),
    ("idle_in_transaction_session_timeout", "10s"),
    ("statement_timeout", "30s"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("jit", "off"),
];

/// How many connections a process opens, how long it keeps them, and how long a caller waits for one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connections {
    /// The maximum number of open connections.
    pub max: u32,
    /// A connection that is unused for this long is closed: idle functions keep no database awake.
    pub idle_timeout: Duration,
    /// A caller that has waited for a connection this long gets [`Error::Unavailable`].
    pub acquire_timeout: Duration,
}

impl Connections {
    /// How long an unused connection stays open by default.
    pub const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

    /// How long a caller waits for a connection by default.
    const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

    /// At most this number of connections, with the default timeouts.
    pub const fn at_most(max: u32) -> Self {
        Self { max, idle_timeout: Self::IDLE_TIMEOUT, acquire_timeout: Self::ACQUIRE_TIMEOUT }
    }
}

impl Postgres {
    /// Connects to a migrated database, with at most `max_connections` connections.
    pub async fn connect(url: &str, max_connections: u32) -> Result<Self> {
        Self::open(url, None, Connections::at_most(max_connections)).await
    }

    /// Connects as [`connect`](Self::connect) does, with a password that the address does not hold, if one is given.
    pub async fn open(url: &str, password: Option<&str>, connections: Connections) -> Result<Self> {
        let options: PgConnectOptions = url.parse()?;
        let options = match password {
            Some(password) => options.password(password),
            None => options,
        };
        Self::connect_with(options, connections).await
    }

    /// Checks that a URL can be parsed, without connecting. Returns what is wrong with it.
    pub fn check_url(url: &str) -> std::result::Result<(), String> {
        match url.parse::<PgConnectOptions>() {
            Ok(_) => Ok(()),
            Err(sqlx::Error::Configuration(reason)) => Err(reason.to_string()),
            Err(other) => Err(other.to_string()),
        }
    }

    async fn connect_with(options: PgConnectOptions, connections: Connections) -> Result<Self> {
        let pool = PgPoolOptions::new()
            .max_connections(connections.max)
            .acquire_timeout(connections.acquire_timeout)
            .idle_timeout(connections.idle_timeout)
            .test_before_acquire(false)
            .before_acquire(|connection, usage| {
                Box::pin(async move { Ok(usage.idle_for < PING_AFTER || connection.ping().await.is_ok()) })
            })
            .connect_with(options.application_name("ebbflow").options(SETTINGS))
            .await
            .map_err(Error::on_connect)?;
        Ok(Self { pool })
    }

    /// The number of the newest migration that this program knows.
    pub fn newest_migration() -> Option<i64> {
        MIGRATIONS.iter().map(|migration| migration.version).max()
    }

    /// Brings a database to the newest schema. Migrating twice, or from several processes at once, is safe:
    /// advisory locks admit one at a time.
    pub async fn migrate(url: &str) -> Result<()> {
        let options: PgConnectOptions = url.parse()?;
        let mut migrating_user = options.connect().await?;
        migrating_user.execute(LOCK_ROLES).await?;
        migrating_user.execute(ROLES).await?;
        migrating_user.close().await?;
        let mut owner = options.options([("role", OWNER)]).connect().await?;
        MIGRATIONS.run(&mut owner).await?;
        Ok(owner.close().await?)
    }
}

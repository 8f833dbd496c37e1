//! A running server: start, databases, stop.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::account::Account;
use crate::choice::choose;
use crate::cluster::{Cluster, START_TIMEOUT, USER};
use crate::directories::Directories;
use crate::postmaster::Postmaster;
use crate::{Error, Kind, Preference, orphan};

/// How long a server may take to flush everything when it stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// How long to wait before a server that does not start is tried again.
const RESTART_INTERVAL: Duration = Duration::from_secs(1);

/// The file that is locked while the folder is in use.
const LOCK: &str = "ebbflow.lock";

/// The database that every cluster has, used to create others.
const MAINTENANCE: &str = "postgres";

/// Whether committed data survives a crash of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// It survives: every commit is flushed to disk.
    #[default]
    Full,
    /// It may be lost with the whole cluster. For tests, which run faster.
    None,
}

/// How to start a server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Which Postgres to use.
    pub preference: Preference,
    /// Whether commits survive a crash of the machine.
    pub durability: Durability,
    /// Additional settings, such as `shared_preload_libraries=pg_stat_statements`.
    pub settings: &'static [&'static str],
}

impl From<Preference> for Options {
    fn from(preference: Preference) -> Options {
        Options { preference, ..Options::default() }
    }
}

/// A running Postgres that belongs to this process.
#[derive(Debug)]
pub struct Server {
    kind: Kind,
    cluster: Cluster,
    options: Options,
    // Declared before the lock, so that it is dropped first.
    postmaster: Mutex<Postmaster>,
    _lock: File,
}

impl Server {
    /// Serves the cluster in `folder`, which is created on first use and must have no other use.
    pub async fn start(folder: &Path) -> Result<Server, Error> {
        Server::start_with(folder, Options::default()).await
    }

    /// The same with a [`Preference`] or full [`Options`].
    pub async fn start_with(folder: &Path, options: impl Into<Options>) -> Result<Server, Error> {
        let options = options.into();
        fs::create_dir_all(folder).map_err(Error::at(folder))?;
        let folder = folder.canonicalize().map_err(Error::at(folder))?;
        let lock = lock(&folder)?;

        let (kind, directories) = choose(&folder, options.preference)?;
        if directories.home != folder {
            tracing::info!(
                folder = %folder.display(), home = %directories.home.display(),
                "The account that runs Postgres cannot access {}: its data is in {}",
                folder.display(), directories.home.display()
            );
        }
        directories.create()?;
        let programs = programs(&kind, &directories.home).await?;
        let data = directories.home.join(kind.cluster());
        let cluster = Cluster { data, programs, directories };
        cluster.create(options.durability).await?;
        let postmaster = cluster.serve(options).await?;
        Ok(Server { kind, cluster, options, postmaster: Mutex::new(postmaster), _lock: lock })
    }

    /// Removes `folder` with all data of its servers. Fails while a server runs.
    pub async fn remove(folder: &Path) -> Result<(), Error> {
        let folder = folder.canonicalize().map_err(Error::at(folder))?;
        // A folder without this file is not ours, and its data must not be deleted by mistake.
        folder.join(LOCK).metadata().map_err(Error::at(&folder.join(LOCK)))?;
        let _lock = lock(&folder)?;
        for account in [Account::for_postgres(), Account::current()] {
            let directories = Directories::of(&folder, account);
            for cluster in directories.clusters() {
                orphan::stop(&cluster, START_TIMEOUT).await?;
            }
            directories.remove()?;
        }
        Ok(())
    }

    /// The Postgres that serves.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The URL of `database`.
    pub fn url(&self, database: &str) -> String {
        let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        format!(
            "postgres://{USER}@{}/{}",
            encode(&self.cluster.directories.socket.to_string_lossy()),
            encode(database)
        )
    }

    /// Creates `database`, unless it exists.
    pub async fn create_database(&self, database: &str) -> Result<(), Error> {
        let mut connection = PgConnection::connect(&self.url(MAINTENANCE)).await?;
        let known = sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)");
        if !known.bind(database).fetch_one(&mut connection).await? {
            let create = AssertSqlSafe(format!("CREATE DATABASE {}", quoted(database)));
            sqlx::raw_sql(create).execute(&mut connection).await?;
        }
        Ok(connection.close().await?)
    }

    /// Creates `database` as a copy of `template`, which must have no sessions.
    pub async fn copy_database(&self, database: &str, template: &str) -> Result<(), Error> {
        let mut connection = PgConnection::connect(&self.url(MAINTENANCE)).await?;
        let create = format!("CREATE DATABASE {} TEMPLATE {}", quoted(database), quoted(template));
        sqlx::raw_sql(AssertSqlSafe(create)).execute(&mut connection).await?;
        Ok(connection.close().await?)
    }

    /// Drops `database`, if it exists, and ends its sessions.
    pub async fn drop_database(&self, database: &str) -> Result<(), Error> {
        let mut connection = PgConnection::connect(&self.url(MAINTENANCE)).await?;
        let drop = AssertSqlSafe(format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", quoted(database)));
        sqlx::raw_sql(drop).execute(&mut connection).await?;
        Ok(connection.close().await?)
    }

    /// Restarts the server whenever it ends, such as by `kill -9`, until this future is dropped. Commits survive; sessions do
    /// not.
    pub async fn keep_running(&self) {
        loop {
            let end = self.postmaster().end();
            end.await;
            tracing::warn!("Postgres has ended unexpectedly and is restarted. {}", self.cluster.last_words());
            let mut tries = tokio::time::interval(RESTART_INTERVAL);
            loop {
                tries.tick().await;
                match self.cluster.serve(self.options).await {
                    Ok(restarted) => {
                        *self.postmaster() = restarted;
                        tracing::info!("Postgres is up again");
                        break;
                    }
                    Err(error) => {
                        tracing::error!("Postgres could not be restarted; trying again: {error}")
                    }
                }
            }
        }
    }

    /// Ends all sessions and stops the server.
    pub async fn stop(self) {
        let postmaster = self.postmaster.into_inner().unwrap_or_else(PoisonError::into_inner);
        postmaster.stop(STOP_TIMEOUT).await;
    }

    fn postmaster(&self) -> MutexGuard<'_, Postmaster> {
        self.postmaster.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The folder of the programs. Unpacking takes a second or two, so it uses a blocking thread.
async fn programs(kind: &Kind, home: &Path) -> Result<PathBuf, Error> {
    let (kind, home) = (kind.clone(), home.to_owned());
    let unpacked = tokio::task::spawn_blocking(move || kind.programs(&home)).await;
    unpacked.expect("unpacking does not panic and is not cancelled")
}

/// A quoted identifier: names cannot be parameters of these statements.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Locks `folder`; the system releases the lock however this process ends.
fn lock(folder: &Path) -> Result<File, Error> {
    let path = folder.join(LOCK);
    let file = File::create(&path).map_err(Error::at(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::InUse(folder.to_owned())),
        Err(TryLockError::Error(e)) => Err(Error::at(&path)(e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_server_of_a_dead_owner_is_stopped_before_a_new_one_starts() {
        let folder = tempfile::tempdir().unwrap();
        let Server { postmaster, _lock, .. } = Server::start(folder.path()).await.unwrap();
        // The situation on systems that do not kill children with their parent.
        std::mem::forget(postmaster);
        drop(_lock);

        let server = Server::start(folder.path()).await.unwrap();
        let mut connection = PgConnection::connect(&server.url(MAINTENANCE)).await.unwrap();
        connection.ping().await.unwrap();
        server.stop().await;
    }

    #[tokio::test]
    async fn a_folder_of_another_purpose_is_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.txt"), "years of work").unwrap();
        assert!(Server::remove(folder.path()).await.is_err());
        assert!(folder.path().join("thesis.txt").exists());
    }
}

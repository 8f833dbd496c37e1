//! A server, from start to stop.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::account::Account;
use crate::choice::choose;
use crate::cluster::{Cluster, START_TIMEOUT, USER};
use crate::place::Place;
use crate::postmaster::Postmaster;
use crate::{Error, Kind, Preference, orphan};

/// For a server to flush everything when it is stopped.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// The file whose lock says that the folder is in use.
const LOCK: &str = "ebbflow.lock";

/// The database that every cluster has, from which others are made.
const MAINTENANCE: &str = "postgres";

/// What becomes of committed data when the machine stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// It is on disk.
    #[default]
    Full,
    /// It may be lost, and the whole cluster with it: for tests, which are faster so.
    None,
}

/// How to start a server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Which Postgres.
    pub preference: Preference,
    /// How safe.
    pub durability: Durability,
    /// Settings beside those that every server has, such as `shared_preload_libraries=pg_stat_statements`.
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
    socket: PathBuf,
    // Before the lock, so that it is dropped before it.
    postmaster: Postmaster,
    _lock: File,
}

impl Server {
    /// Serves the cluster in `folder`, which is made on first use and must be used for nothing else.
    pub async fn start(folder: &Path) -> Result<Server, Error> {
        Server::start_with(folder, Options::default()).await
    }

    /// The same with a choice: a [`Preference`] or full [`Options`].
    pub async fn start_with(folder: &Path, options: impl Into<Options>) -> Result<Server, Error> {
        let options = options.into();
        fs::create_dir_all(folder).map_err(Error::at(folder))?;
        let folder = folder.canonicalize().map_err(Error::at(folder))?;
        let lock = lock(&folder)?;

        let (kind, place) = choose(&folder, options.preference)?;
        if place.home != folder {
            tracing::info!(
                folder = %folder.display(), home = %place.home.display(),
                "the folder is out of reach for the account that runs Postgres: its data is kept elsewhere"
            );
        }
        place.prepare()?;
        let programs = programs(&kind, &place.home).await?;
        let data = place.home.join(kind.cluster());
        let socket = place.socket.clone();
        let cluster = Cluster { data, programs, place };
        cluster.create(options.durability).await?;
        let postmaster = cluster.serve(options).await?;
        Ok(Server { kind, socket, postmaster, _lock: lock })
    }

    /// Removes `folder` and all data of its servers; refused while one of them is in use.
    pub async fn remove(folder: &Path) -> Result<(), Error> {
        let folder = folder.canonicalize().map_err(Error::at(folder))?;
        // Without this file the folder is not ours: a mistake must not delete data.
        folder.join(LOCK).metadata().map_err(Error::at(&folder.join(LOCK)))?;
        let _lock = lock(&folder)?;
        for account in [Account::for_postgres(), Account::current()] {
            let place = Place::of(&folder, account);
            for cluster in place.clusters() {
                orphan::end(&cluster, START_TIMEOUT).await?;
            }
            place.remove()?;
        }
        Ok(())
    }

    /// Which Postgres it is.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Where to connect to `database`.
    pub fn url(&self, database: &str) -> String {
        let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        format!("postgres://{USER}@{}/{}", encode(&self.socket.to_string_lossy()), encode(database))
    }

    /// Creates `database`, unless it is there.
    pub async fn create_database(&self, database: &str) -> Result<(), Error> {
        let mut connection = PgConnection::connect(&self.url(MAINTENANCE)).await?;
        let known = sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)");
        if !known.bind(database).fetch_one(&mut connection).await? {
            let create = AssertSqlSafe(format!("CREATE DATABASE {}", quoted(database)));
            sqlx::raw_sql(create).execute(&mut connection).await?;
        }
        Ok(connection.close().await?)
    }

    /// Creates `database` as a copy of `template`, in which there is no session.
    pub async fn copy_database(&self, database: &str, template: &str) -> Result<(), Error> {
        let mut connection = PgConnection::connect(&self.url(MAINTENANCE)).await?;
        let create = format!("CREATE DATABASE {} TEMPLATE {}", quoted(database), quoted(template));
        sqlx::raw_sql(AssertSqlSafe(create)).execute(&mut connection).await?;
        Ok(connection.close().await?)
    }

    /// Drops `database`, if it is there, and ends the sessions in it.
    pub async fn drop_database(&self, database: &str) -> Result<(), Error> {
        let mut connection = PgConnection::connect(&self.url(MAINTENANCE)).await?;
        let drop = AssertSqlSafe(format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", quoted(database)));
        sqlx::raw_sql(drop).execute(&mut connection).await?;
        Ok(connection.close().await?)
    }

    /// Ends all sessions and the server.
    pub async fn stop(self) {
        self.postmaster.stop(STOP_TIMEOUT).await;
    }
}

/// Unpacking takes a second or two, off the runtime's threads.
async fn programs(kind: &Kind, home: &Path) -> Result<PathBuf, Error> {
    let (kind, home) = (kind.clone(), home.to_owned());
    let unpacked = tokio::task::spawn_blocking(move || kind.programs(&home)).await;
    unpacked.expect("unpacking does not panic and is not cancelled")
}

/// A name cannot be a parameter of a statement; in quotes it is safe, once quotes within it are doubled.
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
    async fn the_server_of_an_owner_that_is_gone_is_ended_before_a_new_one_starts() {
        let folder = tempfile::tempdir().unwrap();
        let Server { postmaster, _lock, .. } = Server::start(folder.path()).await.unwrap();
        // Such is the state of things where the system does not end children with their parents.
        std::mem::forget(postmaster);
        drop(_lock);

        let server = Server::start(folder.path()).await.unwrap();
        let mut connection = PgConnection::connect(&server.url(MAINTENANCE)).await.unwrap();
        connection.ping().await.unwrap();
        server.stop().await;
    }

    #[tokio::test]
    async fn a_folder_that_never_was_a_servers_is_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.txt"), "years of work").unwrap();
        assert!(Server::remove(folder.path()).await.is_err());
        assert!(folder.path().join("thesis.txt").exists());
    }
}

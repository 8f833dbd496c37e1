//! Errors of starting and using a server.

use std::io;
use std::path::{Path, PathBuf};

/// Why a server cannot be started or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No suitable Postgres was found.
    #[error("no {0} found: install PostgreSQL 15 or later, or provide the URL of a database")]
    NotFound(&'static str),
    /// Another process has a server in this folder.
    #[error("{0} is in use by another process: stop it, or choose another folder")]
    InUse(PathBuf),
    /// The folder's data belongs to a version of Postgres that is not installed.
    #[error(
        "{0} was created by a version of Postgres that is not installed here: install that version, or move the folder \
         away to start with an empty database"
    )]
    OtherVersion(PathBuf),
    /// Another user owns a folder that should be private.
    #[error("{0} belongs to another user: remove it, or choose another folder")]
    NotOurs(PathBuf),
    /// `initdb` exited with an error.
    #[error("initdb could not create a cluster in {folder}: {output}")]
    Initdb {
        /// The folder of the cluster.
        folder: PathBuf,
        /// The error output of initdb.
        output: String,
    },
    /// The server ended, or was not ready in time.
    #[error("Postgres did not start; the last lines of {log}:\n{tail}")]
    NotStarted {
        /// The path of the server's log.
        log: PathBuf,
        /// The last lines of the log.
        tail: String,
    },
    /// The server of a dead owner does not stop.
    #[error("process {pid} still serves {folder} although its owner is gone: kill it and try again")]
    Lingering {
        /// The process id of the old server.
        pid: i32,
        /// The folder of its cluster.
        folder: PathBuf,
    },
    /// A file could not be read, written or run.
    #[error("{path}: {source}")]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The server rejected a statement.
    #[error(transparent)]
    Sql(#[from] sqlx::Error),
}

impl Error {
    /// Adds the path to an I/O error: `fs::read(path).map_err(Error::at(path))`.
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { path: path.to_owned(), source }
    }
}

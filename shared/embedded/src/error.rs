//! What can go wrong on the way to a running server.

use std::io;
use std::path::{Path, PathBuf};

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither an installed Postgres nor one compiled in.
    #[error("no {0} was found: install PostgreSQL 15 or later, or give the URL of a database")]
    NotFound(&'static str),
    /// Another process has a server in this folder.
    #[error("{0} is in use by another process: stop it, or choose another folder")]
    InUse(PathBuf),
    /// The folder's data was written by a Postgres that is not here.
    #[error(
        "{0} was made by another version of Postgres than those found here: install that version, or move \
         the folder away to start afresh"
    )]
    OtherVersion(PathBuf),
    /// A folder that should be private was put there by someone else.
    #[error("{0} belongs to another user: remove it, or choose another folder")]
    NotOurs(PathBuf),
    /// `initdb` refused.
    #[error("initdb could not make a cluster in {folder}: {output}")]
    Initdb {
        /// Where the cluster should have been.
        folder: PathBuf,
        /// What initdb said.
        output: String,
    },
    /// The server ended, or did not get ready in time.
    #[error("Postgres did not start; the end of {log} says:\n{tail}")]
    NotStarted {
        /// The server's log.
        log: PathBuf,
        /// Its last lines.
        tail: String,
    },
    /// The server of a dead owner does not go away.
    #[error("process {pid} still serves {folder} although its owner is gone: end it and try again")]
    Lingering {
        /// The old server.
        pid: i32,
        /// Its cluster.
        folder: PathBuf,
    },
    /// A file could not be read, written or run.
    #[error("{path}: {source}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The server refused a statement.
    #[error(transparent)]
    Sql(#[from] sqlx::Error),
}

impl Error {
    /// Says which file an error is about: `fs::read(path).map_err(Error::at(path))`.
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { path: path.to_owned(), source }
    }
}

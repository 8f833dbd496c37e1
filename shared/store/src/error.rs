//! The errors of the store.

/// An error of the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A row was changed by someone else in between: the decision must be made again on what is true now.
    #[error("another change came first")]
    Conflict,
    /// The store is away or overloaded; the same call may succeed later.
    #[error("the database is not available: {0}")]
    Unavailable(#[source] sqlx::Error),
    /// The database refused, or holds what this version cannot read.
    #[error("the database refused: {0}")]
    Database(#[source] sqlx::Error),
    /// The role that owns the tables is missing, or this user may not assume it.
    #[error(
        "the database is not prepared for this user: {0}; run `ebb migrate`, with `--grant-to` if functions have users of their own"
    )]
    NotPrepared(#[source] sqlx::Error),
    /// The outputs that were asked for are larger together than [`MAX_OUTPUTS`](crate::MAX_OUTPUTS).
    #[error("the outputs are more than {} MiB together", crate::MAX_OUTPUTS >> 20)]
    TooLarge,
    /// A stored value that this version cannot read.
    #[error("unreadable {what}: {why}")]
    Unreadable {
        /// The kind of value.
        what: &'static str,
        /// A description of the problem.
        why: String,
    },
}

/// A result of the store.
pub type Result<T> = std::result::Result<T, Error>;

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        let kind = kind(&error);
        if !matches!(kind, Kind::DecideAgain) {
            metrics::counter!("ebbflow_database_errors_total").increment(1);
            tracing::warn!(event = "database_error", "Database error: {error}");
        }
        match kind {
            Kind::DecideAgain => Self::Conflict,
            Kind::TryLater => Self::Unavailable(error),
            Kind::Refused => Self::Database(error),
        }
    }
}

impl Error {
    /// An error of a new connection, which assumes a role at once.
    pub(crate) fn on_connect(error: sqlx::Error) -> Self {
        // No such role; not a member of it.
        let codes = ["22023", "42704", "42501"];
        let refused = error.as_database_error().and_then(|refusal| refusal.code());
        match refused.is_some_and(|code| codes.contains(&&*code)) {
            true => Self::NotPrepared(error),
            false => error.into(),
        }
    }
}

impl From<sqlx::migrate::MigrateError> for Error {
    fn from(error: sqlx::migrate::MigrateError) -> Self {
        match error {
            sqlx::migrate::MigrateError::Execute(error) => error.into(),
            other => Self::Database(other.into()),
        }
    }
}

enum Kind {
    DecideAgain,
    TryLater,
    Refused,
}

fn kind(error: &sqlx::Error) -> Kind {
    match error {
        sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::WorkerCrashed => Kind::TryLater,
        sqlx::Error::Database(refusal) => match refusal.code().as_deref() {
            // Serialization failure, deadlock.
            Some("40001" | "40P01") => Kind::DecideAgain,
            // A statement, a transaction or a session that took too long, a lock that was not to be had, a server
            // that stops, crashed, starts, or cannot write since it stands by for another.
            Some("57014" | "25P03" | "57P05" | "55P03" | "57P01" | "57P02" | "57P03" | "25006") => {
                Kind::TryLater
            }
            // Connections (08…) and resources, among them "too many connections" (53…).
            Some(code) if code.starts_with("08") || code.starts_with("53") => Kind::TryLater,
            _ => Kind::Refused,
        },
        _ => Kind::Refused,
    }
}

//! Why a read fails.

/// Why a read fails.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller may not read this.
    #[error(transparent)]
    Denied(#[from] auth::Denied),
    /// The database failed to answer.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

/// The result of a read.
pub type Result<T> = std::result::Result<T, Error>;

//! The database that readers share.

use auth::Caller;
use store::Postgres;

use crate::Reader;

/// A handle on the database; cheap to clone.
#[derive(Clone, Debug)]
pub struct Database {
    postgres: Postgres,
}

impl Database {
    /// Reads from the database of this store, over the same connections.
    pub fn new(store: &Postgres) -> Self {
        Self { postgres: store.clone() }
    }

    /// The only way to a reader: what it returns follows from the caller's tenant and grants.
    pub fn reader(&self, caller: &Caller) -> Reader {
        Reader { caller: caller.clone(), postgres: self.postgres.clone() }
    }
}

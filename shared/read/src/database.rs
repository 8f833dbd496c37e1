//! The database that readers share.

use std::sync::Arc;

use auth::Caller;
use store::Postgres;

use crate::Reader;

/// A handle on the database; cheap to clone.
#[derive(Clone, Debug)]
pub struct Database {
    store: Postgres,
}

impl Database {
    /// Reads from the database of this store, over the same connections.
    pub fn new(store: &Postgres) -> Self {
        Self { store: store.clone() }
    }

    /// What this caller may see.
    pub fn reader(&self, caller: &Caller) -> Reader {
        let database = self.store.in_tenant(caller.tenant);
        Reader { caller: caller.clone(), store: Arc::new(database.clone()), database }
    }
}

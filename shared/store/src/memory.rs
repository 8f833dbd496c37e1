//! The store in memory: for virtual time, where a thousand runs must pass in a second and a seed must replay.
//!
//! Transactions run one after the other, whatever they lock; readers see what was committed and never wait, as in Postgres.
//! Nothing here needs a runtime or a clock, and every result has one order only.

mod admission;
mod attempts;
mod backfills;
mod breakers;
mod constraints;
mod dead_letters;
mod definitions;
mod draft;
mod inspection;
mod load;
mod maintenance;
mod offers;
mod outbox;
mod retention;
mod runs;
mod schedules;
mod shares;
mod slots;
mod tables;
mod tenants;
mod timers;
mod transaction;
mod triggers;
mod workers;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tables::Tables;

/// All state in memory; clones share it.
#[derive(Clone, Default)]
pub struct Memory {
    shared: Shared,
    /// Held by the one open transaction.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// The tables, locked for the moment of one read or one write and never across an `await`.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Tables>>);

impl Shared {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The ledger: the state that decisions need, behind one small trait per aggregate. Two stores implement them next to
//! their data: [`Postgres`], and [`Memory`] for virtual time. Both pass the suite in `tests/conformance`.
//!
//! Every decision goes through a [`Transaction`]: it locks runs, reads the rows that the decision touches, writes the
//! changes and commits. The run's row is the lock of everything in the run; runs are locked in id order, so
//! transactions cannot deadlock on them. Revisions are the second fence: a row is written only over the revision it was
//! read at, and [`Error::Conflict`] reports that it was not.

mod attempts;
mod backfills;
mod breakers;
mod chunks;
mod dead_letters;
mod definitions;
mod error;
mod foreign;
mod inspection;
mod load;
mod maintenance;
mod memory;
mod normal;
mod offers;
mod outbox;
mod outputs;
mod postgres;
mod records;
mod retention;
mod runs;
mod schedules;
mod slots;
mod tenants;
mod timers;
mod transaction;
mod triggers;
mod workers;

pub use attempts::{Attempts, Checkpoint, MAX_LOG_BYTES, MAX_LOG_LINES};
pub use backfills::*;
pub use breakers::{Breakers, TransactionBreakers};
pub use chunks::log_cut;
pub use dead_letters::DeadLetters;
pub use definitions::{Definitions, Paused};
pub use error::{Error, Result};
pub use foreign::{ForeignConnection, ForeignDatabase, Listening};
pub use inspection::{Fault, Finding, Inspection, Inspections};
pub use load::{ANY_QUEUE, Load, Measured, Pool, TenantLoad, Usage};
pub use maintenance::Maintenance;
pub use memory::Memory;
pub use normal::{label as storable_label, schedule_of_date, text as storable};
pub use offers::{OfferFeed, OfferedTask, Offers};
pub use outbox::Outbox;
pub use outputs::MAX_OUTPUTS;
pub use postgres::bounded::{Bounded, MAX_PAGE_BYTES};
#[doc(hidden)]
pub use postgres::generated_statements;
pub use postgres::{Connections, Postgres, TenantConnection, bounded, rows, select};
pub use records::*;
pub use retention::{Part, Retention};
pub use runs::Runs;
pub use schedules::*;
pub use slots::Slots;
pub use tenants::Tenants;
pub use timers::Timers;
pub use transaction::{Transaction, TransactionSlots, TransactionTriggers, Transactions};
pub use triggers::{PollRecord, TriggerEvent, TriggerFilter, TriggerPause, TriggerRecord, Triggers};
pub use workers::{DEAD_WORKER_TTL, Workers};

/// Declares [`Store`] as the sum of the traits.
macro_rules! sum_of {
    ($first:ident $(, $part:ident)* $(,)?) => {
        /// All of the store: whatever implements every part of it.
        pub trait Store: $first $(+ $part)* {}
        impl<S: $first $(+ $part)*> Store for S {}
    };
}

sum_of! {
    Transactions, Definitions, Runs, Attempts, Timers, Slots, Tenants, Schedules, Backfills, Triggers, Workers,
    Offers, Breakers, DeadLetters, Outbox, Maintenance, Inspections, Retention, Measured,
}

//! Reads for people: the single entry point for reads on behalf of a caller.
//!
//! A [`Reader`] is built only from a [`Caller`](auth::Caller). It reads in the database role that sees the rows of the
//! caller's tenant, and checks the caller's grants before it returns anything about a workflow. Resources a caller may
//! not see are not found; resources they may see but not read are forbidden.
//!
//! A reader hands out a small reader for each subject: [`Runs`], [`Workflows`], [`Schedules`], [`Triggers`], [`Backfills`],
//! [`Timers`], [`Slots`] and [`Tenants`].
//!
//! `Follow` shows run summaries. Everything else about a run (its tasks, outputs, events and logs) is read through a
//! [`RunReader`], which exists only for callers with `Read`. A [`Platform`], which exists only for callers with a permission in
//! every tenant, reads data that belongs to no tenant.

mod backfills;
mod change_feed;
mod database;
mod error;
mod limits;
mod listing;
mod platform;
mod queues;
mod reader;
mod run;
mod runs;
mod schedules;
mod tenants;
mod timers;
mod triggers;
mod workers;
mod workflows;

pub use backfills::*;
pub use change_feed::*;
pub use database::*;
pub use error::*;
pub use limits::*;
pub use listing::*;
pub use platform::*;
pub use queues::*;
pub use reader::*;
pub use run::*;
pub use runs::*;
pub use schedules::*;
pub use tenants::*;
pub use timers::*;
pub use triggers::*;
pub use workers::*;
pub use workflows::*;

// The rows that reads return.
pub use store::{
    BackfillRecord, BreakerRecord, ConcurrencyMember, DeadLetter, DeadLetterFilter, Excerpt, LimitRecord,
    ListedRun, ListedTask, LogLine, RunRecord, ScheduleRecord, SlotWait, Starter, TaskRecord, TriggerEvent,
    TriggerRecord, VersionRecord, WorkflowRecord,
};

/// The statements that are put together in code: tests prepare and plan them with all others.
#[doc(hidden)]
pub fn generated_statements() -> Vec<&'static str> {
    runs::statements().into_iter().chain(workflows::statements()).collect()
}

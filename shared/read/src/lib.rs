//! What people see: the one entry point for reads on behalf of a caller.
//!
//! A [`Reader`] is built only from a [`Caller`](auth::Caller). It reads in the database role that sees the rows of the
//! caller's tenant, and checks the caller's grants before it returns anything about a workflow. Resources a caller may
//! not see are not found; resources they may see but not read are forbidden.
//!
//! A reader hands out a small reader for each subject: [`Runs`], [`Workflows`], [`Schedules`], [`Triggers`], [`Backfills`],
//! [`Timers`], [`Slots`] and [`Tenants`].
//!
//! `Follow` shows run summaries. Everything else about a run (its tasks, outputs, events and logs) is read through a
//! [`RunReader`], which exists only for callers with `Read`. What belongs to no tenant is read through a [`Platform`],
//! which exists only for callers with a permission in every tenant.

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
mod workflows;

pub use backfills::Backfills;
pub use change_feed::{ChangeFeed, FeedCursor, FeedItem, FeedPage};
pub use database::Database;
pub use error::{Error, Result};
pub use limits::{ClaimedTask, Contender, Slots};
pub use listing::Listing;
pub use platform::{Health, Platform, WorkerRecord};
pub use queues::FairnessGroupRecord;
pub use reader::Reader;
pub use run::RunReader;
pub use runs::{RunCursor, RunFilter, RunSort, RunSummary, Runs};
pub use schedules::{Schedules, StartRecord};
pub use tenants::{TenantRecord, Tenants};
pub use timers::{TimerCursor, TimerFilter, TimerRecord, Timers};
pub use triggers::Triggers;
pub use workflows::{WorkflowCursor, WorkflowFilter, WorkflowSort, Workflows};

// The rows that reads return.
pub use store::{
    BackfillRecord, ConcurrencyMember, DeadLetter, DeadLetterFilter, Excerpt, LimitRecord, ListedRun,
    ListedTask, LogLine, RunRecord, ScheduleRecord, SlotWait, Starter, TaskRecord, TriggerEvent,
    TriggerRecord, VersionRecord, WorkflowRecord,
};

/// The statements that are put together in code: tests prepare and plan them with all others.
#[doc(hidden)]
pub fn generated_statements() -> Vec<&'static str> {
    runs::statements().into_iter().chain(workflows::statements()).collect()
}

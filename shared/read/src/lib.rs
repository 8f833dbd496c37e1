//! What people see: the one entry point for reads on behalf of a caller.
//!
//! A [`Reader`] is built only from a [`Caller`](auth::Caller). It reads in the database role that sees the rows of the
//! caller's tenant, and checks the caller's grants before it returns anything about a workflow. Resources a caller may
//! not see are not found; resources they may see but not read are forbidden.
//!
//! `Follow` shows run summaries. Everything else about a run (its tasks, outputs, events and logs) is read through a
//! [`RunReader`], which exists only for callers with `Read`.

mod database;
mod error;
mod reader;
mod run;
mod runs;
mod workflows;

pub use database::Database;
pub use error::{Error, Result};
pub use reader::Reader;
pub use run::RunReader;
pub use runs::RunSummary;
pub use store::{LogLine, RunFilter, RunRecord, TaskRecord, VersionRecord, WorkflowRecord};

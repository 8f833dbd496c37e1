//! The decisions: pure functions of a run's rows and an instant. No I/O, no clock, no async.
//!
//! A [`RunSlice`] holds the part of a run that a [`Command`] touches; deciding changes the slice, and closing it
//! gives the rows to write and the messages to send.

mod activate;
mod admission;
pub mod breaker;
mod close;
mod command;
mod decide;
mod fan_out;
mod graph;
pub mod offer;
mod operate;
mod oversee;
mod propagate;
mod repair;
pub mod reports;
mod rerun;
pub mod retry;
pub mod rule;
mod run_slice;
mod sensor;
mod signals;
mod slot;

pub use activate::Directive;
pub use admission::{Allocation, Allocator, Trial};
pub use command::{By, Command, ExpectedTask, Mark, Operation, Outcome, Reach};
pub use graph::{Cycle, Graph};
pub use run_slice::{Decision, Need, RunSlice};

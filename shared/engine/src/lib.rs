//! The decisions: pure functions of a run's rows and an instant. No I/O, no clock, no async.
//!
//! A [`Scene`] holds the part of a run that a [`Command`] touches; deciding changes the scene, and closing it
//! gives the rows to write and the messages to send.

mod anew;
mod close;
mod command;
mod decide;
mod direct;
mod fan;
mod graph;
mod operate;
mod oversee;
mod place;
mod repair;
pub mod retry;
pub mod rule;
mod scene;
mod sense;
mod settle;

pub use command::{By, Command, Mark, Operation, Outcome, Reach};
pub use direct::Directive;
pub use graph::{Cycle, Graph};
pub use scene::{Decision, Need, Newborn, Scene};

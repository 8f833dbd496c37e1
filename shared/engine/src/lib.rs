//! The decisions: pure functions of a run's rows and an instant. No I/O, no clock, no async.
//!
//! A [`Scene`] holds the part of a run that a [`Command`] touches; deciding changes the scene, and closing it
//! gives the rows to write and the messages to send.

mod decide;
mod graph;
pub mod retry;
pub mod rule;
mod scene;

pub use decide::{Command, Directive, Outcome, Reach};
pub use graph::{Cycle, Graph};
pub use scene::{Decision, Need, Scene};

/// Whether tasks of this type are settled by the engine itself and never sent to a worker.
pub fn is_inside(kind: &str) -> bool {
    kind == "sleep"
}

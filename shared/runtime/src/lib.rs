//! The shell around the decisions: load, decide, save, commit, publish.
//!
//! Every function changes runs through a [`Runtime`] and in no other way. What it does may happen twice:
//! a command that was decided before is stale and changes nothing.

mod callback;
mod complete;
mod concurrency;
mod counting;
mod direct;
mod error;
mod gather;
mod graphs;
mod inbox;
mod inline_next;
mod job;
mod letters;
mod others;
mod pipeline;
mod publish;
mod receive;
mod register;
mod repair;
mod sight;
mod slots;
mod start;
mod timers;
mod watch;

use std::sync::Arc;

use bus::Bus;
use clock::Clock;
use store::Store;

pub use callback::CallbackJob;
pub use error::{Error, Result};
pub use job::{Brief, Job, secrets_of};
pub use letters::{Replayed, message_of};
pub use pipeline::Settled;
pub use receive::{Heard, Received};
pub use start::{BackfillPlan, NewBackfill, Origin, StartRun, Started, Steer};
pub use timers::{Fired, wake};
pub use watch::{Find, Look};

/// What a function needs to change runs: the store, the bus and a clock.
pub struct Runtime {
    store: Arc<dyn Store>,
    bus: Arc<dyn Bus>,
    clock: Arc<dyn Clock>,
    graphs: graphs::Graphs,
    inbox: inbox::Inbox<Runtime>,
}

impl Runtime {
    /// A runtime over these parts.
    pub fn new(store: Arc<dyn Store>, bus: Arc<dyn Bus>, clock: Arc<dyn Clock>) -> Self {
        Self { store, bus, clock, graphs: Default::default(), inbox: Default::default() }
    }

    /// The store, for reading.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The bus.
    pub fn bus(&self) -> &Arc<dyn Bus> {
        &self.bus
    }

    /// The clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }
}

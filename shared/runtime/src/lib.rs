//! The shell around the decisions: load, decide, save, commit, publish.
//!
//! Every function changes runs through a [`Runtime`] and in no other way. What it does may happen twice:
//! a command that was decided before is stale and changes nothing.

mod activate;
mod callback;
mod child_runs;
mod concurrency;
mod counting;
mod dead_letters;
mod error;
mod events;
mod fan_in;
mod graphs;
mod inbox;
mod inline_next;
mod job;
mod pipeline;
mod publish;
mod register;
mod repair;
mod sensors;
mod slots;
mod start;
mod template_scope;
mod timers;
mod upstream_trigger;

use std::sync::Arc;

use bus::Bus;
use clock::Clock;
use store::Store;

pub use callback::CallbackJob;
pub use dead_letters::{Replayed, message_of};
pub use error::{Error, Result};
pub use events::{Heard, Received};
pub use job::{Brief, Job, secrets_of};
pub use pipeline::Settled;
pub use sensors::{Find, Look};
pub use start::{BackfillPlan, NewBackfill, Origin, StartRun, Started, Steer};
pub use timers::{Fired, wake};

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

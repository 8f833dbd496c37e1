//! The shell around the decisions: load, decide, save, commit, publish.
//!
//! Every function changes runs through a [`Runtime`] and in no other way. What it does may happen twice:
//! a command that was decided before is stale and changes nothing.

mod activate;
mod approvals;
mod breakers;
mod callback;
mod child_runs;
mod concurrency;
mod counting;
mod custom_types;
mod dead_letters;
mod error;
mod events;
mod fan_in;
mod graphs;
mod inbox;
mod inline_next;
mod job;
mod kept;
mod leases;
mod liveness;
mod pipeline;
mod preview;
mod publish;
mod quota;
mod register;
mod repair;
mod sensors;
mod slots;
mod start;
mod template_scope;
mod tenants;
mod timers;
mod upstream_trigger;
mod wake_ups;
mod workers;

use std::sync::Arc;

use bus::Bus;
use model::Clock;
use store::Store;

pub use approvals::{Approval, approval};
pub use breakers::log as log_breaker;
pub use callback::{CallbackJob, Callbacks};
pub use child_runs::ChildRuns;
pub use dead_letters::{BulkAction, BulkOutcome, DeadLetters, Replayed, message_of};
pub use error::{Error, Result};
pub use events::{Received, TriggerOutcome};
pub use job::{Brief, Job, Surroundings, secrets_of};
pub use leases::{
    AttemptName, GivenAttempt, Leases, MAX_WAITING as MAX_WAITING_LEASES, WaitingWorker, Wanted,
};
pub use liveness::Liveness;
pub use pipeline::Settled;
pub use preview::{
    Evaluated, ExpressionError, TemplateNames, rendered_config, used_outputs, visible_outputs,
};
pub use register::{Definitions, compile, schemas};
pub use sensors::{Find, Poll};
pub use start::{
    BackfillPlan, DriftSummary, DueAt, Missed, NewBackfill, Origin, Replaces, SchedulePreview, StartRun,
    Started, Steer, made_up_for,
};
pub use tenants::{TenantChange, Tenants};
pub use timers::{Fired, wake};
pub use workers::Workers;

// The types of what this crate takes and returns.
pub use engine::reports;
pub use engine::retry::{attempts_allowed, classify};
pub use engine::{By, Command, ExpectedTask, Graph, Mark, Operation};
pub use language::types::{TaskType, types as built_in_types};
pub use language::{Definition, Diagnostic, FileKind, SourceFile, nearest};
pub use store::{
    Activated, BackfillState, DeadLetterFilter, Fault, Finding, LogLine, OfferedTask, Pause, Paused, Rerun,
    TriggerPause,
};

/// Everything that a function needs to change runs: the store, the bus and a clock.
pub struct Runtime {
    store: Arc<dyn Store>,
    bus: Arc<dyn Bus>,
    clock: Arc<dyn Clock>,
    graphs: graphs::Graphs,
    tenant_names: tenants::Names,
    types: custom_types::TypeCache,
    inbox: inbox::Inbox<Runtime>,
    quota: quota::RunQuota,
    wake_ups: Option<wake_ups::Requested>,
    waiting: leases::WaitingRoom,
    given: leases::GivenAttempts,
    done_counts: workers::DoneCounts,
    liveness: Liveness,
}

/// The settings of an installation's runtime.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// The maximum number of unfinished runs of a tenant, beyond which none is started, whatever its origin; none for no limit.
    pub run_quota: Option<u32>,
    /// Whether the sweep is called when something is due, and not every minute: then commits request such calls.
    pub exact_wake_ups: bool,
    /// How often workers send heartbeats, and when they are dead.
    pub liveness: Liveness,
}

impl Runtime {
    /// A runtime over these parts.
    pub fn new(store: Arc<dyn Store>, bus: Arc<dyn Bus>, clock: Arc<dyn Clock>) -> Self {
        let (graphs, tenant_names, types, inbox, quota, waiting, given, done_counts, liveness) =
            Default::default();
        let wake_ups = None;
        Self {
            store,
            bus,
            clock,
            graphs,
            tenant_names,
            types,
            inbox,
            quota,
            wake_ups,
            waiting,
            given,
            done_counts,
            liveness,
        }
    }

    /// The same runtime with other settings.
    pub fn with(self, settings: Settings) -> Self {
        let wake_ups = settings.exact_wake_ups.then(wake_ups::Requested::default);
        let quota = quota::RunQuota::new(settings.run_quota);
        Self { quota, wake_ups, liveness: settings.liveness, ..self }
    }

    /// The store, for reading.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The bus that messages are published to.
    pub fn bus(&self) -> &Arc<dyn Bus> {
        &self.bus
    }

    /// The clock that every instant is read from.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Schedules: runs that start at certain instants.
    pub fn schedules(&self) -> Schedules<'_> {
        Schedules { runtime: self }
    }

    /// Backfills: runs for past dates of schedules.
    pub fn backfills(&self) -> Backfills<'_> {
        Backfills { runtime: self }
    }

    /// Triggers: runs that events start.
    pub fn triggers(&self) -> Triggers<'_> {
        Triggers { runtime: self }
    }

    /// Inspections, and what they repair.
    pub fn repairs(&self) -> Repairs<'_> {
        Repairs { runtime: self }
    }

    /// The slots of limits.
    pub fn slots(&self) -> Slots<'_> {
        Slots { runtime: self }
    }
}

/// Starts the runs of schedules, and pauses and resumes them.
#[derive(Clone, Copy)]
pub struct Schedules<'r> {
    runtime: &'r Runtime,
}

/// Plans, starts and steers backfills.
#[derive(Clone, Copy)]
pub struct Backfills<'r> {
    runtime: &'r Runtime,
}

/// Receives events and starts the runs that triggers make of them.
#[derive(Clone, Copy)]
pub struct Triggers<'r> {
    runtime: &'r Runtime,
}

/// Inspects unfinished runs and repairs what is wrong with them.
#[derive(Clone, Copy)]
pub struct Repairs<'r> {
    runtime: &'r Runtime,
}

/// Opens and closes circuit breakers, and lets the tasks begin that wait for them.
#[derive(Clone, Copy)]
pub struct Breakers<'r> {
    runtime: &'r Runtime,
}

/// Lets tasks begin that wait for a slot.
#[derive(Clone, Copy)]
pub struct Slots<'r> {
    runtime: &'r Runtime,
}

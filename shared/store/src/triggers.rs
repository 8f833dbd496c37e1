//! Triggers: what starts runs by itself, the events it received, and when it is due.

use async_trait::async_trait;
use chrono::TimeDelta;
use model::{CloudEvent, Instant, RunId, RunState, TenantId, Trigger, TriggerKey};
use serde_json::Value;
use uuid::Uuid;

use crate::Result;

/// How long an event that a trigger received is kept, at least.
pub(crate) const TRIGGER_EVENT_TTL: TimeDelta = TimeDelta::days(40);

/// A trigger as readers see it.
#[derive(Clone, PartialEq, Debug)]
pub struct TriggerRecord {
    /// The tenant, workflow and name.
    pub key: TriggerKey,
    /// The trigger as the active version defines it.
    pub trigger: Trigger,
    /// When its sensor polls next, or when the event that is held starts a run.
    pub due_at: Option<Instant>,
    /// The event that is held until the debounce time is over.
    pub held: Option<CloudEvent>,
    /// How far its sensor has read the source.
    pub watermark: Value,
    /// The number of its last polls that failed in a row.
    pub failures: u32,
    /// Counts the polls of its sensor that were recorded.
    pub revision: i64,
    /// When and why it was paused, if it is.
    pub paused: Option<TriggerPause>,
    /// The event that it received last.
    pub last: Option<TriggerEvent>,
}

/// When and why a trigger was paused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TriggerPause {
    /// When it was paused.
    pub at: Instant,
    /// Why it was paused.
    pub reason: String,
}

/// An event that a trigger received.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TriggerEvent {
    /// A hash of its identity: the same id, the same event.
    pub id: Uuid,
    /// When it was received.
    pub at: Instant,
    /// A description for people.
    pub what: String,
    /// The run that it started; none if it was held back or starts none.
    pub run: Option<RunId>,
}

impl TriggerEvent {
    /// An event of that identity.
    pub fn new(identity: &str, what: impl Into<String>, at: Instant) -> Self {
        Self { id: Uuid::new_v5(&Uuid::NAMESPACE_OID, identity.as_bytes()), at, what: what.into(), run: None }
    }
}

/// The result of a sensor's poll, and when the next one is due.
#[derive(Clone, PartialEq, Debug)]
pub struct PollRecord {
    /// How far it has read the source now.
    pub watermark: Value,
    /// When the next poll is due.
    pub due_at: Option<Instant>,
    /// The number of the last polls that failed in a row.
    pub failures: u32,
    /// Why it pauses, if it does.
    pub paused: Option<TriggerPause>,
}

/// Which triggers to list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TriggerFilter {
    /// Only those of this workflow.
    pub workflow: Option<String>,
    /// Only those after this one, by workflow and then by name.
    pub after: Option<(String, String)>,
    /// The maximum number of them.
    pub limit: u32,
}

/// Reads and pauses of triggers outside a transaction.
#[async_trait]
pub trait Triggers: Send + Sync {
    /// The trigger with that key.
    async fn trigger(&self, key: &TriggerKey) -> Result<Option<TriggerRecord>>;

    /// Triggers of a tenant, by workflow and name.
    async fn triggers(&self, tenant: TenantId, filter: &TriggerFilter) -> Result<Vec<TriggerRecord>>;

    /// Triggers of that kind that are found by that key and do not pause, by workflow and name.
    async fn triggers_on(&self, tenant: TenantId, kind: &str, key: &str) -> Result<Vec<TriggerRecord>>;

    /// Triggers that are due and do not pause, the longest overdue first.
    async fn due_triggers(&self, now: Instant, limit: u32) -> Result<Vec<TriggerRecord>>;

    /// Puts off what is due of a trigger, unless someone did before. Returns whether it did.
    async fn put_off(&self, key: &TriggerKey, due_at: Instant, until: Instant) -> Result<bool>;

    /// Pauses or resumes a trigger. The sensor of a resumed one polls at once. Returns whether there is such a
    /// trigger.
    async fn pause_trigger(
        &self,
        key: &TriggerKey,
        pause: Option<&TriggerPause>,
        now: Instant,
    ) -> Result<bool>;

    /// How many runs a trigger started since then.
    async fn runs_triggered(&self, key: &TriggerKey, since: Instant) -> Result<u32>;

    /// The run of a workflow for that logical date, and its state.
    async fn run_on(
        &self,
        tenant: TenantId,
        workflow: &str,
        logical_date: Instant,
    ) -> Result<Option<(RunId, RunState)>>;
}

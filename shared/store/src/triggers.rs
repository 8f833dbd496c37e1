//! Triggers: what starts runs by itself, what it has heard of and seen, and when it is due.

use async_trait::async_trait;
use chrono::TimeDelta;
use model::{CloudEvent, Instant, RunId, RunState, TenantId, Trigger, TriggerKey};
use serde_json::Value;
use uuid::Uuid;

use crate::Result;

/// What a trigger has heard of is remembered for so long, at least.
pub(crate) const TRIGGER_EVENT_TTL: TimeDelta = TimeDelta::days(40);

/// A trigger as readers see it.
#[derive(Clone, PartialEq, Debug)]
pub struct TriggerRecord {
    /// Which one.
    pub key: TriggerKey,
    /// The trigger itself.
    pub trigger: Trigger,
    /// When a sensor looks again, or when the event that is held back starts a run.
    pub due_at: Option<Instant>,
    /// The event that is held back.
    pub held: Option<CloudEvent>,
    /// What a sensor has seen.
    pub watermark: Value,
    /// How many looks at its source failed, one after the other.
    pub failures: u32,
    /// Counts what a sensor saw.
    pub revision: i64,
    /// Since when it does nothing, and why.
    pub paused: Option<TriggerPause>,
    /// What it heard of last.
    pub last: Option<TriggerEvent>,
}

/// Since when a trigger does nothing, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TriggerPause {
    /// Since when.
    pub at: Instant,
    /// Why.
    pub reason: String,
}

/// Something that a trigger heard of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TriggerEvent {
    /// What tells it apart: the same id, the same event.
    pub id: Uuid,
    /// When it was heard of.
    pub at: Instant,
    /// What it was, for people.
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

/// What a sensor saw, and when it looks again.
#[derive(Clone, PartialEq, Debug)]
pub struct PollRecord {
    /// What it has seen now.
    pub watermark: Value,
    /// When it looks again.
    pub due_at: Option<Instant>,
    /// How many looks failed, one after the other.
    pub failures: u32,
    /// Why it pauses, if it does.
    pub paused: Option<TriggerPause>,
}

/// Which triggers to list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TriggerFilter {
    /// Only of this workflow.
    pub workflow: Option<String>,
    /// Only those after this one: by workflow, then by name.
    pub after: Option<(String, String)>,
    /// At most so many.
    pub limit: u32,
}

/// Triggers outside a transaction.
#[async_trait]
pub trait Triggers: Send + Sync {
    /// One trigger.
    async fn trigger(&self, key: &TriggerKey) -> Result<Option<TriggerRecord>>;

    /// Triggers of a tenant, by workflow and name.
    async fn triggers(&self, tenant: TenantId, filter: &TriggerFilter) -> Result<Vec<TriggerRecord>>;

    /// Triggers of that kind that are found by that key and do not pause, by workflow and name.
    async fn triggers_on(&self, tenant: TenantId, kind: &str, key: &str) -> Result<Vec<TriggerRecord>>;

    /// Triggers that are due and do not pause, the longest overdue first.
    async fn due_triggers(&self, now: Instant, limit: u32) -> Result<Vec<TriggerRecord>>;

    /// Puts off what is due of a trigger, unless someone did before. Returns whether it did.
    async fn put_off(&self, key: &TriggerKey, due_at: Instant, until: Instant) -> Result<bool>;

    /// Lets a trigger pause, or go on. One that goes on and has a sensor looks at once. Returns whether there is such a
    /// trigger.
    async fn pause_trigger(
        &self,
        key: &TriggerKey,
        pause: Option<&TriggerPause>,
        now: Instant,
    ) -> Result<bool>;

    /// What a trigger heard of, the latest first.
    async fn trigger_events(&self, key: &TriggerKey, limit: u32) -> Result<Vec<TriggerEvent>>;

    /// How many runs a trigger started since then.
    async fn runs_triggered(&self, key: &TriggerKey, since: Instant) -> Result<u32>;

    /// The run of a workflow for that logical date, and where it stands.
    async fn run_on(
        &self,
        tenant: TenantId,
        workflow: &str,
        logical_date: Instant,
    ) -> Result<Option<(RunId, RunState)>>;
}

//! External events: which triggers they match, and the runs they start.
//!
//! An event is matched by type with the triggers of active versions of its tenant, then filtered and mapped. The run is
//! created in one transaction with a row that says that the trigger has seen the event: of two copies, one waits for the
//! other's commit and finds that row. A debounced event replaces the trigger's pending event, with a due time that the next
//! one postpones; the sweep releases it.

use chrono::TimeDelta;
use language::expression;
use model::{CloudEvent, Instant, RunId, TenantId, TriggerKey};
use store::{DeadLetter, TriggerEvent, TriggerRecord};
use tracing::warn;

use crate::start::trigger::{self, Begun, Cause, scope, what};
use crate::{Error, Result, Triggers};

/// The delay before a held event that cannot be settled is tried again.
const RETRY_DELAY: TimeDelta = TimeDelta::minutes(10);

/// The outcomes of an event, at each trigger that it matches.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Received {
    /// The outcome at each trigger.
    pub outcomes: Vec<(TriggerKey, TriggerOutcome)>,
}

/// The outcome of an event at one trigger.
#[derive(Clone, PartialEq, Debug)]
pub enum TriggerOutcome {
    /// It started this run.
    Started(RunId),
    /// The event is held until then, since the trigger is debounced.
    Held(Instant),
    /// It had received it before.
    Before,
    /// Its filter rejected the event.
    Filtered,
    /// The workflow starts no run now, for this reason.
    Unwanted(String),
    /// Its filter or inputs cannot be evaluated, or its tenant has no room for another run, for this reason.
    Broken(String),
}

impl Received {
    /// Why the event needs attention, if it does.
    pub fn complaint(&self) -> Option<String> {
        let broken = self.outcomes.iter().filter_map(|(key, outcome)| match outcome {
            TriggerOutcome::Broken(reason) => {
                Some(format!("trigger `{}` of `{}`: {reason}", key.name, key.workflow))
            }
            _ => None,
        });
        let broken: Vec<String> = broken.collect();
        (!broken.is_empty()).then(|| broken.join("; "))
    }
}

impl Triggers<'_> {
    /// Receives an event, for the tenant that it names. A second copy changes nothing.
    pub async fn receive(self, event: &CloudEvent) -> Result<Received> {
        let tenant = match event.attributes.get(CloudEvent::TENANT) {
            Some(name) => self
                .runtime
                .store
                .tenant_named(name)
                .await?
                .ok_or_else(|| Error::NoSuchTenant(name.clone()))?,
            None => TenantId::DEFAULT,
        };
        let mut received = Received::default();
        for record in self.runtime.store.triggers_on(tenant, "event", &event.kind).await? {
            if record.trigger.accepts_source(&event.source) {
                let outcome = match self.deliver(&record, event, Vec::new()).await {
                    Err(error) if error.is_quota() => TriggerOutcome::Broken(error.to_string()),
                    outcome => outcome?,
                };
                received.outcomes.push((record.key, outcome));
            }
        }
        Ok(received)
    }

    /// Whether a trigger has received an event. Nothing is written.
    pub async fn has_received(self, key: &TriggerKey, event: &TriggerEvent) -> Result<bool> {
        let mut unit = self.runtime.store.begin().await?;
        Ok(!unit.note_event(key, event).await?)
    }

    /// Delivers an event to one trigger. `also` must be new, too, such as the signature of a request.
    pub async fn deliver(
        self,
        record: &TriggerRecord,
        event: &CloudEvent,
        also: Vec<TriggerEvent>,
    ) -> Result<TriggerOutcome> {
        match self.passes(record, event) {
            Ok(true) => {}
            Ok(false) => return Ok(TriggerOutcome::Filtered),
            Err(reason) => return Ok(TriggerOutcome::Broken(reason)),
        }
        let mut notes = also;
        notes.push(TriggerEvent::new(&event.identity(), what(event), self.runtime.clock.now()));
        let cause = Cause::received(&record.key, notes);
        match record.trigger.debounce_seconds {
            Some(seconds) => self.hold(record, event, &cause, TimeDelta::seconds(seconds.into())).await,
            None => Ok(self.begin(record, event, None, 0, &cause).await?.into()),
        }
    }

    /// Whether a trigger's filter lets an event pass.
    pub(crate) fn passes(
        self,
        record: &TriggerRecord,
        event: &CloudEvent,
    ) -> std::result::Result<bool, String> {
        let Some(filter) = &record.trigger.filter else { return Ok(true) };
        let evaluated = expression::evaluate(filter, &scope(event));
        evaluated.map(|evaluated| evaluated.truth).map_err(|error| format!("filter: {error}"))
    }

    /// Holds an event back: of those that follow each other closely, the last one starts a run.
    async fn hold(
        self,
        record: &TriggerRecord,
        event: &CloudEvent,
        cause: &Cause,
        window: TimeDelta,
    ) -> Result<TriggerOutcome> {
        if let Err(reason) = trigger::inputs(record, event) {
            return Ok(TriggerOutcome::Broken(reason));
        }
        let due_at = self.runtime.clock.now() + window;
        let mut unit = self.runtime.store.begin().await?;
        if !cause.settle(&mut *unit, None).await? {
            return Ok(TriggerOutcome::Before);
        }
        if !unit.hold_event(&record.key, event, due_at).await? {
            return Ok(TriggerOutcome::Unwanted("the trigger is gone".into()));
        }
        unit.commit().await?;
        self.runtime.wake_sweep(due_at).await;
        Ok(TriggerOutcome::Held(due_at))
    }

    /// Starts the run of an event that was held back and is due.
    pub(crate) async fn let_go(self, record: &TriggerRecord, now: Instant) -> Result<()> {
        let Some(event) = &record.held else { return Ok(()) };
        let held = Some((event.clone(), now));
        let cause = Cause { held, ..Cause::received(&record.key, Vec::new()) };
        match self.begin(record, event, None, 0, &cause).await {
            Ok(Begun::Broken(reason)) => self.dead_letter_held(record, event, &cause, reason).await,
            Ok(_) => Ok(()),
            Err(error) if error.is_passing() => Err(error),
            Err(error) => {
                warn!(
                    "What trigger `{}` of `{}` holds back waits: {error}",
                    record.key.name, record.key.workflow
                );
                let due_at = record.due_at.unwrap_or(now);
                self.runtime.store.put_off(&record.key, due_at, now + RETRY_DELAY).await?;
                Ok(())
            }
        }
    }

    async fn dead_letter_held(
        self,
        record: &TriggerRecord,
        event: &CloudEvent,
        cause: &Cause,
        reason: String,
    ) -> Result<()> {
        let letter = DeadLetter {
            id: format!("{}/{}/{}", record.key.workflow, record.key.name, event.id),
            source: event.source.clone(),
            reason: format!("trigger `{}` of `{}`: {reason}", record.key.name, record.key.workflow),
            body: serde_json::to_string(event).expect("an event has string keys only"),
            at: self.runtime.clock.now(),
        };
        // First kept, then let go of: at worst it is kept twice, under one id.
        self.runtime.store.insert_dead_letter(&letter).await?;
        self.settle_cause(cause).await?;
        Ok(())
    }
}

impl From<Begun> for TriggerOutcome {
    fn from(begun: Begun) -> Self {
        match begun {
            Begun::Started(run) => Self::Started(run),
            Begun::Before => Self::Before,
            Begun::Unwanted(reason) => Self::Unwanted(reason),
            Begun::Broken(reason) => Self::Broken(reason),
        }
    }
}

//! Sensors of triggers: what a poll found is settled in one transaction with the run that it starts.
//!
//! The sweep sets the time of the next poll before it requests this one, so the next poll makes up for one that is lost. Each
//! find is settled by itself, over the revision of the trigger that the poll read: of two polls at the same time, one is late
//! and writes nothing. Finds that were not settled are found again.

use chrono::TimeDelta;
use language::config::{self, Sensor};
use language::template::{self, Scope};
use language::types::TaskType;
use model::message::{PollDue, PollTarget};
use model::{CloudEvent, Failure, Instant, Message, Pacing, TaskKind, TriggerKey, TriggerOn};
use serde_json::{Map, Value};
use store::{PollRecord, TriggerEvent, TriggerPause, TriggerRecord};
use tracing::warn;

use crate::start::trigger::{Begun, Cause, what};
use crate::{Error, Result, Triggers};

/// The queue whose executors poll for triggers.
const QUEUE: &str = "light";

/// The result of a poll.
#[derive(Clone, PartialEq, Debug)]
pub struct Poll {
    /// The new finds, in order.
    pub finds: Vec<Find>,
    /// The watermark after all of them.
    pub watermark: Value,
}

/// Something new that a sensor found.
#[derive(Clone, PartialEq, Debug)]
pub struct Find {
    /// The event that the trigger receives.
    pub event: CloudEvent,
    /// The watermark once this find is settled.
    pub watermark: Value,
}

impl Triggers<'_> {
    /// Handles the triggers that are due: requests polls of sensors, and starts runs for events that were held back. Returns
    /// the number of triggers.
    pub async fn fire_due(self, now: Instant, limit: u32) -> Result<usize> {
        let due = self.runtime.store.due_triggers(now, limit).await?;
        let mut polls = Vec::new();
        for record in &due {
            match &record.trigger.on {
                TriggerOn::Sensor { pacing, .. } => {
                    let (due_at, until) = (record.due_at.unwrap_or(now), now + pacing.delay(record.failures));
                    // Of two sweeps, one requests the poll.
                    if self.runtime.store.put_off(&record.key, due_at, until).await? {
                        let (workflow, name) = (record.key.workflow.clone(), record.key.name.clone());
                        let target = PollTarget::Trigger { workflow, name };
                        let (tenant, queue) = (record.key.tenant, QUEUE.into());
                        polls.push(Message::PollDue(PollDue { tenant, queue, target }));
                    }
                }
                _ => self.let_go(record, now).await?,
            }
        }
        if !polls.is_empty()
            && let Err(error) = self.runtime.bus.publish(&polls).await
        {
            warn!("{} sensors poll an interval later: {error}", polls.len());
        }
        Ok(due.len())
    }

    /// Pauses or resumes a trigger. Returns whether the trigger exists.
    pub async fn pause(self, key: &TriggerKey, pause: Option<&TriggerPause>) -> Result<bool> {
        let now = self.runtime.clock.now();
        let known = self.runtime.store.pause_trigger(key, pause, now).await?;
        if known && pause.is_none() {
            self.runtime.wake_sweep(now).await;
        }
        Ok(known)
    }

    /// Resumes a trigger; refused while its workflow is paused. Returns whether there is such a trigger.
    pub async fn resume(self, key: &TriggerKey) -> Result<bool> {
        let active = self.runtime.store.active(key.tenant, &key.workflow).await?;
        if active.is_some_and(|active| active.paused) {
            return Err(Error::Paused(key.workflow.clone()));
        }
        self.pause(key, None).await
    }

    /// The config of a trigger's sensor, rendered with the secrets that it names.
    pub fn sensor(
        self,
        record: &TriggerRecord,
        secrets: Map<String, Value>,
    ) -> std::result::Result<Sensor, Failure> {
        let TriggerOn::Sensor { config, .. } = &record.trigger.on else {
            return Err(Failure::permanent("the trigger has no sensor"));
        };
        let rendered = TaskType::of(&TaskKind::Sensor).render(config, &Scope { secrets, ..Scope::default() });
        let rendered = rendered.map_err(|error| Failure::permanent(error.to_string()))?;
        config::read(&TaskKind::Sensor, rendered).map_err(|error| Failure::permanent(error.to_string()))
    }

    /// The names of the secrets that a trigger's sensor uses.
    pub fn sensor_secrets(self, record: &TriggerRecord) -> std::collections::BTreeSet<String> {
        match &record.trigger.on {
            TriggerOn::Sensor { config, .. } => template::secrets_of(config),
            _ => Default::default(),
        }
    }

    /// Settles the result of a poll for that record of a trigger.
    pub async fn polled(
        self,
        record: &TriggerRecord,
        poll: std::result::Result<Poll, Failure>,
    ) -> Result<()> {
        let TriggerOn::Sensor { pacing, .. } = &record.trigger.on else { return Ok(()) };
        match poll {
            Ok(poll) => self.settle_poll(record, pacing, poll).await,
            Err(failure) => {
                self.settle_failure(record, pacing, record.revision, &record.watermark, &failure).await
            }
        }
    }

    async fn settle_poll(self, record: &TriggerRecord, pacing: &Pacing, poll: Poll) -> Result<()> {
        let (mut revision, mut seen) = (record.revision, record.watermark.clone());
        let poll_record = |watermark: &Value| PollRecord {
            watermark: watermark.clone(),
            due_at: record.due_at,
            failures: 0,
            paused: None,
        };
        for find in poll.finds {
            if self.flaps(record, pacing, revision, &seen).await? {
                return Ok(());
            }
            let note = TriggerEvent::new(&find.event.identity(), what(&find.event), self.runtime.clock.now());
            let plain = Cause {
                poll_record: Some((revision, poll_record(&find.watermark))),
                ..Cause::received(&record.key, Vec::new())
            };
            let cause = Cause { notes: vec![note], ..plain.clone() };
            let settled = match self.passes(record, &find.event) {
                Ok(false) => self.settle_cause(&plain).await?,
                Ok(true) => match self.begin(record, &find.event, None, 0, &cause).await {
                    Ok(Begun::Started(_) | Begun::Unwanted(_)) => true,
                    // It was received before and yet the watermark was behind it: only the watermark is written.
                    Ok(Begun::Before) => self.settle_cause(&plain).await?,
                    Ok(Begun::Broken(reason)) => {
                        let failure = Failure::permanent(format!("{}: {reason}", find.event.id));
                        return self.settle_failure(record, pacing, revision, &seen, &failure).await;
                    }
                    // The watermark stays behind it, so the next poll finds it again.
                    Err(error) if error.is_quota() => {
                        let (name, workflow) = (&record.key.name, &record.key.workflow);
                        warn!(
                            event = "quota_reached",
                            "What trigger `{name}` of `{workflow}` found waits: {error}"
                        );
                        return Ok(());
                    }
                    Err(error) => return Err(error),
                },
                Err(reason) => {
                    let failure = Failure::permanent(reason);
                    return self.settle_failure(record, pacing, revision, &seen, &failure).await;
                }
            };
            if !settled {
                return Ok(()); // Another poll came first.
            }
            (revision, seen) = (revision + 1, find.watermark);
        }
        if seen != poll.watermark || (record.failures > 0 && revision == record.revision) {
            let poll_record = Some((revision, poll_record(&poll.watermark)));
            self.settle_cause(&Cause { poll_record, ..Cause::received(&record.key, Vec::new()) }).await?;
        }
        Ok(())
    }

    /// Polls of a source that is down back off; after `max_failures` in a row, the trigger pauses.
    async fn settle_failure(
        self,
        record: &TriggerRecord,
        pacing: &Pacing,
        revision: i64,
        seen: &Value,
        failure: &Failure,
    ) -> Result<()> {
        let (now, failures) = (self.runtime.clock.now(), record.failures + 1);
        let given_up = failures >= pacing.max_failures;
        let reason = format!("it failed {failures} times in a row: {}", failure.message);
        let poll_record = PollRecord {
            watermark: seen.clone(),
            due_at: Some(now + pacing.delay(failures)),
            failures,
            paused: given_up.then(|| TriggerPause { at: now, reason: reason.clone() }),
        };
        let (name, workflow) = (&record.key.name, &record.key.workflow);
        warn!("The sensor of trigger `{name}` of `{workflow}` cannot poll: {reason}");
        let cause =
            Cause { poll_record: Some((revision, poll_record)), ..Cause::received(&record.key, Vec::new()) };
        self.settle_cause(&cause).await.map(|_| ())
    }

    /// Pauses a trigger that has started `max_events_per_hour` runs within an hour. Returns whether it did.
    async fn flaps(
        self,
        record: &TriggerRecord,
        pacing: &Pacing,
        revision: i64,
        seen: &Value,
    ) -> Result<bool> {
        let now = self.runtime.clock.now();
        let started = self.runtime.store.runs_triggered(&record.key, now - TimeDelta::hours(1)).await?;
        if started < pacing.max_events_per_hour {
            return Ok(false);
        }
        let reason = format!(
            "it started {started} runs within an hour, and `max_events_per_hour` is {}",
            pacing.max_events_per_hour
        );
        let paused = Some(TriggerPause { at: now, reason });
        let poll_record = PollRecord { watermark: seen.clone(), due_at: record.due_at, failures: 0, paused };
        let poll_record = Some((revision, poll_record));
        self.settle_cause(&Cause { poll_record, ..Cause::received(&record.key, Vec::new()) }).await?;
        Ok(true)
    }
}

//! Why a run begins: what is written about a trigger in the transaction that creates its run.

use language::template::{self, Scope};
use model::{CloudEvent, Instant, RunId, TriggerKey};
use serde_json::{Map, Value};
use store::{PollRecord, Transaction, TriggerEvent, TriggerRecord};
use uuid::Uuid;

use super::{Origin, StartRun};
use crate::pipeline;
use crate::start;
use crate::{Error, Result, Triggers};

/// The rows about a trigger that are written with the run that it starts.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Cause {
    pub(crate) key: TriggerKey,
    /// The events it received. If it had before, there is nothing more to do.
    pub(crate) notes: Vec<TriggerEvent>,
    /// Takes this event that was held back, if it is still the one that is due.
    pub(crate) held: Option<(CloudEvent, Instant)>,
    /// The result of its sensor's poll, over the revision that the poll read.
    pub(crate) poll_record: Option<(i64, PollRecord)>,
}

impl Cause {
    /// The cause of a trigger that received events.
    pub(crate) fn received(key: &TriggerKey, notes: Vec<TriggerEvent>) -> Self {
        Self { key: key.clone(), notes, held: None, poll_record: None }
    }

    /// Writes it, for the run that begins, if one does. Returns whether it had not been settled before; if it had, the transaction
    /// must not be committed.
    pub(crate) async fn settle(&self, unit: &mut dyn Transaction, run: Option<RunId>) -> Result<bool> {
        for note in &self.notes {
            if !unit.note_event(&self.key, &TriggerEvent { run, ..note.clone() }).await? {
                return Ok(false);
            }
        }
        if let Some((event, now)) = &self.held
            && unit.take_held(&self.key, *now).await?.as_ref() != Some(event)
        {
            return Ok(false);
        }
        match &self.poll_record {
            Some((revision, poll_record)) => Ok(unit.record_poll(&self.key, *revision, poll_record).await?),
            None => Ok(true),
        }
    }
}

/// The outcome of a trigger's request for a run.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Begun {
    /// The run was created.
    Started(RunId),
    /// It was requested before.
    Before,
    /// The workflow starts no run now, for this reason; that is committed.
    Unwanted(String),
    /// It cannot be created, for this reason; nothing was written.
    Broken(String),
}

impl Triggers<'_> {
    /// Starts the run that an event causes, once. Its id follows from the trigger and the event.
    pub(crate) async fn begin(
        self,
        record: &TriggerRecord,
        event: &CloudEvent,
        date: Option<Instant>,
        depth: u32,
        cause: &Cause,
    ) -> Result<Begun> {
        let inputs = match inputs(record, event) {
            Ok(inputs) => inputs,
            Err(reason) => return Ok(Begun::Broken(reason)),
        };
        let key = &record.key;
        let identity = format!("trigger\n{}\n{}", key.name, event.identity());
        let id = RunId::from_key(key.tenant, &key.workflow, &identity);
        let by = format!("{}: {}", key.name, what(event));
        let origin = Origin::Trigger { kind: record.trigger.kind(), by, depth };
        let request =
            StartRun { inputs, logical_date: date, ..StartRun::new(id, key.tenant, &key.workflow, origin) };
        match start::create_because(self.runtime, &request, cause).await {
            Ok(Some(run)) => Ok(Begun::Started(run)),
            Ok(None) => Ok(Begun::Before),
            Err(error @ (Error::ConcurrencyGroupTaken(_) | Error::DateTaken(_) | Error::KeyReused(_))) => {
                self.settle_cause(cause).await?;
                Ok(Begun::Unwanted(error.to_string()))
            }
            Err(Error::BadInputs(problems)) => {
                let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
                Ok(Begun::Broken(problems.join("; ")))
            }
            Err(error) if error.is_hopeless() => Ok(Begun::Broken(error.to_string())),
            // There is no need for room if it was settled before.
            Err(error) if error.is_quota() && self.has_settled(cause).await? => Ok(Begun::Before),
            Err(error) => Err(error),
        }
    }

    async fn has_settled(self, cause: &Cause) -> Result<bool> {
        for note in &cause.notes {
            if self.has_received(&cause.key, note).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes what there is to say of a trigger where no run begins. Returns whether it had not been settled before.
    pub(crate) async fn settle_cause(self, cause: &Cause) -> Result<bool> {
        pipeline::despite_conflicts(self.runtime, RunId(Uuid::nil()), || async {
            let mut unit = self.runtime.store.begin().await?;
            let first = cause.settle(&mut *unit, None).await?;
            if first {
                unit.commit().await?;
            }
            Ok(first)
        })
        .await
    }
}

/// A description of an event, for people.
pub(crate) fn what(event: &CloudEvent) -> String {
    format!("{} {}", event.source, event.id)
}

/// The inputs that a trigger makes of an event.
pub(crate) fn inputs(
    record: &TriggerRecord,
    event: &CloudEvent,
) -> std::result::Result<Map<String, Value>, String> {
    let template = Value::Object(record.trigger.inputs.clone());
    match template::render(&template, &scope(event)) {
        Ok(Value::Object(inputs)) => Ok(inputs),
        Ok(_) => Ok(Map::new()),
        Err(error) => Err(format!("inputs: {error}")),
    }
}

/// The names available to a trigger's templates.
pub(crate) fn scope(event: &CloudEvent) -> Scope {
    let event = serde_json::to_value(event).expect("an event has string keys only");
    Scope { event: Some(event), ..Scope::default() }
}

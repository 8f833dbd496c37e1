//! Triggers, and the events that they received.

use std::collections::BTreeMap;

use async_trait::async_trait;
use model::{CloudEvent, Instant, RunId, RunState, TenantId, Trigger, TriggerKey, TriggerOn, Workflow};
use serde_json::Value;
use uuid::Uuid;

use super::Memory;
use super::tables::Tables;
use super::transaction::MemoryTransaction;
use crate::definitions::WORKFLOW_PAUSES;
use crate::triggers::TRIGGER_EVENT_TTL;
use crate::{
    PollRecord, Result, TransactionTriggers, TriggerEvent, TriggerFilter, TriggerPause, TriggerRecord,
    Triggers, normal,
};

/// A trigger and the state of its sensor.
#[derive(Clone)]
pub(super) struct TriggerRow {
    trigger: Trigger,
    pub(super) due_at: Option<Instant>,
    held: Option<CloudEvent>,
    watermark: Value,
    failures: u32,
    revision: i64,
    pub(super) paused: Option<TriggerPause>,
}

impl TriggerRow {
    /// Resumes it; its sensor polls at once.
    pub(super) fn go_on(&mut self, now: Instant) {
        self.paused = None;
        if matches!(self.trigger.on, TriggerOn::Sensor { .. }) {
            self.due_at = Some(now);
        }
    }
}

/// The events that triggers received, by trigger and id.
pub(super) type TriggerEvents = BTreeMap<(TriggerKey, Uuid), TriggerEvent>;

/// Replaces the triggers of a workflow by those of the version that became active.
pub(super) fn replace_triggers(tables: &mut Tables, tenant: TenantId, workflow: &Workflow, at: Instant) {
    let key = |name: &str| TriggerKey { tenant, workflow: workflow.name.clone(), name: name.to_owned() };
    let listed = |name: &str| workflow.triggers.iter().any(|trigger| trigger.name == name);
    tables
        .triggers
        .retain(|key, _| key.tenant != tenant || key.workflow != workflow.name || listed(&key.name));
    for trigger in &workflow.triggers {
        let due_at = matches!(trigger.on, TriggerOn::Sensor { .. }).then_some(at);
        let fresh = TriggerRow {
            trigger: trigger.clone(),
            due_at,
            held: None,
            watermark: Value::Null,
            failures: 0,
            revision: 0,
            paused: None,
        };
        let row = tables.triggers.entry(key(&trigger.name)).or_insert_with(|| fresh.clone());
        let revision = row.revision + 1;
        match row.trigger.on == trigger.on {
            true => row.trigger = trigger.clone(),
            false => *row = fresh,
        }
        row.revision = revision;
    }
    tables.hold_triggers(tenant, &workflow.name);
}

pub(super) fn remove_triggers(tables: &mut Tables, tenant: TenantId, workflow: &str) {
    tables.triggers.retain(|key, _| key.tenant != tenant || key.workflow != workflow);
}

/// When the first trigger is due.
pub(super) fn first_trigger(tables: &Tables) -> Option<Instant> {
    tables.triggers.values().filter(|row| row.paused.is_none()).filter_map(|row| row.due_at).min()
}

fn events_of(tables: &Tables, key: &TriggerKey) -> Vec<TriggerEvent> {
    let all = (key.clone(), Uuid::nil())..=(key.clone(), Uuid::max());
    let mut events: Vec<TriggerEvent> =
        tables.trigger_events.range(all).map(|(_, event)| event.clone()).collect();
    events.sort_by_key(|event| (std::cmp::Reverse(event.at), event.id));
    events
}

fn trigger_record(tables: &Tables, key: &TriggerKey, row: &TriggerRow) -> TriggerRecord {
    TriggerRecord {
        key: key.clone(),
        trigger: row.trigger.clone(),
        due_at: row.due_at,
        held: row.held.clone(),
        watermark: row.watermark.clone(),
        failures: row.failures,
        revision: row.revision,
        paused: row.paused.clone(),
        last: events_of(tables, key).into_iter().next(),
    }
}

fn trigger_records(tables: &Tables, wanted: impl Fn(&TriggerKey, &TriggerRow) -> bool) -> Vec<TriggerRecord> {
    let found = tables.triggers.iter().filter(|(key, row)| wanted(key, row));
    found.map(|(key, row)| trigger_record(tables, key, row)).collect()
}

impl MemoryTransaction {
    /// Changes a trigger's row as the transaction sees it, unless `change` returns none. Returns its result.
    fn change_trigger<T>(
        &mut self,
        key: &TriggerKey,
        change: impl FnOnce(&mut TriggerRow) -> Option<T>,
    ) -> Option<T> {
        let tables = self.shared.tables();
        let mut row = self.draft.triggers.get(key).or_else(|| tables.triggers.get(key))?.clone();
        let answer = change(&mut row)?;
        self.draft.triggers.insert(key.clone(), row);
        Some(answer)
    }
}

#[async_trait]
impl TransactionTriggers for MemoryTransaction {
    async fn note_event(&mut self, key: &TriggerKey, event: &TriggerEvent) -> Result<bool> {
        let at = (key.clone(), event.id);
        let known = self.draft.trigger_events.contains_key(&at)
            || self.shared.tables().trigger_events.contains_key(&at);
        if !known {
            let what = normal::label(&event.what).into_owned();
            self.draft.trigger_events.insert(at, TriggerEvent { what, ..event.clone() });
        }
        Ok(!known)
    }

    async fn hold_event(&mut self, key: &TriggerKey, event: &CloudEvent, due_at: Instant) -> Result<bool> {
        let held = self.change_trigger(key, |row| {
            (row.held, row.due_at) = (Some(event.clone()), Some(due_at));
            Some(())
        });
        Ok(held.is_some())
    }

    async fn take_held(&mut self, key: &TriggerKey, now: Instant) -> Result<Option<CloudEvent>> {
        Ok(self.change_trigger(key, |row| {
            let due = row.paused.is_none() && row.due_at.is_some_and(|due_at| due_at <= now);
            let held = row.held.take().filter(|_| due)?;
            row.due_at = None;
            Some(held)
        }))
    }

    async fn record_poll(
        &mut self,
        key: &TriggerKey,
        revision: i64,
        poll_record: &PollRecord,
    ) -> Result<bool> {
        let written = self.change_trigger(key, |row| {
            if row.revision != revision {
                return None;
            }
            row.watermark = poll_record.watermark.clone();
            row.due_at = poll_record.due_at;
            row.failures = poll_record.failures;
            row.paused = poll_record.paused.clone().or(row.paused.take());
            row.revision += 1;
            Some(())
        });
        Ok(written.is_some())
    }
}

/// Adds the events of a transaction to the table, and deletes a few old ones.
pub(super) fn remember(events: &mut TriggerEvents, noted: TriggerEvents) {
    for ((key, id), event) in noted {
        let long_ago = |((of, _), old): (&(TriggerKey, Uuid), &TriggerEvent)| {
            (*of == key && old.at < event.at - TRIGGER_EVENT_TTL).then_some(old.id)
        };
        let forgotten: Vec<Uuid> = events.iter().filter_map(long_ago).take(10).collect();
        forgotten.into_iter().for_each(|id| drop(events.remove(&(key.clone(), id))));
        events.insert((key, id), event);
    }
}

#[async_trait]
impl Triggers for Memory {
    async fn trigger(&self, key: &TriggerKey) -> Result<Option<TriggerRecord>> {
        let tables = self.shared.tables();
        Ok(tables.triggers.get(key).map(|row| trigger_record(&tables, key, row)))
    }

    async fn triggers(&self, tenant: TenantId, filter: &TriggerFilter) -> Result<Vec<TriggerRecord>> {
        let mut found = trigger_records(&self.shared.tables(), |key, _| {
            let place = (&key.workflow, &key.name);
            key.tenant == tenant
                && filter.workflow.as_ref().is_none_or(|workflow| *workflow == key.workflow)
                && filter.after.as_ref().is_none_or(|(workflow, name)| place > (workflow, name))
        });
        found.truncate(filter.limit as usize);
        Ok(found)
    }

    async fn triggers_on(&self, tenant: TenantId, kind: &str, by: &str) -> Result<Vec<TriggerRecord>> {
        Ok(trigger_records(&self.shared.tables(), |key, row| {
            key.tenant == tenant
                && row.paused.is_none()
                && row.trigger.kind() == kind
                && row.trigger.keys().iter().any(|key| key == by)
        }))
    }

    async fn due_triggers(&self, now: Instant, limit: u32) -> Result<Vec<TriggerRecord>> {
        let is_due = |row: &TriggerRow| row.paused.is_none() && row.due_at.is_some_and(|at| at <= now);
        let mut found = trigger_records(&self.shared.tables(), |_, row| is_due(row));
        found.sort_by_key(|record| (record.due_at, record.key.clone()));
        found.truncate(limit as usize);
        Ok(found)
    }

    async fn put_off(&self, key: &TriggerKey, due_at: Instant, until: Instant) -> Result<bool> {
        let _turn = self.turn.lock().await;
        let mut tables = self.shared.tables();
        let row = tables.triggers.get_mut(key).filter(|row| row.due_at == Some(due_at));
        Ok(row.map(|row| row.due_at = Some(until)).is_some())
    }

    async fn pause_trigger(
        &self,
        key: &TriggerKey,
        pause: Option<&TriggerPause>,
        now: Instant,
    ) -> Result<bool> {
        let _turn = self.turn.lock().await;
        let mut tables = self.shared.tables();
        let Some(row) = tables.triggers.get_mut(key) else { return Ok(false) };
        match pause {
            Some(pause) => row.paused = Some(pause.clone()),
            None => {
                row.failures = 0;
                row.go_on(now);
            }
        }
        Ok(true)
    }

    async fn runs_triggered(&self, key: &TriggerKey, since: Instant) -> Result<u32> {
        let events = events_of(&self.shared.tables(), key);
        Ok(events.iter().filter(|event| event.at >= since && event.run.is_some()).count() as u32)
    }

    async fn run_on(
        &self,
        tenant: TenantId,
        workflow: &str,
        logical_date: Instant,
    ) -> Result<Option<(RunId, RunState)>> {
        let tables = self.shared.tables();
        let on = |key: &(TenantId, String, String, Instant)| {
            key.0 == tenant && key.1 == workflow && key.3 == logical_date
        };
        let runs = tables.dates.iter().filter(|(key, _)| on(key)).filter_map(|(_, run)| tables.runs.get(run));
        let newest = runs.map(|row| &row.run).max_by_key(|run| (run.created_at, run.id));
        Ok(newest.map(|run| (run.id, run.state)))
    }
}

impl Tables {
    /// Pauses the triggers of a workflow that is paused.
    pub(super) fn hold_triggers(&mut self, tenant: TenantId, workflow: &str) {
        let row = self.workflows.get(&(tenant, workflow.to_owned()));
        let Some(at) = row.and_then(|row| row.pause.as_ref()).map(|pause| pause.at) else { return };
        let own = self.triggers.iter_mut();
        for (_, row) in own.filter(|(key, _)| key.tenant == tenant && key.workflow == workflow) {
            row.paused.get_or_insert_with(|| TriggerPause { at, reason: WORKFLOW_PAUSES.into() });
        }
    }

    pub(super) fn release_triggers(&mut self, tenant: TenantId, workflow: &str, at: Instant) {
        let own = self.triggers.iter_mut();
        for (_, row) in own.filter(|(key, _)| key.tenant == tenant && key.workflow == workflow) {
            if row.paused.as_ref().is_some_and(|pause| pause.reason == WORKFLOW_PAUSES) {
                row.go_on(at);
            }
        }
    }
}

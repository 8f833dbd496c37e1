//! Triggers, and the events that they received.

use async_trait::async_trait;
use model::{CloudEvent, Instant, RunId, RunState, TenantId, TriggerKey, TriggerOn, Workflow};
use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{PgConnection, PgExecutor, Row};

use super::transaction::PostgresTransaction;
use super::{Postgres, bounded, rows};
use crate::definitions::WORKFLOW_PAUSES;
use crate::triggers::TRIGGER_EVENT_TTL;
use crate::{
    Bounded, Error, PollRecord, Result, TransactionTriggers, TriggerEvent, TriggerFilter, TriggerPause,
    TriggerRecord, Triggers, normal,
};

/// Makes the triggers of a workflow those of the version that became active. One that waits for the same as before
/// keeps what it has seen.
pub(super) async fn replace(
    connection: &mut PgConnection,
    tenant: TenantId,
    workflow: &Workflow,
    at: Instant,
) -> Result<()> {
    let names: Vec<&str> = workflow.triggers.iter().map(|trigger| trigger.name.as_str()).collect();
    sqlx::query("delete from triggers where tenant = $1 and workflow = $2 and name <> all ($3)")
        .bind(tenant.0)
        .bind(normal::text(&workflow.name))
        .bind(names)
        .execute(&mut *connection)
        .await?;
    for trigger in &workflow.triggers {
        let due_at = matches!(trigger.on, TriggerOn::Sensor { .. }).then_some(at);
        sqlx::query(include_str!("../../queries/upsert_trigger.sql"))
            .bind(tenant.0)
            .bind(normal::text(&workflow.name))
            .bind(normal::text(&trigger.name))
            .bind(trigger.kind())
            .bind(trigger.keys().iter().map(|key| normal::text(key).into_owned()).collect::<Vec<_>>())
            .bind(rows::json(trigger))
            .bind(due_at)
            .execute(&mut *connection)
            .await?;
    }
    hold_triggers(connection, tenant, &workflow.name).await
}

pub(super) async fn remove(executor: impl PgExecutor<'_>, tenant: TenantId, workflow: &str) -> Result<()> {
    sqlx::query("delete from triggers where tenant = $1 and workflow = $2")
        .bind(tenant.0)
        .bind(normal::text(workflow))
        .execute(executor)
        .await?;
    Ok(())
}

fn record(row: &PgRow) -> Result<TriggerRecord> {
    let (tenant, workflow, name) =
        (TenantId(row.try_get("tenant")?), row.try_get("workflow")?, row.try_get("name")?);
    let paused = match row.try_get::<Option<Instant>, _>("paused_at")? {
        Some(at) => Some(TriggerPause { at, reason: row.try_get("paused_reason")? }),
        None => None,
    };
    let last = match row.try_get::<Option<uuid::Uuid>, _>("event_id")? {
        Some(_) => Some(event(row)?),
        None => None,
    };
    Ok(TriggerRecord {
        key: TriggerKey { tenant, workflow, name },
        trigger: read(row, "definition")?.ok_or_else(|| unreadable("nothing is there"))?,
        due_at: row.try_get("due_at")?,
        held: read(row, "held")?,
        watermark: read(row, "watermark")?.unwrap_or_default(),
        failures: rows::number(row, "failures")?,
        revision: row.try_get("revision")?,
        paused,
        last,
    })
}

fn event(row: &PgRow) -> Result<TriggerEvent> {
    Ok(TriggerEvent {
        id: row.try_get("event_id")?,
        at: row.try_get("event_at")?,
        what: row.try_get("event_what")?,
        run: row.try_get::<Option<uuid::Uuid>, _>("event_run")?.map(RunId),
    })
}

fn read<T: serde::de::DeserializeOwned>(row: &PgRow, column: &str) -> Result<Option<T>> {
    let found: Option<Json<Value>> = row.try_get(column)?;
    let value = found.map(|Json(value)| serde_json::from_value(value)).transpose();
    value.map_err(|error| unreadable(&error.to_string()))
}

fn unreadable(why: &str) -> Error {
    Error::Unreadable { what: "trigger", why: why.to_owned() }
}

#[async_trait]
impl TransactionTriggers for PostgresTransaction {
    async fn note_event(&mut self, key: &TriggerKey, event: &TriggerEvent) -> Result<bool> {
        let noted = note(self.connection(), key, event).await;
        self.note(noted)
    }

    async fn hold_event(&mut self, key: &TriggerKey, event: &CloudEvent, due_at: Instant) -> Result<bool> {
        let held = sqlx::query(
            "update triggers set held = $4::text::json, due_at = $5
              where tenant = $1 and workflow = $2 and name = $3",
        )
        .bind(key.tenant.0)
        .bind(normal::text(&key.workflow))
        .bind(normal::text(&key.name))
        .bind(rows::json(event))
        .bind(due_at)
        .execute(self.connection())
        .await;
        self.note(held.map_err(Error::from)).map(|held| held.rows_affected() == 1)
    }

    async fn take_held(&mut self, key: &TriggerKey, now: Instant) -> Result<Option<CloudEvent>> {
        let found = sqlx::query(include_str!("../../queries/take_held_event.sql"))
            .bind(key.tenant.0)
            .bind(normal::text(&key.workflow))
            .bind(normal::text(&key.name))
            .bind(now)
            .fetch_optional(self.connection())
            .await;
        let found = self.note(found.map_err(Error::from))?;
        found.as_ref().map_or(Ok(None), |row| read(row, "held"))
    }

    async fn record_poll(
        &mut self,
        key: &TriggerKey,
        revision: i64,
        poll_record: &PollRecord,
    ) -> Result<bool> {
        let reason = poll_record.paused.as_ref().map(|pause| normal::text(&pause.reason).into_owned());
        let written = sqlx::query(
            "update triggers
                set watermark = $5::text::json, due_at = $6, failures = $7,
                    paused_at = coalesce($8, paused_at), paused_reason = coalesce($9, paused_reason), revision = revision + 1
              where tenant = $1 and workflow = $2 and name = $3 and revision = $4",
        )
        .bind(key.tenant.0)
        .bind(normal::text(&key.workflow))
        .bind(normal::text(&key.name))
        .bind(revision)
        .bind(rows::json(&poll_record.watermark))
        .bind(poll_record.due_at)
        .bind(rows::int(poll_record.failures))
        .bind(poll_record.paused.as_ref().map(|pause| pause.at))
        .bind(reason)
        .execute(self.connection())
        .await;
        self.note(written.map_err(Error::from)).map(|written| written.rows_affected() == 1)
    }
}

async fn note(connection: &mut PgConnection, key: &TriggerKey, event: &TriggerEvent) -> Result<bool> {
    let written = sqlx::query(include_str!("../../queries/note_trigger_event.sql"))
        .bind(key.tenant.0)
        .bind(normal::text(&key.workflow))
        .bind(normal::text(&key.name))
        .bind(event.id)
        .bind(event.at)
        .bind(normal::label(&event.what))
        .bind(event.run.map(|run| run.0))
        .bind(event.at - TRIGGER_EVENT_TTL)
        .execute(connection)
        .await?;
    Ok(written.rows_affected() == 1)
}

#[async_trait]
impl Triggers for Postgres {
    async fn trigger(&self, key: &TriggerKey) -> Result<Option<TriggerRecord>> {
        trigger(&self.pool, key).await
    }

    async fn triggers(&self, tenant: TenantId, filter: &TriggerFilter) -> Result<Vec<TriggerRecord>> {
        Ok(triggers(&self.pool, tenant, filter, usize::MAX).await?.items)
    }

    async fn triggers_on(&self, tenant: TenantId, kind: &str, key: &str) -> Result<Vec<TriggerRecord>> {
        let found = sqlx::query(include_str!("../../queries/find_triggers_on.sql"))
            .bind(tenant.0)
            .bind(kind)
            .bind(normal::text(key))
            .fetch_all(&self.pool)
            .await?;
        found.iter().map(record).collect()
    }

    async fn due_triggers(&self, now: Instant, limit: u32) -> Result<Vec<TriggerRecord>> {
        let found = sqlx::query(include_str!("../../queries/find_due_triggers.sql"))
            .bind(now)
            .bind(i64::from(limit))
            .fetch_all(&self.pool)
            .await?;
        found.iter().map(record).collect()
    }

    async fn put_off(&self, key: &TriggerKey, due_at: Instant, until: Instant) -> Result<bool> {
        let written = sqlx::query(
            "update triggers set due_at = $5 where tenant = $1 and workflow = $2 and name = $3 and due_at = $4",
        )
        .bind(key.tenant.0)
        .bind(normal::text(&key.workflow))
        .bind(normal::text(&key.name))
        .bind(due_at)
        .bind(until)
        .execute(&self.pool)
        .await?;
        Ok(written.rows_affected() == 1)
    }

    async fn pause_trigger(
        &self,
        key: &TriggerKey,
        pause: Option<&TriggerPause>,
        now: Instant,
    ) -> Result<bool> {
        let written = sqlx::query(include_str!("../../queries/pause_trigger.sql"))
            .bind(key.tenant.0)
            .bind(normal::text(&key.workflow))
            .bind(normal::text(&key.name))
            .bind(pause.map(|pause| pause.at))
            .bind(pause.map(|pause| normal::text(&pause.reason).into_owned()))
            .bind(now)
            .execute(&self.pool)
            .await?;
        Ok(written.rows_affected() == 1)
    }

    async fn runs_triggered(&self, key: &TriggerKey, since: Instant) -> Result<u32> {
        let row = sqlx::query(
            "select count(*)::int as runs from trigger_events
              where tenant = $1 and workflow = $2 and name = $3 and at >= $4 and run is not null",
        )
        .bind(key.tenant.0)
        .bind(normal::text(&key.workflow))
        .bind(normal::text(&key.name))
        .bind(since)
        .fetch_one(&self.pool)
        .await?;
        rows::number(&row, "runs")
    }

    async fn run_on(
        &self,
        tenant: TenantId,
        workflow: &str,
        logical_date: Instant,
    ) -> Result<Option<(RunId, RunState)>> {
        let found = sqlx::query(
            "select id, state from runs where tenant = $1 and workflow = $2 and logical_date = $3
              order by created_at desc, id desc limit 1",
        )
        .bind(tenant.0)
        .bind(normal::text(workflow))
        .bind(logical_date)
        .fetch_optional(&self.pool)
        .await?;
        found.as_ref().map(|row| Ok((RunId(row.try_get("id")?), rows::run_state(row)?))).transpose()
    }
}

/// One trigger with the last event that it received.
pub async fn trigger(executor: impl PgExecutor<'_>, key: &TriggerKey) -> Result<Option<TriggerRecord>> {
    let found = sqlx::query(include_str!("../../queries/find_trigger.sql"))
        .bind(key.tenant.0)
        .bind(normal::text(&key.workflow))
        .bind(normal::text(&key.name))
        .fetch_optional(executor)
        .await?;
    found.as_ref().map(record).transpose()
}

/// Triggers of a tenant, by workflow and name.
pub async fn triggers(
    executor: impl PgExecutor<'_>,
    tenant: TenantId,
    filter: &TriggerFilter,
    max_bytes: usize,
) -> Result<Bounded<TriggerRecord>> {
    let after = filter.after.as_ref();
    let found = sqlx::query(include_str!("../../queries/list_triggers.sql"))
        .bind(tenant.0)
        .bind(filter.workflow.as_deref().map(normal::text))
        .bind(after.map(|(workflow, _)| normal::text(workflow)))
        .bind(after.map(|(_, name)| normal::text(name)))
        .bind(i64::from(filter.limit))
        .fetch(executor);
    bounded::rows(found, max_bytes).await?.try_map(|row| record(&row))
}

/// The events that a trigger received, the latest first.
pub async fn trigger_events(
    executor: impl PgExecutor<'_>,
    key: &TriggerKey,
    limit: u32,
) -> Result<Vec<TriggerEvent>> {
    let found = sqlx::query(
        "select id as event_id, at as event_at, what as event_what, run as event_run from trigger_events
          where tenant = $1 and workflow = $2 and name = $3 order by at desc, id limit $4",
    )
    .bind(key.tenant.0)
    .bind(normal::text(&key.workflow))
    .bind(normal::text(&key.name))
    .bind(i64::from(limit))
    .fetch_all(executor)
    .await?;
    found.iter().map(event).collect()
}

/// Pauses the triggers of a workflow that is paused.
pub(super) async fn hold_triggers(
    connection: &mut PgConnection,
    tenant: TenantId,
    workflow: &str,
) -> Result<()> {
    sqlx::query(
        "update triggers set paused_at = workflows.paused_at, paused_reason = $3
           from workflows
          where triggers.tenant = $1 and triggers.workflow = $2 and triggers.paused_at is null
            and workflows.tenant = $1 and workflows.name = $2 and workflows.paused_at is not null",
    )
    .bind(tenant.0)
    .bind(normal::text(workflow))
    .bind(WORKFLOW_PAUSES)
    .execute(connection)
    .await?;
    Ok(())
}

/// Resumes the triggers that paused with their workflow; their sensors poll at once.
pub(super) async fn release_triggers(
    connection: &mut PgConnection,
    tenant: TenantId,
    workflow: &str,
    at: Instant,
) -> Result<()> {
    sqlx::query(
        "update triggers set paused_at = null, paused_reason = null,
                due_at = case when kind = 'sensor' then $4 else due_at end
          where tenant = $1 and workflow = $2 and paused_reason = $3",
    )
    .bind(tenant.0)
    .bind(normal::text(workflow))
    .bind(WORKFLOW_PAUSES)
    .bind(at)
    .execute(connection)
    .await?;
    Ok(())
}

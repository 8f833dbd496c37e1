//! Polls sensors.
//!
//! The sensor of a task checks whether its condition is met; that of a trigger finds events since the last poll. Polls have
//! no side effects, so they may be repeated.

mod files;
mod sql;
#[cfg(test)]
mod tests;

use chrono::TimeDelta;
use engine::Command;
use host::secrets::Redactor;
use host::storage::Storage;
use host::{EgressPolicy, Verdict};
use language::config::{self, HttpSensor, Sensor};
use language::expression;
use language::template::Scope;
use model::message::{PollDue, PollTarget, TaskDispatched, TaskResult};
use model::{CloudEvent, Failure, Instant, TaskKey, TaskKind, TenantId, TriggerKey};
use runtime::{Find, Poll};
use serde_json::{Value, json};
use store::TriggerRecord;
use tracing::info;
use uuid::Uuid;

use crate::attempt::Executor;
use crate::task_runners::{Http, MAX_OUTPUT_BYTES, Redact};

const POLL_TIMEOUT: TimeDelta = TimeDelta::seconds(50);

/// The clients that sensors poll with.
pub(crate) struct SensorClients {
    /// The databases that sensors may query.
    pub(crate) egress: EgressPolicy,
    pub(crate) http: Http,
    pub(crate) storage: Storage,
}

impl Executor {
    /// Polls the sensor of a task or a trigger, and settles the result.
    pub async fn poll(&self, due: &PollDue) -> runtime::Result<Verdict> {
        match &due.target {
            PollTarget::Task { .. } => self.poll_task(due).await,
            PollTarget::Trigger { workflow, name } => {
                let key = TriggerKey { tenant: due.tenant, workflow: workflow.clone(), name: name.clone() };
                self.poll_trigger(&key).await
            }
        }
    }

    async fn poll_task(&self, due: &PollDue) -> runtime::Result<Verdict> {
        let PollTarget::Task { key, attempt, version, child, since, failed } = due.target.clone() else {
            return Ok(Verdict::Done);
        };
        let Some(graph) = self.runtime.graph(version).await?.filter(|graph| graph.has(key.task, child))
        else {
            return Ok(Verdict::Reject(format!("version {} has no task {}", version.0, key.task.0)));
        };
        let queue = due.queue.clone();
        let work =
            TaskDispatched { key, tenant: due.tenant, attempt, version, queue, child, give_up_at: None };
        let spec = graph.spec_at(key.task, child);
        let tenant = self.runtime.tenants().name(due.tenant).await?;
        let known = self.runner.secrets.of(&tenant);
        let polled = match known.resolve(runtime::secrets_of(spec)).await {
            Err(failure) => Err(failure),
            Ok(secrets) => {
                let redactor = Redactor::of(&secrets).and(known.all().await);
                match self.runtime.job(&work, &graph, secrets).await? {
                    runtime::Job::Gone => {
                        return Ok(Verdict::Reject(format!("there is no run {}", key.run)));
                    }
                    runtime::Job::Broken(failure) => Err(redactor.failure(failure)),
                    runtime::Job::Ready(brief) => {
                        let redact = |text: &str| redactor.text(text);
                        let poll = self.poll_condition(due.tenant, brief.config, since, &redact);
                        let polled = self.with_timeout(poll).await;
                        polled
                            .map(|output| output.map(|output| redactor.value(output)))
                            .map_err(|failure| redactor.failure(failure))
                    }
                }
            }
        };
        let result = match polled {
            Ok(Some(output)) if output.to_string().len() > MAX_OUTPUT_BYTES => {
                TaskResult::Failed(crate::task_runners::too_large(output.to_string().len() as u64))
            }
            Ok(Some(output)) => TaskResult::Succeeded(output),
            Ok(None) if !failed => return Ok(Verdict::Done),
            Ok(None) => return self.record_poll(key, attempt, None).await,
            Err(failure) if failure.class != model::ErrorClass::Permanent => {
                info!("A sensor of run {} will poll again: {}", key.run, failure.message);
                return self.record_poll(key, attempt, Some(failure)).await;
            }
            Err(failure) => TaskResult::Failed(failure),
        };
        let report = Command::Report { task: key.task, attempt, worker: None, started_at: since, result };
        self.runtime.settle(key.run, report).await?;
        Ok(Verdict::Done)
    }

    /// Records why a poll failed, or that it no longer fails, to show people why the task waits.
    async fn record_poll(
        &self,
        key: TaskKey,
        attempt: u32,
        failure: Option<Failure>,
    ) -> runtime::Result<Verdict> {
        self.runtime.settle(key.run, Command::Polled { task: key.task, attempt, failure }).await?;
        Ok(Verdict::Done)
    }

    /// Fails a poll that takes too long.
    async fn with_timeout<T>(&self, poll: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let clock = self.runtime.clock();
        tokio::select! {
            polled = poll => polled,
            () = clock.wait_until(clock.now() + POLL_TIMEOUT) => {
                Err(Failure::transient(format!("the poll took longer than {} s", POLL_TIMEOUT.num_seconds())))
            }
        }
    }

    /// The output of a task's sensor, if its condition is met.
    async fn poll_condition(
        &self,
        tenant: TenantId,
        config: Value,
        since: Instant,
        redact: Redact<'_>,
    ) -> Result<Option<Value>, Failure> {
        let sensor: Sensor =
            config::read(&TaskKind::Sensor, config).map_err(|error| Failure::permanent(error.to_string()))?;
        match sensor {
            Sensor::File(sensor) => {
                let earliest = sensor.changed_since.or(sensor.changed.then_some(since));
                let mut found =
                    files::list(&sensor.path, &self.clients.storage, &self.runner.secrets).await?;
                found.retain(|file| earliest.is_none_or(|earliest| file.changed_at > earliest));
                let watermark = found.iter().map(|file| file.changed_at).max();
                let files: Vec<Value> = found.iter().map(files::File::to_json).collect();
                Ok((!files.is_empty()).then(|| json!({"files": files, "watermark": watermark})))
            }
            Sensor::Sql(sensor) => {
                let rows = sql::query(&sensor, None, &self.clients.egress).await?;
                Ok((!rows.is_empty()).then(|| json!({"rows": rows, "count": rows.len()})))
            }
            Sensor::Http(sensor) => self.poll_http(&sensor, redact).await,
            Sensor::Time(sensor) => {
                let reached = self.runtime.clock().now() >= sensor.at;
                Ok(reached.then(|| json!({"at": sensor.at})))
            }
            Sensor::Run(sensor) => {
                let found = self.runtime.store().run_on(tenant, &sensor.workflow, sensor.logical_date).await;
                let found = found.map_err(|error| Failure::transient(error.to_string()))?;
                let ended = found.filter(|(_, state)| sensor.state.is_met_by(*state));
                Ok(ended.map(|(run, state)| json!({"run_id": run, "state": state})))
            }
        }
    }

    /// The response to a request, if it meets the condition.
    async fn poll_http(&self, sensor: &HttpSensor, redact: Redact<'_>) -> Result<Option<Value>, Failure> {
        let response = self.clients.http.exchange(&sensor.request(), redact).await?;
        let met = match &sensor.condition {
            None => response["status"].as_u64().is_some_and(|status| (200..300).contains(&status)),
            Some(condition) => {
                let scope = Scope { answer: Some(response.clone()), ..Scope::default() };
                let evaluated = expression::evaluate(condition, &scope);
                evaluated.map_err(|error| Failure::permanent(format!("condition: {error}")))?.truth
            }
        };
        Ok(met.then_some(response))
    }

    async fn poll_trigger(&self, key: &TriggerKey) -> runtime::Result<Verdict> {
        let record = self.runtime.store().trigger(key).await?;
        let Some(record) = record.filter(|record| record.paused.is_none()) else { return Ok(Verdict::Done) };
        let tenant = self.runtime.tenants().name(key.tenant).await?;
        let known = self.runner.secrets.of(&tenant);
        let poll = match known.resolve(self.runtime.triggers().sensor_secrets(&record)).await {
            Err(failure) => Err(failure),
            Ok(secrets) => {
                let redactor = Redactor::of(&secrets).and(known.all().await);
                let poll = match self.runtime.triggers().sensor(&record, secrets) {
                    Err(failure) => Err(failure),
                    Ok(sensor) => {
                        let redact = |text: &str| redactor.text(text);
                        self.with_timeout(self.poll_events(&record, sensor, &redact)).await
                    }
                };
                poll.map(|poll| redact_poll(poll, &redactor)).map_err(|failure| redactor.failure(failure))
            }
        };
        self.runtime.triggers().polled(&record, poll).await?;
        Ok(Verdict::Done)
    }

    /// The events that a trigger's sensor finds after its watermark.
    async fn poll_events(
        &self,
        record: &TriggerRecord,
        sensor: Sensor,
        redact: Redact<'_>,
    ) -> Result<Poll, Failure> {
        let watermark = &record.watermark;
        match sensor {
            Sensor::File(sensor) => {
                files::poll(&sensor, watermark, &self.clients.storage, &self.runner.secrets).await
            }
            Sensor::Sql(sensor) if sensor.cursor.is_some() => {
                sql::poll(&sensor, watermark, &self.clients.egress).await
            }
            Sensor::Sql(sensor) => {
                let rows = sql::query(&sensor, None, &self.clients.egress).await?;
                let digest = Uuid::new_v5(&Uuid::NAMESPACE_OID, json!(rows).to_string().as_bytes());
                let found = (!rows.is_empty())
                    .then(|| (digest.to_string(), json!({"count": rows.len(), "rows": rows})));
                Ok(edge(record, "sql", found))
            }
            Sensor::Http(sensor) => {
                let response = self.poll_http(&sensor, redact).await?;
                Ok(edge(record, "http", response.map(|response| ("met".to_owned(), response))))
            }
            Sensor::Time(sensor) => {
                let at = sensor.at.to_rfc3339();
                // A time that was reached stays reached, even by a slow clock.
                let seen = *watermark == json!({"seen": at});
                let reached = seen || self.runtime.clock().now() >= sensor.at;
                let found = reached.then(|| (at.clone(), json!({"at": at})));
                Ok(edge(record, "time", found))
            }
            Sensor::Run(_) => Err(Failure::permanent("triggers on runs use `workflow`, not a sensor")),
        }
    }
}

/// The event of a sensor that is either met or not: when it becomes met, or is met by something else. The revision
/// distinguishes repeated edges, and is the same for concurrent polls.
fn edge(record: &TriggerRecord, kind: &str, found: Option<(String, Value)>) -> Poll {
    let Some((digest, data)) = found else {
        return Poll { finds: Vec::new(), watermark: Value::Null };
    };
    let watermark = json!({ "seen": digest });
    if record.watermark == watermark {
        return Poll { finds: Vec::new(), watermark };
    }
    let id = format!("{digest}@{}", record.revision);
    let event = event(kind, &format!("{}/{}", record.key.workflow, record.key.name), id, data);
    Poll { finds: vec![Find { event, watermark: watermark.clone() }], watermark }
}

/// The event of a sensor's find.
fn event(kind: &str, source: &str, id: String, data: Value) -> CloudEvent {
    let source = if source.contains("//") { source.to_owned() } else { format!("/ebbflow/sensors/{source}") };
    CloudEvent { id, source, kind: format!("dev.ebbflow.sensor.{kind}.v1"), data, ..CloudEvent::default() }
}

/// Redacts secrets in a sensor's result, which is stored.
fn redact_poll(poll: Poll, redactor: &Redactor) -> Poll {
    let redact = |find: Find| {
        let data = redactor.value(find.event.data);
        Find { event: CloudEvent { data, ..find.event }, ..find }
    };
    Poll { finds: poll.finds.into_iter().map(redact).collect(), ..poll }
}

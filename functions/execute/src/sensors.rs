//! Polls sensors.
//!
//! A task's sensor finds whether its condition is met; a trigger's finds what is new since the last poll. Polling has no side
//! effects, so it may be repeated.

mod files;
mod sql;
#[cfg(test)]
mod tests;

use chrono::TimeDelta;
use engine::Command;
use host::Verdict;
use host::secrets::Mask;
use host::storage::Storage;
use language::config::{self, HttpSensor, Sensor};
use language::expression;
use language::template::Scope;
use model::message::{PollDue, TaskDispatched, TaskResult, Watch};
use model::{CloudEvent, Failure, Instant, TaskKey, TaskKind, TenantId, TriggerKey};
use runtime::{Find, Poll};
use serde_json::{Value, json};
use store::TriggerRecord;
use tracing::info;
use uuid::Uuid;

use crate::attempt::Executor;
use crate::performers::{Http, Hush, MAX_OUTPUT_BYTES};

const POLL_TIMEOUT: TimeDelta = TimeDelta::seconds(50);

/// The clients that sensors poll with.
pub(crate) struct SensorClients {
    pub(crate) http: Http,
    pub(crate) storage: Storage,
}

impl Executor {
    /// Polls the sensor of a task or a trigger, and settles the result.
    pub async fn poll(&self, due: &PollDue) -> runtime::Result<Verdict> {
        match &due.watch {
            Watch::Task { .. } => self.poll_task(due).await,
            Watch::Trigger { workflow, name } => {
                let key = TriggerKey { tenant: due.tenant, workflow: workflow.clone(), name: name.clone() };
                self.poll_trigger(&key).await
            }
        }
    }

    async fn poll_task(&self, due: &PollDue) -> runtime::Result<Verdict> {
        let Watch::Task { key, attempt, version, child, since, failed } = due.watch.clone() else {
            return Ok(Verdict::Done);
        };
        let Some(graph) = self.runtime.graph(version).await?.filter(|graph| graph.has(key.task, child))
        else {
            return Ok(Verdict::Hopeless(format!("version {} has no task {}", version.0, key.task.0)));
        };
        let queue = due.queue.clone();
        let work =
            TaskDispatched { key, tenant: due.tenant, attempt, version, queue, child, give_up_at: None };
        let spec = graph.spec_at(key.task, child);
        let seen = match self.secrets.resolve(runtime::secrets_of(spec)).await {
            Err(failure) => Err(failure),
            Ok(secrets) => {
                let mask = Mask::of(&secrets).and(self.secrets.known().await);
                match self.runtime.job(&work, &graph, secrets).await? {
                    runtime::Job::Gone => {
                        return Ok(Verdict::Hopeless(format!("there is no run {}", key.run)));
                    }
                    runtime::Job::Broken(failure) => Err(mask.failure(failure)),
                    runtime::Job::Ready(brief) => {
                        let hush = |text: &str| mask.text(text);
                        let seen = self.in_time(self.see(due.tenant, brief.config, since, &hush)).await;
                        seen.map(|seen| seen.map(|seen| mask.value(seen)))
                            .map_err(|failure| mask.failure(failure))
                    }
                }
            }
        };
        let result = match seen {
            Ok(Some(output)) if output.to_string().len() > MAX_OUTPUT_BYTES => {
                TaskResult::Failed(crate::performers::too_large(output.to_string().len() as u64))
            }
            Ok(Some(output)) => TaskResult::Succeeded(output),
            Ok(None) if !failed => return Ok(Verdict::Done),
            Ok(None) => return self.note_poll(key, attempt, None).await,
            Err(failure) if failure.class != model::ErrorClass::Permanent => {
                info!("A sensor of run {} polls again later: {}", key.run, failure.message);
                return self.note_poll(key, attempt, Some(failure)).await;
            }
            Err(failure) => TaskResult::Failed(failure),
        };
        let report = Command::Report { task: key.task, attempt, worker: None, started_at: since, result };
        self.runtime.settle(key.run, report).await?;
        Ok(Verdict::Done)
    }

    /// Records why a poll failed, or that it no longer does, for people who wonder why the task waits.
    async fn note_poll(
        &self,
        key: TaskKey,
        attempt: u32,
        failure: Option<Failure>,
    ) -> runtime::Result<Verdict> {
        self.runtime.settle(key.run, Command::Polled { task: key.task, attempt, failure }).await?;
        Ok(Verdict::Done)
    }

    /// A poll that takes too long fails.
    async fn in_time<T>(&self, poll: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let clock = self.runtime.clock();
        tokio::select! {
            seen = poll => seen,
            () = clock.wait_until(clock.now() + POLL_TIMEOUT) => {
                Err(Failure::transient(format!("the poll took longer than {} s", POLL_TIMEOUT.num_seconds())))
            }
        }
    }

    /// The output of a task's sensor, once its condition is met.
    async fn see(
        &self,
        tenant: TenantId,
        config: Value,
        since: Instant,
        hush: Hush<'_>,
    ) -> Result<Option<Value>, Failure> {
        let sensor: Sensor =
            config::read(TaskKind::Sensor, config).map_err(|error| Failure::permanent(error.to_string()))?;
        match sensor {
            Sensor::File(sensor) => {
                let earliest = sensor.changed_since.or(sensor.changed.then_some(since));
                let mut found = files::list(&sensor.path, &self.clients.storage).await?;
                found.retain(|file| earliest.is_none_or(|earliest| file.changed_at > earliest));
                let watermark = found.iter().map(|file| file.changed_at).max();
                let files: Vec<Value> = found.iter().map(files::File::to_json).collect();
                Ok((!files.is_empty()).then(|| json!({"files": files, "watermark": watermark})))
            }
            Sensor::Sql(sensor) => {
                let rows = sql::ask(&sensor, None).await?;
                Ok((!rows.is_empty()).then(|| json!({"rows": rows, "count": rows.len()})))
            }
            Sensor::Http(sensor) => self.ask(&sensor, hush).await,
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
    async fn ask(&self, sensor: &HttpSensor, hush: Hush<'_>) -> Result<Option<Value>, Failure> {
        let answer = self.clients.http.exchange(&sensor.request(), hush).await?;
        let met = match &sensor.condition {
            None => answer["status"].as_u64().is_some_and(|status| (200..300).contains(&status)),
            Some(condition) => {
                let scope = Scope { answer: Some(answer.clone()), ..Scope::default() };
                let evaluated = expression::evaluate(condition, &scope);
                evaluated.map_err(|error| Failure::permanent(format!("condition: {error}")))?.truth
            }
        };
        Ok(met.then_some(answer))
    }

    async fn poll_trigger(&self, key: &TriggerKey) -> runtime::Result<Verdict> {
        let record = self.runtime.store().trigger(key).await?;
        let Some(record) = record.filter(|record| record.paused.is_none()) else { return Ok(Verdict::Done) };
        let poll = match self.secrets.resolve(self.runtime.triggers().sensor_secrets(&record)).await {
            Err(failure) => Err(failure),
            Ok(secrets) => {
                let mask = Mask::of(&secrets).and(self.secrets.known().await);
                let poll = match self.runtime.triggers().sensor(&record, secrets) {
                    Err(failure) => Err(failure),
                    Ok(sensor) => self.in_time(self.news(&record, sensor, &|text| mask.text(text))).await,
                };
                poll.map(|poll| clean_poll(poll, &mask)).map_err(|failure| mask.failure(failure))
            }
        };
        self.runtime.triggers().polled(&record, poll).await?;
        Ok(Verdict::Done)
    }

    /// What is new to a trigger's sensor.
    async fn news(&self, record: &TriggerRecord, sensor: Sensor, hush: Hush<'_>) -> Result<Poll, Failure> {
        let seen = &record.watermark;
        match sensor {
            Sensor::File(sensor) => files::news(&sensor, seen, &self.clients.storage).await,
            Sensor::Sql(sensor) if sensor.cursor.is_some() => sql::news(&sensor, seen).await,
            Sensor::Sql(sensor) => {
                let rows = sql::ask(&sensor, None).await?;
                let digest = Uuid::new_v5(&Uuid::NAMESPACE_OID, json!(rows).to_string().as_bytes());
                let there = (!rows.is_empty())
                    .then(|| (digest.to_string(), json!({"count": rows.len(), "rows": rows})));
                Ok(edge(record, "sql", there))
            }
            Sensor::Http(sensor) => {
                let answer = self.ask(&sensor, hush).await?;
                Ok(edge(record, "http", answer.map(|answer| ("met".to_owned(), answer))))
            }
            Sensor::Time(sensor) => {
                let at = sensor.at.to_rfc3339();
                // A time that was reached stays reached, even if a slow clock shows otherwise.
                let seen = *seen == json!({"seen": at});
                let reached = seen || self.runtime.clock().now() >= sensor.at;
                let there = reached.then(|| (at.clone(), json!({"at": at})));
                Ok(edge(record, "time", there))
            }
            Sensor::Run(_) => {
                Err(Failure::permanent("a trigger follows on runs by `workflow`, not by a sensor"))
            }
        }
    }
}

/// What there is to a sensor that is either met or not: it is new where it was not met before, or by something else. The
/// revision tells one time from another, and is the same for all who look at the same time.
fn edge(record: &TriggerRecord, kind: &str, there: Option<(String, Value)>) -> Poll {
    let Some((digest, data)) = there else {
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

/// An event that a sensor makes of what it saw.
fn event(kind: &str, source: &str, id: String, data: Value) -> CloudEvent {
    let source = if source.contains("//") { source.to_owned() } else { format!("/ebbflow/sensors/{source}") };
    CloudEvent { id, source, kind: format!("dev.ebbflow.sensor.{kind}.v1"), data, ..CloudEvent::default() }
}

/// Masks secrets in a sensor's result, which is stored.
fn clean_poll(poll: Poll, mask: &Mask) -> Poll {
    let clean = |find: Find| {
        let data = mask.value(find.event.data);
        Find { event: CloudEvent { data, ..find.event }, ..find }
    };
    Poll { finds: poll.finds.into_iter().map(clean).collect(), ..poll }
}

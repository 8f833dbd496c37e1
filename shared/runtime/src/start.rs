//! Starting runs, whatever their origin.

mod backfill;
mod child;
mod origin;
mod prepare;
mod preview;
mod replace;
mod schedule;
pub(crate) mod trigger;

use std::sync::Arc;

use model::message::RunRequested;
use model::{Instant, Run, RunId, TenantId};
use serde_json::{Map, Value};
use store::RunRecord;

pub use backfill::{BackfillPlan, NewBackfill, Steer};
pub use origin::Origin;
pub(crate) use prepare::Prepared;
pub use preview::{DriftSummary, DueAt, Missed, SchedulePreview, made_up_for};
pub use replace::Replaces;

use crate::concurrency;
use crate::inbox;
use crate::pipeline;
use crate::pipeline::{Creation, Pipeline};
use crate::publish;
use crate::{Result, Runtime};
use child::check_wanted;
use trigger::Cause;

/// A run that someone requests.
#[derive(Clone, PartialEq, Debug)]
pub struct StartRun {
    /// The id of the run; two requests with one id create one run.
    pub id: RunId,
    /// The tenant that the run belongs to.
    pub tenant: TenantId,
    /// The name of the workflow.
    pub workflow: String,
    /// Its inputs, before defaults and checks.
    pub inputs: Map<String, Value>,
    /// Labels to find it by.
    pub labels: Map<String, Value>,
    /// The date it is about, if it is about one.
    pub logical_date: Option<Instant>,
    /// Added to the priority of each of its tasks.
    pub priority: i32,
    /// Who or what requests it.
    pub origin: Origin,
}

impl StartRun {
    /// A request with nothing but what every request has.
    pub fn new(id: RunId, tenant: TenantId, workflow: impl Into<String>, origin: Origin) -> Self {
        Self {
            id,
            tenant,
            workflow: workflow.into(),
            inputs: Map::new(),
            labels: Map::new(),
            logical_date: None,
            priority: 0,
            origin,
        }
    }
}

impl From<RunRequested> for StartRun {
    fn from(request: RunRequested) -> Self {
        let origin = Origin::from(&request);
        Self {
            inputs: request.inputs,
            labels: request.labels,
            logical_date: request.logical_date,
            priority: request.priority,
            ..Self::new(request.run, request.tenant, request.workflow, origin)
        }
    }
}

/// A run that exists now.
#[derive(Clone, PartialEq, Debug)]
pub struct Started {
    /// The run, as it was created if this call created it. The task that started it is not read then.
    pub record: RunRecord,
    /// Whether this call created it.
    pub new: bool,
}

impl Runtime {
    /// Creates a run of the workflow's active version with its first tasks on their way, and publishes these
    /// once it is committed. Asking again for the same id creates nothing.
    pub async fn start(&self, request: StartRun) -> Result<Started> {
        match create(self, &request).await {
            // Asked before? Then what has changed since does not matter.
            Err(error) if error.is_hopeless() || error.is_quota() => {
                started_before(self, &request).await?.ok_or(error)
            }
            other => other,
        }
    }
}

async fn create(runtime: &Runtime, request: &StartRun) -> Result<Started> {
    runtime.quota.admitting(runtime, request.tenant, create_admitted(runtime, request), |_| true).await
}

async fn create_admitted(runtime: &Runtime, request: &StartRun) -> Result<Started> {
    let prepared = Arc::new(prepare::prepare(runtime, request).await?);
    let run = if prepared.needs_locks() {
        let created =
            pipeline::despite_conflicts(runtime, request.id, || create_alone(runtime, &prepared, None))
                .await?;
        created.expect("without a cause, nobody can have settled it before")
    } else {
        inbox::submit_run(runtime, prepared.clone()).await?
    };
    let (facts, version_number) = (prepared.facts.clone(), prepared.number);
    Ok(Started { record: RunRecord { run, facts, version_number, starter: None }, new: true })
}

/// Creates a run in one transaction with what is to be written about its cause; none where that has been settled
/// before.
pub(crate) async fn create_because(
    runtime: &Runtime,
    request: &StartRun,
    cause: &Cause,
) -> Result<Option<RunId>> {
    let prepared = prepare::prepare(runtime, request).await?;
    let create =
        pipeline::despite_conflicts(runtime, request.id, || create_alone(runtime, &prepared, Some(cause)));
    let created = runtime.quota.admitting(runtime, request.tenant, create, Option::is_some).await?;
    Ok(created.map(|run| run.id))
}

/// Creates a run in a transaction of its own; none where its cause had been settled before.
async fn create_alone(runtime: &Runtime, prepared: &Prepared, cause: Option<&Cause>) -> Result<Option<Run>> {
    let mut pipeline = Pipeline::open(runtime).await?;
    if let Some(cause) = cause
        && !cause.settle(pipeline.unit(), Some(prepared.run.id)).await?
    {
        return Ok(None);
    }
    // The group's lock comes before the parent's, as everywhere.
    let creation = match &prepared.run.concurrency_group {
        Some(group) => concurrency::enter(pipeline.unit(), prepared, group).await?,
        None => Creation::of(prepared),
    };
    check_wanted(pipeline.unit(), prepared.run.parent).await?;
    let mut written = pipeline.settle(Vec::new(), &[], vec![creation]).await?;
    publish::publish(runtime, written.pending).await;
    Ok(written.created.pop())
}

/// The run that this very request created earlier: of the same workflow, with the inputs that are given now.
async fn started_before(runtime: &Runtime, request: &StartRun) -> Result<Option<Started>> {
    let found = runtime.store.run(request.tenant, request.id).await?;
    let same = found.filter(|record| {
        let given = request.inputs.iter().all(|(name, value)| record.facts.inputs.get(name) == Some(value));
        // The id that a task's attempt or a schedule's date gives is the request's identity: what the task sees may
        // have changed, and so may the schedule's inputs.
        (given || request.origin.parent().is_some() || record.facts.planned.is_some())
            && record.run.workflow == request.workflow
            && record.facts.logical_date == request.logical_date
    });
    Ok(same.map(|record| Started { record, new: false }))
}

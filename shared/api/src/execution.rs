//! The protocol of workers that lease, which need only HTTP, neither the database nor the bus.
//!
//! They serve queues of the kind `pool`, whose tasks are offered instead of published. A worker leases attempts, and waits for
//! them if there are none; it sends heartbeats while it holds any, and reports
//! the result of each. A report that is sent again gets the same response. Reports about an attempt that was taken away are
//! refused, and the worker must stop that attempt.

mod attempts;
mod breakers;
mod lease;
mod progress;
mod registration;

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use host::Problem;
use model::{NetworkAccess, ResourceUsage, Resources, RunId, WorkerId};
use runtime::{Command, Settled};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::{Api, Caller, error, request};

pub use attempts::{CheckpointBody, CompleteBody, FailBody, FailClass, LogBody, ReleaseBody, StepView};
pub(crate) use attempts::{post_checkpoint, post_complete, post_fail, post_log, post_release};
pub(crate) use breakers::post_breakers;
pub use breakers::{BreakerStep, HostBreakerView, HostBreakersBody, HostBreakersView};
pub(crate) use lease::post_lease;
pub(crate) use progress::post_progress;
pub use progress::{DoneBody, ProgressBody};

/// The maximum length of a worker's name, in characters.
const MAX_NAME: usize = 100;

/// A request for work.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseBody {
    /// The worker's name, unique per process.
    #[schemars(length(min = 1, max = 100))]
    pub worker: String,
    /// The queue that it serves, of the kind `pool`.
    pub queue: String,
    /// The maximum number of attempts; default 1.
    #[serde(default)]
    #[schemars(range(min = 1, max = 32))]
    pub limit: Option<u32>,
    /// The number of attempts that it can execute at the same time; default: the limit.
    #[serde(default)]
    #[schemars(range(min = 1, max = 10_000))]
    pub slots: Option<u32>,
    /// The labels that it has: it gets only tasks whose `requires` they satisfy. At most 32.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, crate::openapi::shapes::LabelValue>", extend("maxProperties" = 32))]
    pub labels: BTreeMap<String, model::Label>,
    /// The names of the task types that it can run; without it, any. At most 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub types: Option<Vec<String>>,
    /// How long to wait for an attempt if there is none; default 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 55))]
    pub wait_seconds: Option<u32>,
    /// The machine that it runs on.
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub host: Option<String>,
    /// The version of its program.
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub version: Option<String>,
    /// How much of its machine is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageView>,
}

/// How much of a worker's machine is in use, each as a share from 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
pub struct UsageView {
    /// The share of its processors.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub cpu: Option<f64>,
    /// The share of its memory.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub memory: Option<f64>,
    /// The share of its disk.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub disk: Option<f64>,
}

impl From<ResourceUsage> for UsageView {
    /// Shares outside their range, as measurements may have, are cut off.
    fn from(ResourceUsage { cpu, memory, disk }: ResourceUsage) -> Self {
        let share = |share: Option<f64>| share.map(|share| share.clamp(0.0, 1.0));
        Self { cpu: share(cpu), memory: share(memory), disk: share(disk) }
    }
}

impl UsageView {
    /// The value to record, if it is valid.
    fn recorded(self) -> Result<ResourceUsage, Problem> {
        let Self { cpu, memory, disk } = self;
        let known: Vec<f64> = [cpu, memory, disk].into_iter().flatten().collect();
        if known.is_empty() || !known.iter().all(|share| (0.0..=1.0).contains(share)) {
            let message = "`usage` must have at least one of `cpu`, `memory` and `disk`, each from 0 to 1";
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_usage", message));
        }
        Ok(ResourceUsage { cpu, memory, disk })
    }
}

/// The attempts that a worker received.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LeaseView {
    /// The attempts that are its own now.
    pub items: Vec<LeasedView>,
    /// Its worker command, if it was given one: `drain` or `kill`. It then gets no attempts.
    pub command: Option<String>,
    /// How often it must send a heartbeat while it holds attempts.
    pub heartbeat_seconds: u32,
    /// After how many seconds to ask again: there is nothing, and too many leases wait already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u64>,
}

/// An attempt that a worker was given.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LeasedView {
    /// The id of the run.
    #[schemars(with = "crate::openapi::shapes::Id")]
    pub run: RunId,
    /// The name of the task.
    pub task: String,
    /// The attempt's number; every report about the attempt names it.
    pub attempt: u32,
    /// The tenant that the run belongs to.
    pub tenant: String,
    /// The workflow of the run.
    pub workflow: String,
    /// The type of the task.
    #[serde(rename = "type")]
    pub kind: String,
    /// The settings of the task, rendered.
    pub config: Value,
    /// The names available to templates, as one document: inputs, outputs, run, task.
    pub input: Value,
    /// How long it may take.
    pub timeout_seconds: u32,
    /// The checkpoint of an earlier attempt, if one saved any.
    pub checkpoint: Option<Value>,
    /// The values of secrets in the settings, which the worker must mask in logs.
    pub secrets: Vec<String>,
    /// The maximum amounts that its program may use: `cpu`, and `memory` and `disk` in bytes, and `processes`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, u64>")]
    pub resources: Resources,
    /// The network that its program may reach: `shared` for the network of its worker, or `none`; null if the task leaves it to
    /// the worker.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub network: Option<NetworkAccess>,
}

/// The worker that sends a heartbeat.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatBody {
    /// The name of the worker.
    #[schemars(length(min = 1, max = 100))]
    pub worker: String,
    /// How much of its machine is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageView>,
}

/// The worker that leaves.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GoodbyeBody {
    /// The name of the worker.
    #[schemars(length(min = 1, max = 100))]
    pub worker: String,
}

/// The attempts that a worker holds. It must stop every other attempt that it runs, and release those that it does not know.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HeartbeatView {
    /// The attempts that it holds.
    pub held: Vec<ClaimedAttemptView>,
    /// Its worker command, if it was given one: `drain` or `kill`.
    pub command: Option<String>,
}

/// An attempt that a worker holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClaimedAttemptView {
    /// The id of the run.
    #[schemars(with = "crate::openapi::shapes::Id")]
    pub run: RunId,
    /// The task's name; none where this program cannot read its definition.
    pub task: Option<String>,
    /// The number of the attempt.
    pub attempt: u32,
}

/// The id of the worker with that name, unique per caller.
fn worker_id(caller: &Caller, name: &str) -> Result<WorkerId, Problem> {
    if name.is_empty() || name.chars().count() > MAX_NAME {
        let message = format!("`worker` must have 1 to {MAX_NAME} characters");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_worker", message));
    }
    let whole = format!("worker\n{}\n{}\n{name}", caller.tenant.0, caller.name);
    Ok(WorkerId(Uuid::new_v5(&Uuid::NAMESPACE_OID, whole.as_bytes())))
}

async fn settle(api: &Api, run: RunId, command: Command) -> Result<Settled, Problem> {
    api.app.runtime.settle(run, command).await.map_err(error::runtime)
}

/// Records a heartbeat and returns the attempts that the worker holds.
pub(crate) async fn post_heartbeat(
    State(api): State<Api>,
    caller: Caller,
    request::Json(body): request::Json<HeartbeatBody>,
) -> Result<Json<HeartbeatView>, Problem> {
    let worker = worker_id(&caller, &body.worker)?;
    let usage = body.usage.map(UsageView::recorded).transpose()?;
    let workers = api.app.runtime.workers();
    let command = workers.heartbeat(worker, None).await.map_err(error::runtime)?.command;
    if let Some(usage) = usage {
        workers.report_usage(worker, &usage).await.map_err(error::runtime)?;
    }
    let mut held = Vec::new();
    for hold in api.reader(&caller).slots().held_by(worker).await? {
        let graph = api.app.runtime.graph(hold.version).await.map_err(error::runtime)?;
        let (task, child) = (hold.held.key.task, hold.child);
        let graph = graph.filter(|graph| graph.has(task, child));
        held.push(ClaimedAttemptView {
            run: hold.held.key.run,
            task: graph.map(|graph| graph.name_at(task, child)),
            attempt: hold.held.attempt,
        });
    }
    Ok(Json(HeartbeatView { held, command: command.map(|command| command.kind.name().to_owned()) }))
}

/// Deregisters a worker that holds nothing.
pub(crate) async fn post_goodbye(
    State(api): State<Api>,
    caller: Caller,
    request::Json(body): request::Json<GoodbyeBody>,
) -> Result<Json<StepView>, Problem> {
    let worker = worker_id(&caller, &body.worker)?;
    let held = api.reader(&caller).slots().held_by(worker).await?.len();
    if held > 0 {
        let message =
            format!("worker `{}` still holds {held} attempts; report or release them first", body.worker);
        return Err(Problem::new(StatusCode::CONFLICT, "still_holds", message));
    }
    api.app.runtime.workers().farewell(worker).await.map_err(error::runtime)?;
    Ok(Json(StepView { applied: true }))
}

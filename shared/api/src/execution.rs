//! The protocol of remote workers, which need only HTTP, neither the database nor the bus.
//!
//! They serve queues whose names are `remote` or start with `remote-`; messages for these are not published. A worker leases
//! attempts, sends a heartbeat every ten seconds while it holds any, and reports the result of each. Reports about an
//! attempt that it no longer holds are refused, and it must stop that attempt.

mod attempts;

use std::sync::Arc;

use auth::Permission::Work;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use host::Problem;
use model::message::{TaskDispatched, TaskResult};
use model::{Failure, RunId, TaskKey, TaskState, WorkerCommandKind, WorkerFacts, WorkerId, is_remote};
use read::Contender;
use runtime::{Command, Graph, Settled};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{Api, Caller, error, request};

pub use attempts::{CheckpointBody, CompleteBody, FailBody, LogBody, ReleaseBody, StepView};
pub(crate) use attempts::{post_checkpoint, post_complete, post_fail, post_log, post_release};

/// The maximum number of attempts in one lease.
const MAX_LEASED: usize = 10;

/// The number of the tenant's oldest unfinished runs whose tasks are examined.
const MAX_RUNS: u32 = 500;

/// How often a worker that holds attempts sends a heartbeat.
const HEARTBEAT_SECONDS: u32 = 10;

/// The maximum length of a worker's name, in characters.
const MAX_NAME: usize = 100;

/// A request for work.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseBody {
    /// The worker's name, unique per process.
    #[schemars(length(min = 1, max = 100))]
    pub worker: String,
    /// The queue that it serves: `remote`, or a name that starts with `remote-`.
    pub queue: String,
    /// The maximum number of attempts; default 1.
    #[serde(default)]
    #[schemars(range(min = 1, max = 10))]
    pub limit: Option<usize>,
}

/// What a worker was given.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LeaseView {
    /// The attempts that are its own now.
    pub items: Vec<LeasedView>,
    /// Its worker command, if it was given one: `drain` or `kill`. It then gets no attempts.
    pub command: Option<String>,
    /// How often it must send a heartbeat while it holds attempts.
    pub heartbeat_seconds: u32,
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
    /// The workflow of the run.
    pub workflow: String,
    /// The type of the task.
    #[serde(rename = "type")]
    pub kind: String,
    /// The settings of the task, rendered.
    pub config: Value,
    /// What templates could name, as one document: inputs, outputs, run, task.
    pub input: Value,
    /// How long it may take.
    pub timeout_seconds: u32,
    /// The checkpoint of an earlier attempt, if one saved any.
    pub checkpoint: Option<Value>,
}

/// The worker that sends a heartbeat.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatBody {
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

async fn beat(
    api: &Api,
    worker: WorkerId,
    facts: Option<WorkerFacts>,
) -> Result<Option<WorkerCommandKind>, Problem> {
    let reply = api.app.runtime.workers().heartbeat(worker, facts).await.map_err(error::runtime)?;
    Ok(reply.command.map(|command| command.kind))
}

/// Leases dispatched attempts of a queue to a worker.
pub(crate) async fn post_lease(
    State(api): State<Api>,
    caller: Caller,
    request::Json(body): request::Json<LeaseBody>,
) -> Result<Json<LeaseView>, Problem> {
    let limit = body.limit.unwrap_or(1);
    let refused = |code, words| Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, code, words));
    if !(1..=MAX_LEASED).contains(&limit) {
        return refused("bad_limit", format!("`limit` must be between 1 and {MAX_LEASED}"));
    }
    if !is_remote(&body.queue) {
        let words = "`queue` must be `remote` or begin with `remote-`: others are served by our own workers";
        return refused("bad_queue", words.to_owned());
    }
    let worker = worker_id(&caller, &body.worker)?;
    let (mut items, mut command, mut known) = (Vec::new(), None, false);
    for (contender, graph) in waiting(&api, &caller, &body.queue).await? {
        if items.len() == limit || command.is_some() {
            break;
        }
        if !known {
            // Registered before it claims anything: an attempt of an unknown worker counts as lost.
            command = beat(&api, worker, Some(facts(&api, &body))).await?.map(WorkerCommandKind::name);
            known = true;
        }
        if command.is_none() {
            items.extend(take(&api, &caller, worker, contender, &graph).await?);
        }
    }
    Ok(Json(LeaseView { items, command: command.map(str::to_owned), heartbeat_seconds: HEARTBEAT_SECONDS }))
}

fn facts(api: &Api, body: &LeaseBody) -> WorkerFacts {
    WorkerFacts {
        function: "remote".into(),
        queue: Some(body.queue.clone()),
        host: body.worker.clone(),
        version: String::new(),
        since: api.app.now(),
        breakers: Vec::new(),
    }
}

/// The dispatched tasks of a queue that the caller may execute, those of the oldest runs first.
async fn waiting(api: &Api, caller: &Caller, queue: &str) -> Result<Vec<(Contender, Arc<Graph>)>, Problem> {
    let mut found = Vec::new();
    for contender in api.reader(caller).slots().holders(Work, MAX_RUNS).await? {
        if contender.task.state != TaskState::Dispatched {
            continue;
        }
        let graph = api.app.runtime.graph(contender.version).await.map_err(error::runtime)?;
        let (task, child) = (contender.task.index, contender.task.child);
        if let Some(graph) = graph.filter(|graph| graph.has(task, child))
            && graph.spec_at(task, child).queue == queue
        {
            found.push((contender, graph));
        }
    }
    Ok(found)
}

/// Claims an attempt for a worker; none if another worker was faster, or the attempt cannot be executed.
async fn take(
    api: &Api,
    caller: &Caller,
    worker: WorkerId,
    contender: Contender,
    graph: &Arc<Graph>,
) -> Result<Option<LeasedView>, Problem> {
    let Contender { run, workflow, version, task } = contender;
    let (key, spec) = (TaskKey { run, task: task.index }, graph.spec_at(task.index, task.child));
    let work = TaskDispatched {
        key,
        tenant: caller.tenant,
        attempt: task.attempt,
        version,
        queue: spec.queue.clone(),
        child: task.child,
        give_up_at: None,
    };
    if !runtime::secrets_of(spec).is_empty() {
        let why =
            "its config names secrets, which remote workers are not given; configure them on the worker";
        return fail(api, &work, Failure::permanent(why)).await;
    }
    let job = api.app.runtime.job(&work, graph, Map::new()).await;
    let brief = match job.map_err(error::runtime)? {
        runtime::Job::Ready(brief) => brief,
        runtime::Job::Broken(failure) => return fail(api, &work, failure).await,
        runtime::Job::Gone => return Ok(None),
    };
    let claim = Command::Claim { task: key.task, attempt: task.attempt, worker };
    if settle(api, run, claim).await? != Settled::Applied {
        return Ok(None);
    }
    let checkpoint = match api.reader(caller).runs().for_worker(run).await? {
        Some(reader) => reader.checkpoint(key.task).await?,
        None => None,
    };
    let checkpoint = checkpoint.filter(|(attempt, _)| *attempt > task.voided);
    Ok(Some(LeasedView {
        run,
        task: graph.name_at(task.index, task.child),
        attempt: task.attempt,
        workflow,
        kind: spec.kind.to_string(),
        config: brief.config,
        input: brief.document,
        timeout_seconds: spec.timeout_seconds,
        checkpoint: checkpoint.map(|(_, data)| data),
    }))
}

/// Fails an attempt that no worker could execute.
async fn fail(api: &Api, work: &TaskDispatched, failure: Failure) -> Result<Option<LeasedView>, Problem> {
    let report = Command::Report {
        task: work.key.task,
        attempt: work.attempt,
        worker: None,
        started_at: api.app.now(),
        result: TaskResult::Failed(failure),
    };
    settle(api, work.key.run, report).await?;
    Ok(None)
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
    let command = beat(&api, worker, None).await?;
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
    Ok(Json(HeartbeatView { held, command: command.map(|kind| kind.name().to_owned()) }))
}

//! The worker protocol: attempts that programs elsewhere carry out. They ask for work over HTTP and need neither the
//! database nor the bus.
//!
//! They serve queues whose names are `remote` or begin with `remote-`: what is sent to these is pushed to nobody. A worker
//! leases attempts, says every ten seconds that it lives while it holds any, and says what came of each. Whatever it says
//! of an attempt that is not its own any more is refused, and it must stop.

mod attempts;

use std::sync::Arc;

use auth::Permission::Work;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use engine::{Command, Graph};
use host::Problem;
use model::message::{TaskDispatched, TaskResult};
use model::{Failure, RunId, TaskKey, TaskState, WorkerFacts, WorkerId, is_remote};
use runtime::Settled;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::{Contender, Heartbeat, HeartbeatReply};
use uuid::Uuid;

use crate::{Api, Caller, error, request};

pub use attempts::{CheckpointBody, CompleteBody, FailBody, LogBody, ReleaseBody, StepView};
pub(crate) use attempts::{post_checkpoint, post_complete, post_fail, post_log, post_release};

/// So many attempts are leased at once, at most.
const MAX_LEASED: usize = 10;

/// So many of the tenant's oldest unfinished runs are looked through for work.
const RUNS: u32 = 500;

/// A worker that holds attempts says so often that it lives.
const HEARTBEAT_SECONDS: u32 = 10;

/// No name of a worker is longer, in characters.
const MAX_NAME: usize = 100;

/// Who asks for work, and of which queue.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseBody {
    /// The worker's name: another process has another one.
    #[schemars(length(min = 1, max = 100))]
    pub worker: String,
    /// The queue that it serves: `remote`, or a name that begins with `remote-`.
    pub queue: String,
    /// At most so many attempts; one unless said.
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
    pub order: Option<String>,
    /// While it holds attempts, it has to say so often that it lives.
    pub heartbeat_seconds: u32,
}

/// An attempt that a worker was given.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LeasedView {
    /// The run.
    #[schemars(with = "crate::openapi::shapes::Id")]
    pub run: RunId,
    /// The task's name.
    pub task: String,
    /// The attempt's number; every report about the attempt names it.
    pub attempt: u32,
    /// The run's workflow.
    pub workflow: String,
    /// The task's type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its settings, rendered.
    pub config: Value,
    /// What templates could name, as one document: inputs, outputs, run, task.
    pub input: Value,
    /// How long it may take.
    pub timeout_seconds: u32,
    /// The checkpoint of an earlier attempt, if one saved any.
    pub checkpoint: Option<Value>,
}

/// Who lives.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatBody {
    /// The worker's name.
    #[schemars(length(min = 1, max = 100))]
    pub worker: String,
}

/// What a worker holds. What it carries out and is not among this was taken from it; what is and it does not know of, it
/// has to release.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HeartbeatView {
    /// Its attempts.
    pub held: Vec<ClaimedAttemptView>,
    /// Its worker command, if it was given one: `drain` or `kill`.
    pub order: Option<String>,
}

/// An attempt that a worker holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClaimedAttemptView {
    /// The run.
    #[schemars(with = "crate::openapi::shapes::Id")]
    pub run: RunId,
    /// The task's name; none where this program cannot read its definition.
    pub task: Option<String>,
    /// Which try.
    pub attempt: u32,
}

/// The worker of that name: nobody else's can have the same id.
fn worker_id(caller: &Caller, name: &str) -> Result<WorkerId, Problem> {
    if name.is_empty() || name.chars().count() > MAX_NAME {
        let message = format!("`worker` must have 1 to {MAX_NAME} characters");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_worker", message));
    }
    let whole = format!("worker\n{}\n{}\n{name}", caller.tenant.0, caller.name);
    Ok(WorkerId(Uuid::new_v5(&Uuid::NAMESPACE_OID, whole.as_bytes())))
}

async fn beat(api: &Api, worker: WorkerId, facts: Option<WorkerFacts>) -> Result<HeartbeatReply, Problem> {
    let sign = Heartbeat { worker, facts, at: api.app.now() };
    api.app.runtime.store().beat(&sign).await.map_err(error::store)
}

/// Gives a worker attempts to carry out, of what waits in its queue; none where nothing does.
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
    let (mut items, mut order, mut known) = (Vec::new(), None, false);
    for (contender, graph) in waiting(&api, &caller, &body.queue).await? {
        if items.len() == limit || order.is_some() {
            break;
        }
        if !known {
            // Registered before anything is claimed: an attempt held by nobody known counts as lost.
            order = beat(&api, worker, Some(facts(&api, &body))).await?.order.map(|order| order.kind.name());
            known = true;
        }
        if order.is_none() {
            items.extend(take(&api, &caller, worker, contender, &graph).await?);
        }
    }
    Ok(Json(LeaseView { items, order: order.map(str::to_owned), heartbeat_seconds: HEARTBEAT_SECONDS }))
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

/// What waits in a queue for the caller's workers, that of the oldest runs first.
async fn waiting(api: &Api, caller: &Caller, queue: &str) -> Result<Vec<(Contender, Arc<Graph>)>, Problem> {
    let placed = api.app.runtime.store().holders(caller.tenant, RUNS).await.map_err(error::store)?;
    let mut found = Vec::new();
    for contender in placed {
        if contender.task.state != TaskState::Dispatched || !caller.may(Work, &contender.workflow) {
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

/// Lets a worker have an attempt; none if somebody else was faster, or it cannot be carried out.
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
        let why = "its config names secrets, which no worker elsewhere is told: let it bring its own";
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
    let checkpoint = api.app.runtime.store().checkpoint(key).await.map_err(error::store)?;
    let checkpoint = checkpoint.filter(|checkpoint| checkpoint.attempt > task.voided);
    Ok(Some(LeasedView {
        run,
        task: graph.name_at(task.index, task.child),
        attempt: task.attempt,
        workflow,
        kind: spec.kind.to_string(),
        config: brief.config,
        input: brief.document,
        timeout_seconds: spec.timeout_seconds,
        checkpoint: checkpoint.map(|checkpoint| checkpoint.data),
    }))
}

/// An attempt that cannot be carried out by anybody fails before it is given to one.
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

/// Says that a worker lives, and hears what it holds.
pub(crate) async fn post_heartbeat(
    State(api): State<Api>,
    caller: Caller,
    request::Json(body): request::Json<HeartbeatBody>,
) -> Result<Json<HeartbeatView>, Problem> {
    let worker = worker_id(&caller, &body.worker)?;
    let told = beat(&api, worker, None).await?;
    let known = api.app.runtime.store().worker(caller.tenant, worker).await.map_err(error::store)?;
    let mut held = Vec::new();
    for hold in known.map(|known| known.holds).unwrap_or_default() {
        let graph = api.app.runtime.graph(hold.version).await.map_err(error::runtime)?;
        let (task, child) = (hold.held.key.task, hold.child);
        let graph = graph.filter(|graph| graph.has(task, child));
        held.push(ClaimedAttemptView {
            run: hold.held.key.run,
            task: graph.map(|graph| graph.name_at(task, child)),
            attempt: hold.held.attempt,
        });
    }
    let order = told.order.map(|order| order.kind.name().to_owned());
    Ok(Json(HeartbeatView { held, order }))
}

//! The tasks that hold the slots of a limit, and those that get one next.

use auth::Permission::Read;
use axum::Json;
use axum::extract::State;
use host::Problem;
use model::{Instant, Limit, RunId, TaskState, TenantId, WorkerId};
use read::Contender;
use runtime::Graph;
use serde::{Deserialize, Serialize};

use super::{LimitView, find, named};
use crate::request::Path;
use crate::{Api, Caller, Links, error};

/// The maximum number of holders, and of waiting tasks, in a response.
const MAX_SHOWN: usize = 50;

/// The number of the tenant's oldest unfinished runs that are examined, and of their tasks.
const MAX_RUNS: u32 = 2_000;
const MAX_TASKS: u32 = 10_000;

/// One limit with the tasks that hold or wait for its slots.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LimitDetail {
    /// The limit itself, in the same object.
    #[serde(flatten)]
    pub limit: LimitView,
    /// The caller's tasks that hold a slot, those of the oldest runs first; at most 50.
    pub holders: Vec<ContenderView>,
    /// The caller's waiting tasks, next first; at most 50.
    pub next: Vec<ContenderView>,
}

/// A task that holds a slot, or waits for one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ContenderView {
    /// The id of its run.
    #[schemars(with = "crate::openapi::shapes::Id")]
    pub run: RunId,
    /// The workflow of that run.
    pub workflow: String,
    /// The name of the task.
    pub task: String,
    /// The number of the attempt.
    pub attempt: u32,
    /// The current state of the task.
    #[schemars(with = "crate::openapi::shapes::TaskStates")]
    pub state: TaskState,
    /// Since when it holds the slot, or waits.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub since: Instant,
    /// The worker that holds it, if one does.
    #[schemars(with = "Option<crate::openapi::shapes::Id>")]
    pub worker: Option<WorkerId>,
    /// The task, in the API.
    pub link: String,
}

impl ContenderView {
    fn new(contender: Contender, graph: &Graph) -> Self {
        let Contender { run, workflow, task, child, state, attempt, since, worker, .. } = contender;
        let name = graph.name_at(task, child);
        Self { link: Links::task_path(run, &name), task: name, attempt, state, since, worker, run, workflow }
    }
}

/// One limit of the caller's tenant with the tasks that hold or wait for its slots.
pub async fn detail(api: &Api, caller: &Caller, kind: &str, name: &str) -> Result<LimitDetail, Problem> {
    let missing = || {
        Problem::not_found(format!("the {kind} limit `{name}` does not exist, or no task has used it yet"))
    };
    let of = named(caller, kind, name).map_err(|_| missing())?;
    let limit = find(api, caller, &of).await?.ok_or_else(missing)?;
    let reader = api.reader(caller);
    let holds_slots = reader.slots().holders(Read, MAX_RUNS, MAX_TASKS).await?;
    let waiting = reader.slots().waiters(&of, MAX_SHOWN as u32).await?;
    let holders = views(api, caller.tenant, &of, holds_slots).await?;
    let next = views(api, caller.tenant, &of, waiting).await?;
    Ok(LimitDetail { limit, holders, next })
}

/// The first of the tasks that need a slot of the limit.
async fn views(
    api: &Api,
    tenant: TenantId,
    limit: &Limit,
    contenders: Vec<Contender>,
) -> Result<Vec<ContenderView>, Problem> {
    let mut views = Vec::new();
    for contender in contenders {
        let graph = api.app.runtime.graph(contender.version).await.map_err(error::runtime)?;
        let (task, child) = (contender.task, contender.child);
        let Some(graph) = graph.filter(|graph| graph.has(task, child)) else { continue };
        if graph.needs(tenant, task, child).iter().any(|need| need.limit == *limit) {
            views.push(ContenderView::new(contender, &graph));
        }
        if views.len() == MAX_SHOWN {
            break;
        }
    }
    Ok(views)
}

pub(crate) async fn get_detail(
    State(api): State<Api>,
    caller: Caller,
    Path((kind, name)): Path<(String, String)>,
) -> Result<Json<LimitDetail>, Problem> {
    detail(&api, &caller, &kind, &name).await.map(Json)
}

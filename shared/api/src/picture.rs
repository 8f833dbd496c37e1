//! The graph of a run with the state of each task: what a picture of it is drawn from.

use axum::Json;
use axum::extract::State;
use host::Problem;
use model::{Instant, RunId, RunState, Task, TaskState};
use runtime::Graph;
use serde::{Deserialize, Serialize};

use crate::openapi::shapes::{Id, RunStates, TaskStates, Time};
use crate::request::Path;
use crate::views::ChildrenView;
use crate::{Api, Caller, tasks};

/// The graph of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GraphView {
    /// The id of the run.
    #[schemars(with = "Id")]
    pub run: RunId,
    /// The current state of the run.
    #[schemars(with = "RunStates")]
    pub state: RunState,
    /// The tasks of its definition, in the order in which they were written.
    pub nodes: Vec<NodeView>,
}

/// A task in a graph.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NodeView {
    /// The name of the task.
    pub name: String,
    /// The type of the task.
    #[serde(rename = "type")]
    pub kind: String,
    /// The current state of the task.
    #[schemars(with = "TaskStates")]
    pub state: TaskState,
    /// The current attempt; 0 before the first.
    pub attempt: u32,
    /// The tasks that it waits for, the switch included that it is a branch of.
    pub depends_on: Vec<String>,
    /// How far its children have come, if it is a fan-out.
    pub children: Option<ChildrenView>,
    /// When its current attempt started.
    #[schemars(with = "Option<Time>")]
    pub started_at: Option<Instant>,
    /// When the task ended; null until then.
    #[schemars(with = "Option<Time>")]
    pub finished_at: Option<Instant>,
}

impl NodeView {
    fn new(task: Task, graph: &Graph) -> Self {
        let spec = graph.spec(task.index);
        Self {
            name: spec.name.clone(),
            kind: spec.kind.to_string(),
            state: task.state,
            attempt: task.attempt,
            depends_on: graph
                .parents(task.index)
                .iter()
                .map(|parent| graph.spec(*parent).name.clone())
                .collect(),
            children: task.fan.map(ChildrenView::from),
            started_at: task.started_at,
            finished_at: task.finished_at,
        }
    }
}

/// The graph of a run with its current states.
pub async fn graph(api: &Api, caller: &Caller, id: RunId) -> Result<GraphView, Problem> {
    let reader = api.reader(caller).run(id).await?;
    let run = &reader.record().run;
    let graph = tasks::graph(api, run).await?;
    let nodes = reader.outline().await?.into_iter().map(|task| NodeView::new(task, &graph)).collect();
    Ok(GraphView { run: id, state: run.state, nodes })
}

pub(crate) async fn get_graph(
    State(api): State<Api>,
    caller: Caller,
    Path(id): Path<RunId>,
) -> Result<Json<GraphView>, Problem> {
    graph(&api, &caller, id).await.map(Json)
}

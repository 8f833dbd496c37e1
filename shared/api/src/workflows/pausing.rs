//! Pausing and resuming workflows.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use host::Problem;
use model::Catchup;
use runtime::{Pause, Paused};
use serde::{Deserialize, Serialize};

use super::{find, no_such_workflow};
use crate::operate::ReasonBody;
use crate::request::{self, Path};
use crate::views::WorkflowView;
use crate::{Api, Caller, error};

/// The treatment of instants that a workflow's schedules missed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResumeWorkflowBody {
    /// Which missed instants get a run: `all`, `latest` or `none`; by default as each schedule's `catchup` says.
    #[schemars(with = "Option<crate::openapi::shapes::Catchups>")]
    pub missed: Option<Catchup>,
}

/// Pauses a workflow: schedules and triggers start no runs, and requests for one are refused. Existing runs continue, and
/// tasks of other runs still start it. Doing it again changes nothing.
pub(crate) async fn post_pause(
    State(api): State<Api>,
    caller: Caller,
    Path(name): Path<String>,
    request::Json(body): request::Json<ReasonBody>,
) -> Result<Json<WorkflowView>, Problem> {
    let pause = Pause { at: api.app.now(), by: caller.name.clone(), reason: body.reason };
    let paused = api.app.runtime.schedules().pause_workflow(caller.tenant, &name, &pause).await;
    shown(&api, &caller, &name, paused.map_err(error::runtime)?).await
}

/// Resumes a workflow, with runs for missed instants if they are asked for. Doing it again changes nothing.
pub(crate) async fn post_resume(
    State(api): State<Api>,
    caller: Caller,
    Path(name): Path<String>,
    request::Json(body): request::Json<ResumeWorkflowBody>,
) -> Result<Json<WorkflowView>, Problem> {
    let resumed = api.app.runtime.schedules().resume_workflow(caller.tenant, &name, body.missed).await;
    shown(&api, &caller, &name, resumed.map_err(error::runtime)?).await
}

async fn shown(
    api: &Api,
    caller: &Caller,
    name: &str,
    paused: Paused,
) -> Result<Json<WorkflowView>, Problem> {
    match (find(api, caller, name).await?, paused) {
        (found, Paused::Unknown) if found.archived => {
            let message = format!("workflow `{name}` is archived; it starts no runs");
            Err(Problem::new(StatusCode::CONFLICT, "archived", message))
        }
        (_, Paused::Unknown) => Err(no_such_workflow(api, caller, name).await),
        (found, _) => Ok(Json(WorkflowView::from(&found))),
    }
}

//! Workflows of which nothing begins by itself for a while.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use host::Problem;
use model::Catchup;
use serde::{Deserialize, Serialize};
use store::{Pause, Paused};

use super::{find, no_such_workflow};
use crate::operate::ReasonBody;
use crate::request::{self, Path};
use crate::views::WorkflowView;
use crate::{Api, Caller, error};

/// What becomes of what a workflow's schedules missed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResumeWorkflowBody {
    /// Which missed instants get a run: `all`, `latest` or `none`; by default as each schedule's `catchup` says.
    #[schemars(with = "Option<crate::openapi::shapes::Catchups>")]
    pub missed: Option<Catchup>,
}

/// Lets no run of a workflow begin until it is resumed: schedules and triggers start none, and who asks for one is
/// refused. Runs that are there go on, and so do those that tasks of other runs start. Doing it again changes nothing.
pub(crate) async fn post_pause(
    State(api): State<Api>,
    caller: Caller,
    Path(name): Path<String>,
    request::Json(body): request::Json<ReasonBody>,
) -> Result<Json<WorkflowView>, Problem> {
    let pause = Pause { at: api.app.now(), by: caller.name.clone(), reason: body.reason };
    let paused = api.app.runtime.schedules().pause_workflow(caller.tenant, &name, &pause).await;
    tell(&api, &caller, &name, paused.map_err(error::runtime)?).await
}

/// Lets a workflow go on, with what its schedules missed as far as it is asked for. Doing it again changes nothing.
pub(crate) async fn post_resume(
    State(api): State<Api>,
    caller: Caller,
    Path(name): Path<String>,
    request::Json(body): request::Json<ResumeWorkflowBody>,
) -> Result<Json<WorkflowView>, Problem> {
    let resumed = api.app.runtime.schedules().resume_workflow(caller.tenant, &name, body.missed).await;
    tell(&api, &caller, &name, resumed.map_err(error::runtime)?).await
}

async fn tell(api: &Api, caller: &Caller, name: &str, paused: Paused) -> Result<Json<WorkflowView>, Problem> {
    match (find(api, caller, name).await?, paused) {
        (found, Paused::Unknown) if found.archived => {
            let message = format!("workflow `{name}` is archived; it starts no runs");
            Err(Problem::new(StatusCode::CONFLICT, "archived", message))
        }
        (_, Paused::Unknown) => Err(no_such_workflow(api, caller, name).await),
        (found, _) => Ok(Json(WorkflowView::from(&found))),
    }
}

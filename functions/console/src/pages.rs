//! Each page, and what its forms have done.

mod fields;
mod home;
mod log;
mod operations;
mod palette;
mod run;
mod runs;
mod steer;
mod task;
mod types;
mod versions;
mod workflow;
mod workflows;

use std::sync::Arc;

use api::Graph;
use axum::Router;
use axum::extract::State;
use axum::response::{Html, Response};
use axum::routing::{get, post};
use host::Problem;
use model::{RunId, VersionId};
use read::RunReader;

use crate::Console;
use crate::refused::Refused;
use crate::sent::Sent;
use crate::shell;
use crate::visitor::Visitor;

/// A page, or why there is none.
type Answer = Result<Html<String>, Refused>;

/// The router of all pages.
pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route("/", get(home::page))
        .route("/live", get(crate::live::events))
        .route("/palette", get(palette::entries))
        .route("/theme", post(theme))
        .route("/runs", get(runs::page))
        .route("/runs/bulk", post(runs::bulk))
        .route("/runs/{id}", get(run::page))
        .route("/runs/{id}/{action}", post(steer::run))
        .route("/runs/{id}/tasks/{task}", get(task::page))
        .route("/runs/{id}/tasks/{task}/log", get(log::text))
        .route("/runs/{id}/tasks/{task}/{action}", post(steer::task))
        .route("/types", get(types::page))
        .route("/workflows", get(workflows::page))
        .route("/workflows/{name}", get(workflow::page))
        .route("/workflows/{name}/trigger", get(workflow::trigger::form).post(workflow::trigger::start))
        .route("/workflows/{name}/source", get(workflow::source))
        .route("/workflows/{name}/versions", get(versions::page))
        .route("/workflows/{name}/versions/{number}/activate", post(versions::activate))
        .route("/workflows/{name}/backfill", get(workflow::backfill::form).post(workflow::backfill::begin))
        .merge(operations::router())
}

async fn theme(_: Visitor, sent: Sent) -> Result<Response, Refused> {
    sent.only(["theme"])?;
    Ok(shell::with_theme(sent.field("theme").unwrap_or_default(), sent.back()))
}

impl Console {
    async fn graph(&self, version: VersionId) -> Result<Arc<Graph>, Refused> {
        Ok(self
            .api
            .graph(version)
            .await?
            .ok_or_else(|| Problem::not_found("the version of this run is gone"))?)
    }

    /// A run that the visitor may read, with its graph.
    async fn run(&self, visitor: &Visitor, id: RunId) -> Result<(RunReader, Arc<Graph>), Refused> {
        let run = visitor.data.run(id).await?;
        let graph = self.graph(run.record().run.version).await?;
        Ok((run, graph))
    }
}

/// What handlers of pages take.
type At = State<Console>;

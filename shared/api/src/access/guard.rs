//! The guard in front of every endpoint.

use std::sync::Arc;

use auth::{Caller, Permission};
use axum::RequestExt;
use axum::extract::{RawPathParams, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use host::Problem;
use model::{BackfillId, RunId};
use uuid::Uuid;

use super::Credentials;
use crate::endpoints::{Endpoint, On};
use crate::{Api, mutation};

/// Lets a request through if its sender has the permission that the endpoint's row names, and passes the caller on to
/// the handler.
pub(crate) async fn guard(
    State((api, endpoint, needs)): State<(Api, Arc<Endpoint>, (Permission, On))>,
    request: Request,
    next: Next,
) -> Response {
    match admitted(&api, &endpoint, needs, request).await {
        Ok(request) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

async fn admitted(
    api: &Api,
    endpoint: &Endpoint,
    needs: (Permission, On),
    mut request: Request,
) -> Result<Request, Problem> {
    let params = request.extract_parts::<RawPathParams>().await;
    let params = params.map_err(|error| Problem::bad_request(error.body_text()))?;
    let (parts, body) = request.into_parts();
    // The console authenticates the reader of a page before it calls the API for them. Nothing that arrives over the
    // network can add an extension.
    let caller = match parts.extensions.get::<Caller>() {
        Some(known) => known.clone(),
        None => api.access.caller(api, &parts).await?,
    };
    api.access.count(caller.tenant, &caller.name, api.app.now())?;
    if let Err(problem) = check(api, &caller, needs, &params).await {
        if endpoint.change.is_some() {
            mutation::record_refusal(api, endpoint, &caller, &parts, &problem).await;
        }
        return Err(problem);
    }
    let mut request = Request::from_parts(parts, body);
    if endpoint.is_stream() && request.extensions().get::<Credentials>().is_none() {
        let credentials = Credentials::of(request.headers());
        request.extensions_mut().insert(credentials);
    }
    request.extensions_mut().insert(caller);
    Ok(request)
}

/// Refuses a caller without the permission for what the path names.
async fn check(
    api: &Api,
    caller: &Caller,
    (permission, on): (Permission, On),
    params: &RawPathParams,
) -> Result<(), Problem> {
    let param = |names: &[&str]| {
        let found = params.iter().find(|(name, _)| names.contains(name));
        found.map(|(_, value)| value.to_owned()).unwrap_or_default()
    };
    match on {
        On::Tenant => caller.check_tenant(permission)?,
        On::Instance => caller.check_instance(permission)?,
        On::Limit if param(&["kind"]) == "queue" => caller.check_instance(permission)?,
        On::Limit => caller.check_tenant(permission)?,
        On::Some => caller.check_some(permission)?,
        On::Workflow => api.reader(caller).check_workflow(permission, &param(&["workflow", "name"]))?,
        On::Run => {
            caller.check_some(permission)?;
            api.reader(caller).check_run(permission, RunId(id("run", &param(&["id"]))?)).await?;
        }
        On::Backfill => {
            caller.check_some(permission)?;
            api.reader(caller)
                .check_backfill(permission, BackfillId(id("backfill", &param(&["id"]))?))
                .await?;
        }
    }
    Ok(())
}

fn id(what: &str, text: &str) -> Result<Uuid, Problem> {
    text.parse().map_err(|_| Problem::not_found(format!("there is no {what} `{text}`")))
}

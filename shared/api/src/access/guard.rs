//! The guard in front of every endpoint.

use std::sync::Arc;

use auth::{Caller, Permission};
use axum::RequestExt;
use axum::extract::{RawPathParams, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use host::Problem;
use model::{BackfillId, RunId, TenantId};

use crate::endpoints::{Endpoint, On};
use crate::{Api, error, mutation};

/// Lets a request through if its sender has the permission that the endpoint's row names, and passes the caller on to
/// the handler.
pub(crate) async fn guard(
    State((api, endpoint, needs)): State<(Api, Arc<Endpoint>, (Permission, On))>,
    request: Request,
    next: Next,
) -> Response {
    match admitted(&api, &endpoint, needs, request).await {
        Ok((tenant, request)) => store::walled(tenant, next.run(request)).await,
        Err(problem) => problem.into_response(),
    }
}

async fn admitted(
    api: &Api,
    endpoint: &Endpoint,
    needs: (Permission, On),
    mut request: Request,
) -> Result<(TenantId, Request), Problem> {
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
    let tenant = caller.tenant;
    request.extensions_mut().insert(caller);
    Ok((tenant, request))
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
        On::Workflow | On::Run | On::Backfill => {
            caller.check_some(permission)?;
            if caller.check_tenant(permission).is_err() {
                let (what, workflow) = named(api, caller, on, &param).await?;
                caller.check(permission, &workflow, &what)?;
            }
        }
    }
    Ok(())
}

/// What the path names in words, and its workflow. Needed only for callers with grants for some workflows.
async fn named(
    api: &Api,
    caller: &Caller,
    on: On,
    param: &impl Fn(&[&str]) -> String,
) -> Result<(String, String), Problem> {
    let store = api.app.runtime.store();
    if on == On::Workflow {
        let name = param(&["workflow", "name"]);
        return Ok((format!("workflow `{name}`"), name));
    }
    let id = param(&["id"]);
    let what = if on == On::Run { format!("run {id}") } else { format!("backfill {id}") };
    let missing = || Problem::not_found(format!("there is no {what}"));
    let id = id.parse().map_err(|_| Problem::bad_request(format!("`{id}` is not an id")))?;
    let workflow = match on {
        On::Run => {
            let found = store.run(caller.tenant, RunId(id)).await.map_err(error::store)?;
            found.map(|record| record.run.workflow)
        }
        _ => {
            let found = store.backfill(caller.tenant, BackfillId(id)).await.map_err(error::store)?;
            found.map(|record| record.workflow)
        }
    };
    Ok((what.clone(), workflow.ok_or_else(missing)?))
}

//! What stands before every endpoint.

use auth::{About, Permission, may};
use axum::RequestExt;
use axum::extract::{MatchedPath, RawPathParams, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use host::Problem;
use model::{BackfillId, RunId, TenantId};

use super::{On, Rule, forbidden, rule};
use crate::{Api, Caller, error};

/// Lets a request through if the table says that its sender may, and tells the handler who they are.
pub(crate) async fn guard(State(api): State<Api>, request: Request, next: Next) -> Response {
    match admitted(&api, request).await {
        Ok((tenant, request)) => store::walled(tenant, next.run(request)).await,
        Err(problem) => problem.into_response(),
    }
}

async fn admitted(api: &Api, mut request: Request) -> Result<(TenantId, Request), Problem> {
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let path = path.unwrap_or_default();
    let path = path.strip_prefix("/api/v1").unwrap_or(&path);
    // An endpoint without a rule is none, whatever the router says.
    let Some(rule) = rule(request.method(), path) else { return Err(crate::no_such_method(request).await) };
    let params = request.extract_parts::<RawPathParams>().await;
    let params = params.map_err(|error| Problem::bad_request(error.body_text()))?;
    let (parts, body) = request.into_parts();
    // The console has found out who reads a page before it asks here for them. Nothing that comes over the network can
    // put anything among the extensions.
    let caller = match parts.extensions.get::<Caller>() {
        Some(known) => known.clone(),
        None => api.access.caller(api, &parts).await?,
    };
    api.access.count(caller.tenant, &caller.name, api.app.now())?;
    check(api, &caller, rule, &params.iter().collect::<Vec<_>>()).await?;
    let mut request = Request::from_parts(parts, body);
    let tenant = caller.tenant;
    request.extensions_mut().insert(caller);
    Ok((tenant, request))
}

/// Whether a caller may use an endpoint for what its address names: for pages that do the same as an endpoint.
pub async fn check(api: &Api, caller: &Caller, rule: &Rule, params: &[(&str, &str)]) -> Result<(), Problem> {
    let param = |names: &[&str]| {
        let found = params.iter().find(|(name, _)| names.contains(name));
        found.map(|(_, value)| (*value).to_owned()).unwrap_or_default()
    };
    let here = Some(caller.tenant_name.as_str());
    let asked = |tenant, about| may(&caller.grants, rule.permission, tenant, about).map_err(forbidden);
    match rule.on {
        On::Tenant => asked(here, About::Whole),
        On::Instance => asked(None, About::Whole),
        On::Limit if param(&["kind"]) == "queue" => asked(None, About::Whole),
        On::Limit => asked(here, About::Whole),
        On::Some | On::Workflow | On::Run | On::Backfill => {
            asked(here, About::Some)?;
            if rule.on == On::Some || asked(here, About::Whole).is_ok() {
                return Ok(());
            }
            let (what, workflow) = named(api, caller, rule.on, &param).await?;
            caller.check(rule.permission, &workflow, &what)
        }
    }
}

/// What the address names in words, and the workflow that it is of. Asked only for callers who may not see all.
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
    let id = id.parse().map_err(|_| Problem::bad_request(format!("`{id}` is no id")))?;
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

impl Caller {
    /// Whether they may do that with a workflow of their tenant.
    pub fn may(&self, permission: Permission, workflow: &str) -> bool {
        may(&self.grants, permission, Some(&self.tenant_name), About::One(workflow)).is_ok()
    }

    /// Refuses what they may not do with a workflow; what they may not even see is not there.
    pub fn check(&self, permission: Permission, workflow: &str, what: &str) -> Result<(), Problem> {
        let about = About::One(workflow);
        let Err(words) = may(&self.grants, permission, Some(&self.tenant_name), about) else { return Ok(()) };
        match self.may(Permission::Follow, workflow) {
            true => Err(forbidden(words)),
            false => Err(Problem::not_found(format!("there is no {what}"))),
        }
    }

    /// Refuses what reaches further than they may: whoever may act on some workflows only must name one.
    pub fn check_filter(&self, permission: Permission, workflow: Option<&str>) -> Result<(), Problem> {
        let whole = may(&self.grants, permission, Some(&self.tenant_name), About::Whole);
        match (whole, workflow) {
            (Ok(()), _) => Ok(()),
            (Err(_), Some(name)) => self.check(permission, name, &format!("workflow `{name}`")),
            (Err(words), None) => Err(forbidden(format!("name a workflow: {words}"))),
        }
    }

    /// Whether they may do that with everything, whichever tenant it belongs to.
    pub fn may_everywhere(&self, permission: Permission) -> bool {
        may(&self.grants, permission, None, About::Whole).is_ok()
    }
}

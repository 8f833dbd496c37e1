//! The table of endpoints below `/api/v1`: one row holds every fact about an endpoint.
//!
//! The router, the guard, the audit log, the idempotency rule and the OpenAPI document are all made from these rows.
//! A row without an id, a permission, an audit rule or a description does not compile.

mod access;
mod definitions;
mod document;
mod execution;
mod operations;
mod runs;
mod schedules;
mod tasks;

use std::sync::Arc;

use auth::Permission;
use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, on};

use crate::openapi::{Described, Operation, Schemas};
use crate::{Api, access::guard, mutation};

/// Where a permission is required.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum On {
    /// The workflow that the path names.
    Workflow,
    /// The workflow of the run that the path names.
    Run,
    /// The workflow of the backfill that the path names.
    Backfill,
    /// At least one workflow; the handler leaves out or refuses those the caller has no permission for.
    Some,
    /// The tenant as a whole.
    Tenant,
    /// The whole instance for a queue, the tenant for any other limit.
    Limit,
    /// The whole instance, with all its tenants.
    Instance,
}

/// The state before a change, as the audit log records it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Before {
    /// Nothing: the path names no existing resource, or one without a short state.
    Nothing,
    Run,
    Task,
    Workflow,
    Backfill,
    Limit,
    Tenant,
}

/// The treatment of a request that repeats an `Idempotency-Key`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Idempotency {
    /// The recorded response is sent again.
    Recorded,
    /// The handler derives the id of what it creates from the key, so the same key finds the same thing for ever.
    OwnKey,
    /// The response contains a secret: it is never stored, so a repeated request is executed again.
    NeverStored,
}

/// How an endpoint that changes something is audited and repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Change {
    pub(crate) before: Before,
    pub(crate) idempotency: Idempotency,
}

/// The facts of one endpoint.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// `GET`, `POST` or `DELETE`.
    pub method: Method,
    /// Below `/api/v1`, as the router writes it.
    pub path: &'static str,
    /// The operation id in the OpenAPI document, and the action in the audit log. Callers rely on it.
    pub id: &'static str,
    /// The permission that the caller needs, and the resource it concerns; `None` for endpoints that need no token.
    pub needs: Option<(Permission, On)>,
    pub(crate) change: Option<Change>,
    pub(crate) summary: &'static str,
    pub(crate) description: &'static str,
    /// The content type of the response where that is not JSON.
    pub(crate) content_type: Option<&'static str>,
}

impl Endpoint {
    /// Whether the response is an event stream, which lasts longer than a request.
    pub fn is_stream(&self) -> bool {
        self.content_type == Some(EVENT_STREAM)
    }
}

/// The content type of event streams.
const EVENT_STREAM: &str = "text/event-stream";

/// An endpoint with its handler.
pub(crate) struct Row {
    pub(crate) endpoint: Endpoint,
    pub(crate) describe: fn(&mut Schemas) -> Operation,
    route: MethodRouter<Api>,
}

/// A row that still lacks its id.
struct Unnamed(Row);

/// A row that still lacks its permission.
struct Unguarded(Row);

/// A row that still lacks its summary and description.
struct Undescribed(Row);

/// A `POST` or `DELETE` row that does not yet say whether it changes anything.
struct Unaudited(Row);

fn row<H, T, A>(method: Method, path: &'static str, handler: H) -> Row
where
    H: Handler<T, Api> + Described<A>,
    T: 'static,
{
    let filter = MethodFilter::try_from(method.clone()).expect("every method in the table can be routed");
    let endpoint = Endpoint {
        method,
        path,
        id: "",
        needs: None,
        change: None,
        summary: "",
        description: "",
        content_type: None,
    };
    Row { endpoint, describe: H::describe, route: on(filter, handler) }
}

fn get<H, T, A>(path: &'static str, handler: H) -> Unnamed
where
    H: Handler<T, Api> + Described<A>,
    T: 'static,
{
    Unnamed(row(Method::GET, path, handler))
}

fn post<H, T, A>(path: &'static str, handler: H) -> Unaudited
where
    H: Handler<T, Api> + Described<A>,
    T: 'static,
{
    Unaudited(row(Method::POST, path, handler))
}

fn delete<H, T, A>(path: &'static str, handler: H) -> Unaudited
where
    H: Handler<T, Api> + Described<A>,
    T: 'static,
{
    Unaudited(row(Method::DELETE, path, handler))
}

impl Unaudited {
    /// It changes something: the audit log records the request, and the state before it.
    fn audited(self, before: Before) -> Unnamed {
        self.changes(before, Idempotency::Recorded)
    }

    /// As [`Self::audited`], with an idempotency rule of its own.
    fn changes(mut self, before: Before, idempotency: Idempotency) -> Unnamed {
        self.0.endpoint.change = Some(Change { before, idempotency });
        Unnamed(self.0)
    }

    /// It changes nothing, although it takes a body.
    fn read_only(self) -> Unnamed {
        Unnamed(self.0)
    }

    /// It is a step of an attempt. The run's own events record it, and the attempt's number makes it repeatable.
    fn attempt_step(self) -> Unnamed {
        Unnamed(self.0)
    }
}

impl Unnamed {
    fn id(mut self, id: &'static str) -> Unguarded {
        self.0.endpoint.id = id;
        Unguarded(self.0)
    }
}

impl Unguarded {
    fn needs(mut self, permission: Permission, on: On) -> Undescribed {
        self.0.endpoint.needs = Some((permission, on));
        Undescribed(self.0)
    }

    /// Anyone may use it, without a token.
    fn public(self) -> Undescribed {
        Undescribed(self.0)
    }
}

impl Undescribed {
    fn docs(mut self, summary: &'static str, description: &'static str) -> Row {
        (self.0.endpoint.summary, self.0.endpoint.description) = (summary, description);
        self.0
    }
}

impl Row {
    /// The response is not JSON but this.
    fn answers(mut self, content_type: &'static str) -> Self {
        self.endpoint.content_type = Some(content_type);
        self
    }
}

/// All endpoints, in the order in which the document shows them.
pub(crate) fn rows() -> Vec<Row> {
    [
        definitions::rows(),
        runs::rows(),
        tasks::rows(),
        schedules::rows(),
        operations::rows(),
        execution::rows(),
        access::rows(),
        document::rows(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The facts of all endpoints.
pub fn list() -> Vec<Endpoint> {
    rows().into_iter().map(|row| row.endpoint).collect()
}

/// The router of all endpoints. Every request passes the guard, unless the endpoint is public, and the check of its query;
/// every change passes [`mutation::pass`].
pub(crate) fn router(api: &Api) -> Router<Api> {
    rows().into_iter().fold(Router::new(), |router, Row { endpoint, mut route, describe }| {
        let endpoint = Arc::new(endpoint);
        if let Some(change) = endpoint.change {
            let state = (api.clone(), endpoint.clone(), change);
            route = route.route_layer(from_fn_with_state(state, mutation::pass));
        }
        let operation = describe(&mut Schemas::default());
        let names = operation.query.iter().filter_map(|parameter| parameter["name"].as_str());
        let known: Arc<[String]> = names.map(str::to_owned).collect();
        route = route.route_layer(from_fn_with_state(known, host::check_query));
        if let Some(needs) = endpoint.needs {
            let state = (api.clone(), endpoint.clone(), needs);
            route = route.route_layer(from_fn_with_state(state, guard));
        }
        router.route(endpoint.path, route)
    })
}

/// The names of the parameters in a path, in order.
pub(crate) fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

/// The tag that an endpoint is shown under: the first word of its path.
pub(crate) fn tag(path: &str) -> &str {
    path.trim_start_matches('/').split(['/', '.']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_has_one_row() {
        let all = list();
        for (index, endpoint) in all.iter().enumerate() {
            let same = |other: &Endpoint| {
                other.id == endpoint.id || (other.method == endpoint.method && other.path == endpoint.path)
            };
            assert!(!all[index + 1..].iter().any(same), "{} {}", endpoint.method, endpoint.path);
        }
    }

    #[test]
    fn the_path_has_every_parameter_that_its_facts_need() {
        for endpoint in list() {
            let has = |name: &str| names(endpoint.path).any(|known| known == name);
            let scope = match endpoint.needs.map(|(_, on)| on) {
                Some(On::Workflow) => has("workflow") || endpoint.path.starts_with("/workflows/{name}"),
                Some(On::Run) => endpoint.path.starts_with("/runs/{id}"),
                Some(On::Backfill) => endpoint.path.starts_with("/backfills/{id}"),
                Some(On::Limit) => has("kind"),
                Some(On::Some | On::Tenant | On::Instance) | None => true,
            };
            let before = match endpoint.change.map(|change| change.before) {
                Some(Before::Run | Before::Backfill) => has("id"),
                Some(Before::Task) => has("id") && has("task"),
                Some(Before::Workflow | Before::Tenant) => has("name"),
                Some(Before::Limit) => has("kind") && has("name"),
                Some(Before::Nothing) | None => true,
            };
            assert!(scope && before, "{} {}", endpoint.method, endpoint.path);
        }
    }

    #[test]
    fn every_endpoint_is_described_in_sentences() {
        for endpoint in list() {
            let Endpoint { id, summary, description, .. } = endpoint;
            assert!(!id.is_empty() && !summary.is_empty() && !summary.ends_with('.'), "{id}: {summary}");
            assert!(description.ends_with('.') && description.len() > summary.len(), "{id}: {description}");
        }
    }
}

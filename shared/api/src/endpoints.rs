//! Every endpoint below `/api/v1`: the router and the document are made from this one table.

use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, on};

use crate::mutation::{self, Action};
use crate::openapi::{self, Described, Operation, Schemas};
use crate::{
    Api, access, answers, audit, backfills, bulk, dead_letters, doctor, drift, execution, explain, limits,
    live, logs, operate, picture, queues, runs, schedules, tasks, tenants, timers, triggers, versions,
    workers, workflows,
};

/// An endpoint: what serves it, and what the document says of it.
pub(crate) struct Endpoint {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    /// What it does, in a few words.
    pub(crate) summary: &'static str,
    /// Its name in the document: that of its handler.
    pub(crate) name: String,
    /// Whether it changes anything.
    pub(crate) changes: bool,
    /// Whether it is for everybody, whoever they are.
    pub(crate) open: bool,
    /// What is answered where that is no JSON, by content type.
    pub(crate) answers: Option<&'static str>,
    pub(crate) describe: fn(&mut Schemas) -> Operation,
    route: MethodRouter<Api>,
}

fn endpoint<H, T, A>(method: Method, path: &'static str, handler: H, summary: &'static str) -> Endpoint
where
    H: Handler<T, Api> + Described<A>,
    T: 'static,
{
    let filter = MethodFilter::try_from(method.clone()).expect("it is a method that can be routed");
    let words: Vec<&str> = std::any::type_name::<H>().split("::").collect();
    let name = match words.as_slice() {
        [_, subject, .., handler] => format!("{subject}_{handler}"),
        _ => unreachable!("handlers are functions of a module"),
    };
    let route = on(filter, handler);
    let changes = method != Method::GET;
    let (open, answers) = (false, None);
    Endpoint { method, path, summary, name, changes, open, answers, describe: H::describe, route }
}

fn get<H, T, A>(path: &'static str, handler: H, summary: &'static str) -> Endpoint
where
    H: Handler<T, Api> + Described<A>,
    T: 'static,
{
    endpoint(Method::GET, path, handler, summary)
}

fn post<H, T, A>(path: &'static str, handler: H, summary: &'static str) -> Endpoint
where
    H: Handler<T, Api> + Described<A>,
    T: 'static,
{
    endpoint(Method::POST, path, handler, summary)
}

fn delete<H, T, A>(path: &'static str, handler: H, summary: &'static str) -> Endpoint
where
    H: Handler<T, Api> + Described<A>,
    T: 'static,
{
    endpoint(Method::DELETE, path, handler, summary)
}

impl Endpoint {
    /// Says that nothing is changed, although it is asked with a body.
    fn that_only_reads(self) -> Self {
        Self { changes: false, ..self }
    }

    /// Says that it is a step of an attempt, of which the run's own events tell: it is no deed, and may be taken again.
    fn of_an_attempt(self) -> Self {
        Self { changes: false, ..self }
    }

    /// Says that it is for everybody.
    fn for_everybody(self) -> Self {
        Self { open: true, ..self }
    }

    /// Says what is answered where that is no JSON.
    fn with(self, content_type: &'static str) -> Self {
        Self { answers: Some(content_type), ..self }
    }
}

/// The router of all endpoints. Whatever changes something passes one place, and whoever asks passes the guard; only what
/// describes the API is for everybody.
pub(crate) fn router(api: &Api) -> Router<Api> {
    let add = |router: Router<Api>, endpoint: Endpoint| {
        let Endpoint { path, route, name, changes, .. } = endpoint;
        if !changes {
            return router.route(path, route);
        }
        let state = (api.clone(), Action(name.into()));
        router.route(path, route.route_layer(from_fn_with_state(state, mutation::pass)))
    };
    let (open, guarded): (Vec<_>, Vec<_>) = all().into_iter().partition(|endpoint| endpoint.open);
    let guarded = guarded.into_iter().fold(Router::new(), add);
    let guarded = guarded.route_layer(from_fn_with_state(api.clone(), access::guard));
    guarded.merge(open.into_iter().fold(Router::new(), add))
}

/// The methods and paths of all endpoints below `/api/v1` that are not for everybody: for whoever says who may use which.
pub fn list() -> Vec<(Method, &'static str)> {
    all()
        .into_iter()
        .filter(|endpoint| !endpoint.open)
        .map(|endpoint| (endpoint.method, endpoint.path))
        .collect()
}

/// All endpoints, in the order in which the document shows them.
pub(crate) fn all() -> Vec<Endpoint> {
    [
        about_workflows(),
        about_runs(),
        about_tasks(),
        about_schedules(),
        about_operation(),
        about_work(),
        about_access(),
        about_this(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn about_workflows() -> Vec<Endpoint> {
    vec![
        get("/workflows", workflows::get_list, "List workflows by name"),
        post("/workflows", workflows::post_register, "Register definitions, all of them or none"),
        post("/workflows/validate", workflows::post_validate, "Check definitions and register nothing")
            .that_only_reads(),
        get("/workflows/{name}", workflows::get_one, "Show a workflow, its recent runs and what is due next"),
        post("/workflows/{name}/pause", workflows::post_pause, "Let no run of a workflow begin"),
        post("/workflows/{name}/resume", workflows::post_resume, "Let a paused workflow go on"),
        post("/workflows/{name}/archive", versions::post_archive, "Take a workflow out of use"),
        get("/workflows/{name}/versions", versions::get_list, "List versions, newest first"),
        get("/workflows/{name}/versions/{number}", versions::get_one, "Show a version"),
        post(
            "/workflows/{name}/versions/{number}/activate",
            versions::post_activate,
            "Roll back, or forward",
        ),
        get(
            "/workflows/{name}/versions/{number}/compare/{other}",
            versions::get_comparison,
            "Say what differs between two versions",
        ),
        post("/workflows/{name}/runs", runs::post_start, "Start a run"),
    ]
}

fn about_runs() -> Vec<Endpoint> {
    vec![
        get("/runs", runs::get_list, "List runs, newest first"),
        post("/runs/bulk", bulk::post_bulk, "Do something to many runs, or count them"),
        get("/runs/{id}", runs::get_one, "Show a run"),
        get("/runs/{id}/events", runs::get_events, "List what happened to a run"),
        get("/runs/{id}/graph", picture::get_graph, "Show the graph of a run with the state of each task"),
        get("/runs/{id}/explain", explain::get_explanation, "Say in words why a run is where it is"),
        get("/runs/{id}/timers", timers::get_of_run, "List the pending timers of a run"),
        post("/runs/{id}/cancel", runs::post_cancel, "End a run"),
        post("/runs/{id}/pause", operate::post_pause, "Let nothing more of a run begin"),
        post("/runs/{id}/resume", operate::post_resume, "Let a paused run go on"),
        post("/runs/{id}/retry", operate::post_retry, "Do anew what failed in a run"),
        post("/runs/{id}/evaluate", operate::post_evaluate, "Look for anything of a run that got lost"),
        post(
            "/runs/{id}/signals/{name}",
            answers::post_signal,
            "Send a signal to a run; the body is its payload",
        ),
        get("/events", live::get_events, "Hear what happens, as it happens").with("text/event-stream"),
    ]
}

fn about_tasks() -> Vec<Endpoint> {
    vec![
        get("/runs/{id}/tasks", tasks::get_list, "List the tasks of a run, or the children of one"),
        get("/runs/{id}/tasks/{task}", tasks::get_one, "Show a task"),
        get("/runs/{id}/tasks/{task}/attempts", tasks::get_attempts, "List attempts at a task"),
        get("/runs/{id}/tasks/{task}/logs", logs::get_lines, "List what an attempt wrote"),
        get(
            "/runs/{id}/tasks/{task}/logs/follow",
            live::get_log,
            "Hear what a task writes, until it has ended",
        )
        .with("text/event-stream"),
        get("/runs/{id}/tasks/{task}/output", tasks::get_output, "Show what a task delivered"),
        post("/runs/{id}/tasks/{task}/approve", answers::post_approve, "Approve what a task asks for"),
        post("/runs/{id}/tasks/{task}/reject", answers::post_reject, "Do not approve what a task asks for"),
        post("/runs/{id}/tasks/{task}/clear", operate::post_clear, "Do a task anew, with what follows"),
        post("/runs/{id}/tasks/{task}/succeed", operate::post_succeed, "Say that a task succeeded"),
        post("/runs/{id}/tasks/{task}/fail", operate::post_fail, "Say that a task failed"),
        post("/runs/{id}/tasks/{task}/wake", operate::post_wake, "End a task's sleep"),
    ]
}

fn about_schedules() -> Vec<Endpoint> {
    vec![
        get("/schedules", schedules::get_list, "List schedules"),
        get("/schedules/{workflow}", schedules::get_of_workflow, "Show the schedules of a workflow"),
        get("/schedules/{workflow}/next", schedules::get_next, "Work out the next instants"),
        get("/schedules/{workflow}/drift", drift::get_drift, "Say how late the last runs began"),
        post("/schedules/{workflow}/pause", schedules::post_pause, "Let a schedule start no runs"),
        post("/schedules/{workflow}/resume", schedules::post_resume, "Let a schedule go on"),
        get("/backfills", backfills::get_list, "List backfills, newest first"),
        post("/backfills", backfills::post_start, "Begin a backfill, or say what it would do"),
        get("/backfills/{id}", backfills::get_one, "Show a backfill"),
        post("/backfills/{id}/pause", backfills::post_pause, "Let no more runs of a backfill begin"),
        post("/backfills/{id}/resume", backfills::post_resume, "Let a backfill go on"),
        post("/backfills/{id}/cancel", backfills::post_cancel, "End a backfill and its runs"),
        get("/triggers", triggers::get_list, "List triggers"),
        get("/triggers/{workflow}/{name}", triggers::get_one, "Show a trigger and what it heard of"),
        post("/triggers/{workflow}/{name}/pause", triggers::post_pause, "Let a trigger start no runs"),
        post("/triggers/{workflow}/{name}/resume", triggers::post_resume, "Let a trigger go on"),
        get("/timers", timers::get_list, "List pending timers, the next one first"),
    ]
}

fn about_operation() -> Vec<Endpoint> {
    vec![
        get("/limits", limits::get_list, "Show who has places and who waits for one"),
        get("/limits/{kind}/{name}", limits::get_detail, "Show who has places of a limit and who comes next"),
        post("/limits/{kind}/{name}", limits::post_places, "Say how many places a limit has"),
        get("/queues", queues::get_list, "Say how much waits in each queue, for how long, and of whom"),
        get("/tenants", tenants::get_list, "List tenants"),
        get("/tenants/{name}", tenants::get_one, "Show a tenant"),
        post(
            "/tenants/{name}",
            tenants::post_one,
            "Say what a tenant has coming; a new one comes into being",
        ),
        get("/workers", workers::get_list, "List workers and what they hold"),
        post("/workers/{id}/drain", workers::post_drain, "Have a worker finish what it holds and end"),
        post("/workers/{id}/kill", workers::post_kill, "Have a worker hand back what it holds and end"),
        get("/dead-letters", dead_letters::get_list, "List messages that could not be taken in"),
        post("/dead-letters/bulk", dead_letters::post_bulk, "Replay or discard many dead letters"),
        get("/dead-letters/{id}", dead_letters::get_one, "Show a dead letter"),
        post("/dead-letters/{id}/replay", dead_letters::post_replay, "Publish a dead letter's message again"),
        post("/dead-letters/{id}/discard", dead_letters::post_discard, "Throw a dead letter away"),
        get("/audit", audit::get_list, "Search the audit log, newest first"),
        get("/audit/export", audit::get_export, "Export the audit log").with("application/x-ndjson"),
        get("/doctor", doctor::get_report, "Say whether everything is as it should be"),
        post("/doctor/repair", doctor::post_repair, "Put right what can be"),
    ]
}

fn about_work() -> Vec<Endpoint> {
    let all = vec![
        post(
            "/execution/lease",
            execution::post_lease,
            "Ask for attempts to carry out, as a worker elsewhere",
        ),
        post(
            "/execution/heartbeat",
            execution::post_heartbeat,
            "Say that a worker lives, and hear what it holds",
        ),
        post("/execution/{id}/{task}/{attempt}/log", execution::post_log, "Take down what an attempt wrote"),
        post(
            "/execution/{id}/{task}/{attempt}/checkpoint",
            execution::post_checkpoint,
            "Say how far an attempt has come: the next one begins with it",
        ),
        post(
            "/execution/{id}/{task}/{attempt}/complete",
            execution::post_complete,
            "Say that an attempt succeeded",
        ),
        post("/execution/{id}/{task}/{attempt}/fail", execution::post_fail, "Say that an attempt failed"),
        post("/execution/{id}/{task}/{attempt}/release", execution::post_release, "Give an attempt back"),
    ];
    all.into_iter().map(Endpoint::of_an_attempt).collect()
}

fn about_access() -> Vec<Endpoint> {
    vec![
        get("/tokens", access::get_tokens, "List tokens for programs"),
        post("/tokens", access::post_token, "Make a token for a program"),
        delete("/tokens/{id}", access::delete_token, "Revoke a token"),
        get("/grants", access::get_grants, "List who was given which role"),
        post("/grants", access::post_grant, "Give somebody a role"),
        delete("/grants/{id}", access::delete_grant, "Take a role back"),
    ]
}

fn about_this() -> Vec<Endpoint> {
    let all = vec![
        get("/openapi.json", openapi::get_document, "This document"),
        get("/docs", openapi::get_page, "This document, for people").with("text/html"),
        get("/docs/style.css", openapi::get_style, "The style sheet of the page").with("text/css"),
    ];
    all.into_iter().map(Endpoint::for_everybody).collect()
}

/// What the path of an endpoint names, in order.
pub(crate) fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

/// The subject that an endpoint is shown under: the first word of its path.
pub(crate) fn subject(path: &str) -> &str {
    path.trim_start_matches('/').split(['/', '.']).next().unwrap_or_default()
}

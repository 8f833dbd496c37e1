//! The table of who may what, by hand.

use Who::{
    Admins, AdminsOfAll, Authors, Followers, Operators, OperatorsOfAll, Readers, ReadersOfAll, Starters,
    Workers,
};

/// Who may use an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Who {
    Followers,
    Starters,
    Readers,
    Operators,
    Authors,
    Admins,
    Workers,
    ReadersOfAll,
    OperatorsOfAll,
    AdminsOfAll,
}

/// An endpoint, a request to it, and who may send it.
pub(super) struct Row {
    pub(super) method: &'static str,
    /// As the router writes it.
    pub(super) template: &'static str,
    /// With `RUN`, `BACKFILL` and `NOBODY` for ids.
    pub(super) path: &'static str,
    pub(super) body: &'static str,
    pub(super) who: Who,
    /// Whether the address names something of tenant `acme`.
    pub(super) names_something: bool,
    /// Whether the answer repeats what the caller wrote.
    pub(super) echoes: bool,
}

const fn row(
    method: &'static str,
    template: &'static str,
    path: &'static str,
    body: &'static str,
    who: Who,
) -> Row {
    Row { method, template, path, body, who, names_something: false, echoes: false }
}

/// The address names something of `acme`; the answer may repeat the name.
const fn of(method: &'static str, template: &'static str, path: &'static str, who: Who) -> Row {
    Row { method, template, path, body: "{}", who, names_something: true, echoes: true }
}

const YAML: &str = "{name: orders-2, tasks: [{name: a, type: noop}]}";
const BACKFILL: &str =
    r#"{"workflow": "orders", "from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}"#;
const BULK: &str = r#"{"filter": {"workflow": "orders"}, "action": "pause"}"#;
const LETTERS: &str = r#"{"filter": {"source": "x"}, "action": "discard"}"#;
const TOKEN: &str = r#"{"name": "ci", "role": "viewer"}"#;
const LINES: &str = r#"{"worker": "w", "first": 0, "lines": []}"#;
const CHECKPOINT: &str = r#"{"worker": "w", "checkpoint": 1}"#;
const FAILURE: &str = r#"{"worker": "w", "message": "x"}"#;
const GRANT: &str = r#"{"who": "bob@example.com", "role": "viewer"}"#;

pub(super) const ENDPOINTS: &[Row] = &[
    row("GET", "/workflows", "/workflows", "", Readers),
    Row { echoes: true, ..row("POST", "/workflows", "/workflows", YAML, Authors) },
    Row { echoes: true, ..row("POST", "/workflows/validate", "/workflows/validate", YAML, Readers) },
    of("GET", "/workflows/{name}", "/workflows/orders", Readers),
    of("GET", "/workflows/{name}/versions", "/workflows/orders/versions", Readers),
    of("GET", "/workflows/{name}/versions/{number}", "/workflows/orders/versions/1", Readers),
    of(
        "GET",
        "/workflows/{name}/versions/{number}/compare/{other}",
        "/workflows/orders/versions/1/compare/1",
        Readers,
    ),
    of(
        "POST",
        "/workflows/{name}/versions/{number}/activate",
        "/workflows/orders/versions/1/activate",
        Authors,
    ),
    of("POST", "/workflows/{name}/runs", "/workflows/orders/runs", Starters),
    row("GET", "/runs", "/runs", "", Followers),
    Row { echoes: true, ..row("POST", "/runs/bulk", "/runs/bulk", BULK, Operators) },
    of("GET", "/runs/{id}", "/runs/RUN", Followers),
    of("POST", "/runs/{id}/pause", "/runs/RUN/pause", Operators),
    of("POST", "/runs/{id}/resume", "/runs/RUN/resume", Operators),
    of("POST", "/runs/{id}/retry", "/runs/RUN/retry", Operators),
    of("POST", "/runs/{id}/evaluate", "/runs/RUN/evaluate", Operators),
    of("GET", "/runs/{id}/events", "/runs/RUN/events", Readers),
    of("GET", "/runs/{id}/graph", "/runs/RUN/graph", Readers),
    of("GET", "/runs/{id}/explain", "/runs/RUN/explain", Readers),
    of("GET", "/runs/{id}/timers", "/runs/RUN/timers", Readers),
    of("POST", "/runs/{id}/signals/{name}", "/runs/RUN/signals/go", Starters),
    of("GET", "/runs/{id}/tasks", "/runs/RUN/tasks", Readers),
    of("GET", "/runs/{id}/tasks/{task}", "/runs/RUN/tasks/a", Readers),
    of("GET", "/runs/{id}/tasks/{task}/attempts", "/runs/RUN/tasks/a/attempts", Readers),
    of("GET", "/runs/{id}/tasks/{task}/logs", "/runs/RUN/tasks/a/logs", Readers),
    of("GET", "/runs/{id}/tasks/{task}/logs/follow", "/runs/RUN/tasks/a/logs/follow", Readers),
    of("GET", "/runs/{id}/tasks/{task}/output", "/runs/RUN/tasks/a/output", Readers),
    of("POST", "/runs/{id}/tasks/{task}/approve", "/runs/RUN/tasks/a/approve", Operators),
    of("POST", "/runs/{id}/tasks/{task}/reject", "/runs/RUN/tasks/a/reject", Operators),
    of("POST", "/runs/{id}/tasks/{task}/wake", "/runs/RUN/tasks/a/wake", Operators),
    of("POST", "/runs/{id}/tasks/{task}/succeed", "/runs/RUN/tasks/a/succeed", Operators),
    of("POST", "/runs/{id}/tasks/{task}/fail", "/runs/RUN/tasks/a/fail", Operators),
    of("POST", "/runs/{id}/tasks/{task}/clear", "/runs/RUN/tasks/a/clear", Operators),
    of("POST", "/runs/{id}/cancel", "/runs/RUN/cancel", Operators),
    row("GET", "/timers", "/timers", "", Readers),
    row("GET", "/schedules", "/schedules", "", Readers),
    of("GET", "/schedules/{workflow}", "/schedules/orders", Readers),
    of("GET", "/schedules/{workflow}/next", "/schedules/orders/next", Readers),
    of("GET", "/schedules/{workflow}/drift", "/schedules/orders/drift", Readers),
    of("POST", "/schedules/{workflow}/pause", "/schedules/orders/pause", Operators),
    of("POST", "/schedules/{workflow}/resume", "/schedules/orders/resume", Operators),
    row("GET", "/backfills", "/backfills", "", Readers),
    Row { echoes: true, ..row("POST", "/backfills", "/backfills", BACKFILL, Operators) },
    of("GET", "/backfills/{id}", "/backfills/BACKFILL", Readers),
    of("POST", "/backfills/{id}/pause", "/backfills/BACKFILL/pause", Operators),
    of("POST", "/backfills/{id}/resume", "/backfills/BACKFILL/resume", Operators),
    of("POST", "/backfills/{id}/cancel", "/backfills/BACKFILL/cancel", Operators),
    row("GET", "/triggers", "/triggers", "", Readers),
    of("GET", "/triggers/{workflow}/{name}", "/triggers/orders/hook", Readers),
    of("POST", "/triggers/{workflow}/{name}/pause", "/triggers/orders/hook/pause", Operators),
    of("POST", "/triggers/{workflow}/{name}/resume", "/triggers/orders/hook/resume", Operators),
    of("POST", "/workflows/{name}/pause", "/workflows/orders/pause", Operators),
    of("POST", "/workflows/{name}/resume", "/workflows/orders/resume", Operators),
    of("POST", "/workflows/{name}/archive", "/workflows/orders/archive", Authors),
    row("GET", "/events", "/events", "", Readers),
    row("GET", "/limits", "/limits", "", Readers),
    row("GET", "/limits/{kind}/{name}", "/limits/tenant/own", "", Readers),
    row("POST", "/limits/{kind}/{name}", "/limits/queue/light", r#"{"slots": 4}"#, AdminsOfAll),
    row("GET", "/breakers", "/breakers", "", Readers),
    row("POST", "/breakers/{id}/reset", "/breakers/7/reset", "{}", Admins),
    row("GET", "/queues", "/queues", "", Readers),
    row("GET", "/task-types", "/task-types", "", Readers),
    row("GET", "/tenants", "/tenants", "", Readers),
    row("GET", "/tenants/{name}", "/tenants/acme", "", Readers),
    row("POST", "/tenants/{name}", "/tenants/acme", r#"{"weight": 3}"#, AdminsOfAll),
    row("POST", "/execution/lease", "/execution/lease", r#"{"worker": "w", "queue": "remote"}"#, Workers),
    row("POST", "/execution/heartbeat", "/execution/heartbeat", r#"{"worker": "w"}"#, Workers),
    row("POST", "/execution/goodbye", "/execution/goodbye", r#"{"worker": "w"}"#, Workers),
    row(
        "POST",
        "/execution/breakers",
        "/execution/breakers",
        r#"{"worker": "w", "step": "read", "hosts": ["api.example:443"]}"#,
        Workers,
    ),
    row("POST", "/execution/{id}/{task}/{attempt}/log", "/execution/RUN/a/1/log", LINES, Workers),
    row(
        "POST",
        "/execution/{id}/{task}/{attempt}/checkpoint",
        "/execution/RUN/a/1/checkpoint",
        CHECKPOINT,
        Workers,
    ),
    row(
        "POST",
        "/execution/{id}/{task}/{attempt}/progress",
        "/execution/RUN/a/1/progress",
        r#"{"worker": "w", "metrics": {"rows": 1}}"#,
        Workers,
    ),
    row(
        "POST",
        "/execution/{id}/{task}/{attempt}/complete",
        "/execution/RUN/a/1/complete",
        r#"{"worker": "w"}"#,
        Workers,
    ),
    row("POST", "/execution/{id}/{task}/{attempt}/fail", "/execution/RUN/a/1/fail", FAILURE, Workers),
    row(
        "POST",
        "/execution/{id}/{task}/{attempt}/release",
        "/execution/RUN/a/1/release",
        r#"{"worker": "w"}"#,
        Workers,
    ),
    // What somebody asked for stands in their own tenant's log.
    Row { echoes: true, ..row("GET", "/audit", "/audit", "", Admins) },
    Row { echoes: true, ..row("GET", "/audit/export", "/audit/export", "", Admins) },
    row("GET", "/tokens", "/tokens", "", Admins),
    row("POST", "/tokens", "/tokens", TOKEN, Admins),
    row("DELETE", "/tokens/{id}", "/tokens/NOBODY", "", Admins),
    row("GET", "/grants", "/grants", "", Admins),
    row("POST", "/grants", "/grants", GRANT, Admins),
    row("DELETE", "/grants/{id}", "/grants/NOBODY", "", Admins),
    row("GET", "/workers", "/workers", "", Readers),
    row("GET", "/workers/stats", "/workers/stats", "", Readers),
    row("GET", "/log-filters", "/log-filters", "", AdminsOfAll),
    row("POST", "/log-filters/{function}", "/log-filters/sweep", r#"{"filter": "info"}"#, AdminsOfAll),
    row("POST", "/workers/{id}/drain", "/workers/NOBODY/drain", "{}", Operators),
    row("POST", "/workers/{id}/kill", "/workers/NOBODY/kill", "{}", Operators),
    row("GET", "/doctor", "/doctor", "", ReadersOfAll),
    row("POST", "/doctor/repair", "/doctor/repair", "", OperatorsOfAll),
    row("GET", "/dead-letters", "/dead-letters", "", ReadersOfAll),
    row("POST", "/dead-letters/bulk", "/dead-letters/bulk", LETTERS, OperatorsOfAll),
    row("GET", "/dead-letters/{id}", "/dead-letters/x", "", ReadersOfAll),
    row("POST", "/dead-letters/{id}/replay", "/dead-letters/x/replay", "{}", OperatorsOfAll),
    row("POST", "/dead-letters/{id}/discard", "/dead-letters/x/discard", "{}", OperatorsOfAll),
];

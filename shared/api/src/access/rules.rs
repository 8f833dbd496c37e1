//! The table: which permission an endpoint asks for, and in what.

use auth::Permission;
use auth::Permission::{Administer, Author, Follow, Operate, Read, Start, Work};
use axum::http::Method;

/// In what a permission is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum On {
    /// The workflow that the address names.
    Workflow,
    /// The workflow of the run that the address names.
    Run,
    /// The workflow of the backfill that the address names.
    Backfill,
    /// At least one workflow: the handler leaves out, or refuses, what the caller has no business with.
    Some,
    /// The tenant as a whole.
    Tenant,
    /// The whole instance for a queue, the tenant for everything else.
    Limit,
    /// The whole instance.
    Instance,
}

/// A row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    /// `GET`, `POST`, `PUT` or `DELETE`.
    pub method: &'static str,
    /// The address below `/api/v1`, as the router writes it.
    pub path: &'static str,
    /// What the caller must be allowed to do.
    pub permission: Permission,
    /// In what.
    pub on: On,
}

const fn get(path: &'static str, permission: Permission, on: On) -> Rule {
    Rule { method: "GET", path, permission, on }
}

const fn post(path: &'static str, permission: Permission, on: On) -> Rule {
    Rule { method: "POST", path, permission, on }
}

const fn delete(path: &'static str, permission: Permission, on: On) -> Rule {
    Rule { method: "DELETE", path, permission, on }
}

/// Every endpoint.
pub const RULES: &[Rule] = &[
    get("/workflows", Read, On::Some),
    post("/workflows", Author, On::Some),
    post("/workflows/validate", Read, On::Some),
    get("/workflows/{name}", Read, On::Workflow),
    post("/workflows/{name}/pause", Operate, On::Workflow),
    post("/workflows/{name}/resume", Operate, On::Workflow),
    post("/workflows/{name}/archive", Author, On::Workflow),
    get("/workflows/{name}/versions", Read, On::Workflow),
    get("/workflows/{name}/versions/{number}", Read, On::Workflow),
    post("/workflows/{name}/versions/{number}/activate", Author, On::Workflow),
    get("/workflows/{name}/versions/{number}/compare/{other}", Read, On::Workflow),
    post("/workflows/{name}/runs", Start, On::Workflow),
    get("/runs", Follow, On::Some),
    post("/runs/bulk", Operate, On::Some),
    get("/runs/{id}", Follow, On::Run),
    post("/runs/{id}/cancel", Operate, On::Run),
    post("/runs/{id}/pause", Operate, On::Run),
    post("/runs/{id}/resume", Operate, On::Run),
    post("/runs/{id}/retry", Operate, On::Run),
    post("/runs/{id}/evaluate", Operate, On::Run),
    get("/runs/{id}/events", Read, On::Run),
    get("/runs/{id}/graph", Read, On::Run),
    get("/runs/{id}/explain", Read, On::Run),
    get("/runs/{id}/timers", Read, On::Run),
    post("/runs/{id}/signals/{name}", Start, On::Run),
    get("/runs/{id}/tasks", Read, On::Run),
    get("/runs/{id}/tasks/{task}", Read, On::Run),
    get("/runs/{id}/tasks/{task}/attempts", Read, On::Run),
    get("/runs/{id}/tasks/{task}/logs", Read, On::Run),
    get("/runs/{id}/tasks/{task}/logs/follow", Read, On::Run),
    get("/runs/{id}/tasks/{task}/output", Read, On::Run),
    post("/runs/{id}/tasks/{task}/approve", Operate, On::Run),
    post("/runs/{id}/tasks/{task}/reject", Operate, On::Run),
    post("/runs/{id}/tasks/{task}/clear", Operate, On::Run),
    post("/runs/{id}/tasks/{task}/succeed", Operate, On::Run),
    post("/runs/{id}/tasks/{task}/fail", Operate, On::Run),
    post("/runs/{id}/tasks/{task}/wake", Operate, On::Run),
    get("/timers", Read, On::Some),
    get("/schedules", Read, On::Some),
    get("/schedules/{workflow}", Read, On::Workflow),
    get("/schedules/{workflow}/next", Read, On::Workflow),
    get("/schedules/{workflow}/drift", Read, On::Workflow),
    post("/schedules/{workflow}/pause", Operate, On::Workflow),
    post("/schedules/{workflow}/resume", Operate, On::Workflow),
    get("/backfills", Read, On::Some),
    post("/backfills", Operate, On::Some),
    get("/backfills/{id}", Read, On::Backfill),
    post("/backfills/{id}/pause", Operate, On::Backfill),
    post("/backfills/{id}/resume", Operate, On::Backfill),
    post("/backfills/{id}/cancel", Operate, On::Backfill),
    get("/triggers", Read, On::Some),
    get("/triggers/{workflow}/{name}", Read, On::Workflow),
    post("/triggers/{workflow}/{name}/pause", Operate, On::Workflow),
    post("/triggers/{workflow}/{name}/resume", Operate, On::Workflow),
    get("/events", Read, On::Some),
    get("/limits", Read, On::Tenant),
    get("/limits/{kind}/{name}", Read, On::Tenant),
    post("/limits/{kind}/{name}", Administer, On::Limit),
    get("/queues", Read, On::Tenant),
    get("/tenants", Read, On::Some),
    get("/tenants/{name}", Read, On::Some),
    post("/execution/lease", Work, On::Some),
    post("/execution/heartbeat", Work, On::Some),
    post("/execution/{id}/{task}/{attempt}/log", Work, On::Some),
    post("/execution/{id}/{task}/{attempt}/checkpoint", Work, On::Some),
    post("/execution/{id}/{task}/{attempt}/complete", Work, On::Some),
    post("/execution/{id}/{task}/{attempt}/fail", Work, On::Some),
    post("/execution/{id}/{task}/{attempt}/release", Work, On::Some),
    get("/audit", Administer, On::Tenant),
    get("/audit/export", Administer, On::Tenant),
    get("/tokens", Administer, On::Tenant),
    post("/tokens", Administer, On::Tenant),
    delete("/tokens/{id}", Administer, On::Tenant),
    get("/grants", Administer, On::Tenant),
    post("/grants", Administer, On::Tenant),
    delete("/grants/{id}", Administer, On::Tenant),
    // What follows belongs to no tenant.
    post("/tenants/{name}", Administer, On::Instance),
    get("/workers", Read, On::Instance),
    post("/workers/{id}/drain", Operate, On::Instance),
    post("/workers/{id}/kill", Operate, On::Instance),
    get("/doctor", Read, On::Instance),
    post("/doctor/repair", Operate, On::Instance),
    get("/dead-letters", Read, On::Instance),
    post("/dead-letters/bulk", Operate, On::Instance),
    get("/dead-letters/{id}", Read, On::Instance),
    post("/dead-letters/{id}/replay", Operate, On::Instance),
    post("/dead-letters/{id}/discard", Operate, On::Instance),
];

/// The rule of an endpoint; none for one that nobody may use.
pub fn rule(method: &Method, path: &str) -> Option<&'static Rule> {
    // Whoever may read something may ask how long it is.
    let method = if method == Method::HEAD { &Method::GET } else { method };
    RULES.iter().find(|rule| rule.method == method.as_str() && rule.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_has_one_rule() {
        for (place, rule) in RULES.iter().enumerate() {
            let same = |other: &Rule| other.method == rule.method && other.path == rule.path;
            assert!(!RULES[place + 1..].iter().any(same), "{} {}", rule.method, rule.path);
        }
    }

    #[test]
    fn what_a_rule_is_about_can_be_told_from_its_address() {
        for rule in RULES {
            let named = match rule.on {
                On::Workflow => {
                    rule.path.contains("{workflow}") || rule.path.starts_with("/workflows/{name}")
                }
                On::Run => rule.path.starts_with("/runs/{id}"),
                On::Backfill => rule.path.starts_with("/backfills/{id}"),
                On::Limit => rule.path.contains("{kind}"),
                On::Some | On::Tenant | On::Instance => true,
            };
            assert!(named, "{} {}", rule.method, rule.path);
        }
    }
}

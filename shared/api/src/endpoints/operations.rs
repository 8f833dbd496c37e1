//! The instance and what it shares: limits, queues, tenants, workers, dead letters, audit log, health.

use auth::Permission::{Administer, Operate, Read};

use super::{Before, On, Row, get, post};
use crate::{audit, breakers, dead_letters, doctor, limits, log_filters, queues, tenants, workers};

pub(super) fn rows() -> Vec<Row> {
    [capacity(), workers(), dead_letters(), health()].into_iter().flatten().collect()
}

fn capacity() -> Vec<Row> {
    vec![
        get("/limits", limits::get_list).id("limits_get_list").needs(Read, On::Tenant).docs(
            "List limits",
            "Returns a page of the concurrency limits with their slots in use and the tasks waiting for one.",
        ),
        get("/limits/{kind}/{name}", limits::get_detail)
            .id("limits_get_detail")
            .needs(Read, On::Tenant)
            .docs(
                "Show a limit",
                "Returns the tasks that hold a slot of a limit, and the tasks next in the wait queue.",
            ),
        post("/limits/{kind}/{name}", limits::post_slots)
            .audited(Before::Limit)
            .id("limits_post_slots")
            .needs(Administer, On::Limit)
            .docs(
                "Set the slots of a limit",
                "Changes how many tasks may hold a slot at once, and returns the limit. Tasks that hold one \
                 keep it; waiting tasks start if there is room.",
            ),
        get("/breakers", breakers::get_list).id("breakers_get_list").needs(Read, On::Tenant).docs(
            "List circuit breakers",
            "Returns the circuit breakers of tasks and hosts that are open, or had a failure within a day: since \
             and until when, and the message of the last failure.",
        ),
        post("/breakers/{id}/reset", breakers::post_reset)
            .audited(Before::Nothing)
            .id("breakers_post_reset")
            .needs(Administer, On::Tenant)
            .docs(
                "Reset a circuit breaker",
                "Closes a circuit breaker in all processes and forgets its failures. Tasks that wait for it begin.",
            ),
        get("/queues", queues::get_list).id("queues_get_list").needs(Read, On::Tenant).docs(
            "List queues",
            "Returns a page of the queues: the tasks waiting in each, for how long, by tenant, and the \
             recent release rate.",
        ),
        get("/tenants", tenants::get_list)
            .id("tenants_get_list")
            .needs(Read, On::Some)
            .docs("List tenants", "Returns the tenants in which the caller has a role."),
        get("/tenants/{name}", tenants::get_one)
            .id("tenants_get_one")
            .needs(Read, On::Some)
            .docs("Show a tenant", "Returns a tenant's weight, its limit and its tasks in progress."),
        post("/tenants/{name}", tenants::post_one)
            .audited(Before::Tenant)
            .id("tenants_post_one")
            .needs(Administer, On::Instance)
            .docs(
                "Create or configure a tenant",
                "Sets a tenant's weight and its maximum number of active tasks. Creates the tenant if \
                 it does not exist.",
            ),
    ]
}

fn workers() -> Vec<Row> {
    vec![
        get("/workers", workers::get_list)
            .id("workers_get_list")
            .needs(Read, On::Tenant)
            .docs(
                "List workers",
                "Returns the known workers, their health and the attempts they hold. A caller without a permission in every \
                 tenant sees those that lease for their own.",
            ),
        get("/workers/stats", workers::get_stats)
            .id("workers_get_stats")
            .needs(Read, On::Tenant)
            .docs(
                "Count workers",
                "Returns for each queue the number of workers, their slots, the attempts they hold and have ended, \
                 and the tasks that wait for a remote worker.",
            ),
        post("/workers/{id}/drain", workers::post_drain)
            .audited(Before::Nothing)
            .id("workers_post_drain")
            .needs(Operate, On::Tenant)
            .docs("Drain a worker", "The worker takes no more attempts, finishes those it holds and exits."),
        post("/workers/{id}/kill", workers::post_kill)
            .audited(Before::Nothing)
            .id("workers_post_kill")
            .needs(Operate, On::Tenant)
            .docs(
                "Kill a worker",
                "The worker hands back the attempts it holds at once and exits. No retry is used up.",
            ),
    ]
}

fn dead_letters() -> Vec<Row> {
    vec![
        get("/dead-letters", dead_letters::get_list)
            .id("dead_letters_get_list")
            .needs(Read, On::Instance)
            .docs("List dead letters", "Returns the messages that could not be processed, newest first."),
        post("/dead-letters/bulk", dead_letters::post_bulk)
            .audited(Before::Nothing)
            .id("dead_letters_post_bulk")
            .needs(Operate, On::Instance)
            .docs(
                "Replay or discard many dead letters",
                "Applies one action to a batch of the dead letters that match a filter, newest first.",
            ),
        get("/dead-letters/{id}", dead_letters::get_one)
            .id("dead_letters_get_one")
            .needs(Read, On::Instance)
            .docs("Show a dead letter", "Returns a dead letter with its message and the error."),
        post("/dead-letters/{id}/replay", dead_letters::post_replay)
            .audited(Before::Nothing)
            .id("dead_letters_post_replay")
            .needs(Operate, On::Instance)
            .docs(
                "Replay a dead letter",
                "Publishes the message of a dead letter again and removes the dead letter.",
            ),
        post("/dead-letters/{id}/discard", dead_letters::post_discard)
            .audited(Before::Nothing)
            .id("dead_letters_post_discard")
            .needs(Operate, On::Instance)
            .docs("Discard a dead letter", "Deletes a dead letter. Its message is not processed."),
    ]
}

fn health() -> Vec<Row> {
    vec![
        get("/log-filters", log_filters::get_list)
            .id("log_filters_get_list")
            .needs(Administer, On::Instance)
            .docs("List log filters", "Returns what the instances of each function log, if it is not as configured."),
        post("/log-filters/{function}", log_filters::post_one)
            .audited(Before::Nothing)
            .id("log_filters_post_one")
            .needs(Administer, On::Instance)
            .docs(
                "Set a log filter",
                "Changes what the instances of a function log, for a while. Each follows within half a minute of \
                 requests; an idle sweep follows once it has something to do.",
            ),
        get("/audit", audit::get_list).id("audit_get_list").needs(Administer, On::Tenant).docs(
            "Search the audit log",
            "Returns who changed what, from where, with the state before and after, newest first. \
             Rejected changes are included.",
        ),
        get("/audit/export", audit::get_export)
            .id("audit_get_export")
            .needs(Administer, On::Tenant)
            .docs("Export the audit log", "Streams the audit log as one JSON object per line, newest first.")
            .answers("application/x-ndjson"),
        get("/doctor", doctor::get_report).id("doctor_get_report").needs(Read, On::Instance).docs(
            "Check the health of the instance",
            "Inspects the stored state for anything stuck or inconsistent and returns the findings.",
        ),
        post("/doctor/repair", doctor::post_repair)
            .audited(Before::Nothing)
            .id("doctor_post_repair")
            .needs(Operate, On::Instance)
            .docs(
                "Repair the instance",
                "Repairs what can be repaired without a decision by a person, and returns the remaining \
                 findings.",
            ),
    ]
}

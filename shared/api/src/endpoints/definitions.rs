//! Workflows and their versions.

use auth::Permission::{Author, Operate, Read, Start};

use super::{Before, Idempotency, On, Row, get, post};
use crate::{runs, task_types, versions, workflows};

pub(super) fn rows() -> Vec<Row> {
    vec![
        get("/workflows", workflows::get_list).id("workflows_get_list").needs(Read, On::Some).docs(
            "List workflows",
            "Returns the registered workflows the caller may see, by name. Filter by tag or text.",
        ),
        post("/workflows", workflows::post_register)
            .audited(Before::Nothing)
            .id("workflows_post_register")
            .needs(Author, On::Some)
            .docs(
                "Register workflow definitions",
                "Registers one or more definitions, all of them or none. Errors are reported with line \
                 and column; the active versions stay in place. Registering an unchanged definition \
                 again changes nothing.",
            ),
        post("/workflows/validate", workflows::post_validate)
            .read_only()
            .id("workflows_post_validate")
            .needs(Read, On::Some)
            .docs(
                "Validate workflow definitions",
                "Checks definitions exactly as registering them would, and registers nothing.",
            ),
        get("/task-types", task_types::get_list).id("task_types_get_list").needs(Read, On::Some).docs(
            "List task types",
            "Returns the built-in task types and the custom ones that active workflows use, each with \
             the JSON Schema of its settings. Of a custom type also the schema of its output, its \
             defaults and the workflows that use it and that the caller may read.",
        ),
        get("/workflows/{name}", workflows::get_one).id("workflows_get_one").needs(Read, On::Workflow).docs(
            "Show a workflow",
            "Returns the active definition with recent runs, statistics of the last 50 runs and the \
             next scheduled instants.",
        ),
        post("/workflows/{name}/pause", workflows::post_pause)
            .audited(Before::Workflow)
            .id("workflows_post_pause")
            .needs(Operate, On::Workflow)
            .docs(
                "Pause a workflow",
                "Stops new runs: schedules and triggers start none, and requests to start one are \
                 rejected. Existing runs and runs started by tasks of other runs continue. Pausing a \
                 paused workflow changes nothing.",
            ),
        post("/workflows/{name}/resume", workflows::post_resume)
            .audited(Before::Workflow)
            .id("workflows_post_resume")
            .needs(Operate, On::Workflow)
            .docs(
                "Resume a paused workflow",
                "Lets new runs start again. `missed` selects which scheduled instants of the pause still \
                 get a run.",
            ),
        post("/workflows/{name}/archive", versions::post_archive)
            .audited(Before::Workflow)
            .id("versions_post_archive")
            .needs(Author, On::Workflow)
            .docs(
                "Archive a workflow",
                "Takes a workflow out of use. Active runs continue and its history stays. Registering \
                 it again brings it back.",
            ),
        get("/workflows/{name}/versions", versions::get_list)
            .id("versions_get_list")
            .needs(Read, On::Workflow)
            .docs("List versions", "Returns all versions of a workflow, newest first."),
        get("/workflows/{name}/versions/{number}", versions::get_one)
            .id("versions_get_one")
            .needs(Read, On::Workflow)
            .docs(
                "Show a version",
                "Returns one version with its definition. Send `If-None-Match` to avoid receiving a \
                 definition you already have.",
            ),
        post("/workflows/{name}/versions/{number}/activate", versions::post_activate)
            .audited(Before::Workflow)
            .id("versions_post_activate")
            .needs(Author, On::Workflow)
            .docs(
                "Activate a version",
                "Makes a version the one that new runs use, to roll back or forward. Active runs keep \
                 theirs.",
            ),
        get("/workflows/{name}/versions/{number}/compare/{other}", versions::get_comparison)
            .id("versions_get_comparison")
            .needs(Read, On::Workflow)
            .docs("Compare two versions", "Returns the differences between two versions of a workflow."),
        post("/workflows/{name}/runs", runs::post_start)
            .changes(Before::Nothing, Idempotency::OwnKey)
            .id("runs_post_start")
            .needs(Start, On::Workflow)
            .docs(
                "Start a run",
                "Starts a run of the active version. The same `Idempotency-Key` starts nothing again \
                 and returns the run it started, however much later it is sent. `replace_existing` lets \
                 the run replace one of the same logical date.",
            ),
    ]
}

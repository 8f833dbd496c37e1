//! Endpoints for everything that starts runs without a request: schedules, backfills, triggers, timers.

use auth::Permission::{Operate, Read};

use super::{Before, On, Row, get, post};
use crate::{backfills, drift, schedules, timers, triggers};

pub(super) fn rows() -> Vec<Row> {
    [schedules(), backfills(), triggers()].into_iter().flatten().collect()
}

fn schedules() -> Vec<Row> {
    vec![
        get("/schedules", schedules::get_list).id("schedules_get_list").needs(Read, On::Some).docs(
            "List schedules",
            "Returns all schedules with their next instants and whether they are paused.",
        ),
        get("/schedules/{workflow}", schedules::get_of_workflow)
            .id("schedules_get_of_workflow")
            .needs(Read, On::Workflow)
            .docs(
                "Show the schedules of a workflow",
                "Returns the schedules of one workflow with their next instants.",
            ),
        get("/schedules/{workflow}/next", schedules::get_next)
            .id("schedules_get_next")
            .needs(Read, On::Workflow)
            .docs(
                "Preview the next instants",
                "Computes the instants at which a workflow's schedules fire next.",
            ),
        get("/schedules/{workflow}/drift", drift::get_drift)
            .id("drift_get_drift")
            .needs(Read, On::Workflow)
            .docs("Show schedule drift", "Returns how late the most recent scheduled runs started."),
        post("/schedules/{workflow}/pause", schedules::post_pause)
            .audited(Before::Nothing)
            .id("schedules_post_pause")
            .needs(Operate, On::Workflow)
            .docs("Pause a schedule", "Starts no scheduled runs until the schedule is resumed."),
        post("/schedules/{workflow}/resume", schedules::post_resume)
            .audited(Before::Nothing)
            .id("schedules_post_resume")
            .needs(Operate, On::Workflow)
            .docs(
                "Resume a schedule",
                "Starts scheduled runs again. `missed` selects which instants of the pause still get a \
                 run: all, the latest or none.",
            ),
    ]
}

fn backfills() -> Vec<Row> {
    vec![
        get("/backfills", backfills::get_list)
            .id("backfills_get_list")
            .needs(Read, On::Some)
            .docs("List backfills", "Returns backfills with their progress, newest first."),
        post("/backfills", backfills::post_start)
            .audited(Before::Nothing)
            .id("backfills_post_start")
            .needs(Operate, On::Some)
            .docs(
                "Start a backfill",
                "Starts runs for past scheduled dates, a few at a time. With `dry_run`, only returns \
                 the dates. The same `Idempotency-Key` returns the backfill it started.",
            ),
        get("/backfills/{id}", backfills::get_one)
            .id("backfills_get_one")
            .needs(Read, On::Backfill)
            .docs("Show a backfill", "Returns a backfill with the state of its dates."),
        post("/backfills/{id}/pause", backfills::post_pause)
            .audited(Before::Backfill)
            .id("backfills_post_pause")
            .needs(Operate, On::Backfill)
            .docs("Pause a backfill", "Starts no further runs of a backfill. Runs in progress continue."),
        post("/backfills/{id}/resume", backfills::post_resume)
            .audited(Before::Backfill)
            .id("backfills_post_resume")
            .needs(Operate, On::Backfill)
            .docs(
                "Resume a backfill",
                "Continues a paused or cancelled backfill. Dates whose runs were cancelled with it run \
                 again.",
            ),
        post("/backfills/{id}/cancel", backfills::post_cancel)
            .audited(Before::Backfill)
            .id("backfills_post_cancel")
            .needs(Operate, On::Backfill)
            .docs("Cancel a backfill", "Ends a backfill and cancels its runs."),
    ]
}

fn triggers() -> Vec<Row> {
    vec![
        get("/triggers", triggers::get_list)
            .id("triggers_get_list")
            .needs(Read, On::Some)
            .docs("List triggers", "Returns all triggers with their last event and whether they are paused."),
        get("/triggers/{workflow}/{name}", triggers::get_one)
            .id("triggers_get_one")
            .needs(Read, On::Workflow)
            .docs("Show a trigger", "Returns a trigger with its recent events and the runs they started."),
        post("/triggers/{workflow}/{name}/pause", triggers::post_pause)
            .audited(Before::Nothing)
            .id("triggers_post_pause")
            .needs(Operate, On::Workflow)
            .docs("Pause a trigger", "Events that arrive while a trigger is paused start no runs."),
        post("/triggers/{workflow}/{name}/resume", triggers::post_resume)
            .audited(Before::Nothing)
            .id("triggers_post_resume")
            .needs(Operate, On::Workflow)
            .docs(
                "Resume a trigger",
                "Lets a trigger start runs again. A sensor polls at once, from where it stopped.",
            ),
        get("/timers", timers::get_list).id("timers_get_list").needs(Read, On::Some).docs(
            "List timers",
            "Returns the pending timers of all runs the caller may see, the next one first.",
        ),
    ]
}

//! Runs, and what happens to them.

use auth::Permission::{Follow, Operate, Read, Start};
use runtime::Operation;

use super::{Before, On, Row, get, post};
use crate::{approvals, bulk, explain, live, operate, picture, runs, timers};

pub(super) fn rows() -> Vec<Row> {
    [reads(), changes()].into_iter().flatten().collect()
}

fn reads() -> Vec<Row> {
    vec![
        get("/runs", runs::get_list).id("runs_get_list").needs(Follow, On::Some).docs(
            "List runs",
            "Returns runs, newest first. Filter by workflow, state, parent, label, creation time \
             and text.",
        ),
        get("/runs/{id}", runs::get_one).id("runs_get_one").needs(Follow, On::Run).docs(
            "Show a run",
            "Returns a run with its state, its inputs and the number of its tasks in each state.",
        ),
        get("/runs/{id}/events", runs::get_events).id("runs_get_events").needs(Read, On::Run).docs(
            "List the events of a run",
            "Returns everything that happened to a run and its tasks, oldest first.",
        ),
        get("/runs/{id}/graph", picture::get_graph).id("picture_get_graph").needs(Read, On::Run).docs(
            "Show the graph of a run",
            "Returns the tasks of a run, their dependencies and the state of each.",
        ),
        get("/runs/{id}/explain", explain::get_explanation)
            .id("explain_get_explanation")
            .needs(Read, On::Run)
            .docs(
                "Explain a run",
                "Explains in plain English why a run, or one of its tasks, is in its current state and \
                 what it is waiting for.",
            ),
        get("/runs/{id}/timers", timers::get_of_run).id("timers_get_of_run").needs(Read, On::Run).docs(
            "List the timers of a run",
            "Returns the pending timers of a run: what fires when, and why.",
        ),
        get("/events", live::get_events)
            .id("live_get_events")
            .needs(Read, On::Some)
            .docs(
                "Follow events",
                "Streams events of runs as server-sent events while they happen, optionally of one \
                 workflow or run. The stream ends after 15 minutes; reconnect with `Last-Event-ID` to \
                 miss nothing. Reports of progress are events of the type `progress`, and not part of a run's history.",
            )
            .answers("text/event-stream"),
    ]
}

fn changes() -> Vec<Row> {
    vec![
        post("/runs/bulk", bulk::post_bulk)
            .audited(Before::Nothing)
            .id("bulk_post_bulk")
            .needs(Operate, On::Some)
            .docs(
                "Act on many runs",
                "Applies one action to a batch of the runs that match a filter. With `dry_run`, only \
                 counts them. Repeat the request until nothing matches.",
            ),
        post("/runs/{id}/cancel", runs::post_cancel)
            .audited(Before::Run)
            .id("runs_post_cancel")
            .needs(Operate, On::Run)
            .docs(
                "Cancel a run",
                "Cancels a run and the tasks that have not ended. Cancelling a cancelled run changes \
                 nothing.",
            ),
        post("/runs/{id}/pause", operate::on_run(Operation::Pause))
            .audited(Before::Run)
            .id("operate_post_pause")
            .needs(Operate, On::Run)
            .docs(
                "Pause a run",
                "Starts no further tasks of the run until it is resumed. Attempts in progress may \
                 finish.",
            ),
        post("/runs/{id}/resume", operate::on_run(Operation::Resume))
            .audited(Before::Run)
            .id("operate_post_resume")
            .needs(Operate, On::Run)
            .docs("Resume a paused run", "Starts the tasks that the pause held back."),
        post("/runs/{id}/retry", operate::on_run(Operation::Retry))
            .audited(Before::Run)
            .id("operate_post_retry")
            .needs(Operate, On::Run)
            .docs(
                "Retry the failed tasks of a run",
                "Runs every failed or cancelled task of the run again, with everything downstream.",
            ),
        post("/runs/{id}/evaluate", operate::on_run(Operation::Evaluate))
            .audited(Before::Run)
            .id("operate_post_evaluate")
            .needs(Operate, On::Run)
            .docs(
                "Re-evaluate a run",
                "Checks a run now for lost messages and tasks that should have started, and continues \
                 it. The sweep does the same in due course.",
            ),
        post("/runs/{id}/signals/{name}", approvals::post_signal)
            .audited(Before::Run)
            .id("answers_post_signal")
            .needs(Start, On::Run)
            .docs(
                "Send a signal to a run",
                "Tasks waiting for the signal succeed with the request body as their output. If no task \
                 is waiting yet, the signal is kept for the first one that will.",
            ),
    ]
}

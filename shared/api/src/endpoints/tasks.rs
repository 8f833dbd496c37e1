//! Tasks of a run, and their attempts.

use auth::Permission::{Operate, Read};
use runtime::{Mark, Operation};

use super::{Before, On, Row, get, post};
use crate::{approvals, live, logs, operate, tasks};

pub(super) fn rows() -> Vec<Row> {
    [reads(), changes()].into_iter().flatten().collect()
}

fn reads() -> Vec<Row> {
    vec![
        get("/runs/{id}/tasks", tasks::get_list).id("tasks_get_list").needs(Read, On::Run).docs(
            "List the tasks of a run",
            "Returns the tasks in the order of the definition or, with `parent`, the children of a \
             fan-out.",
        ),
        get("/runs/{id}/tasks/{task}", tasks::get_one).id("tasks_get_one").needs(Read, On::Run).docs(
            "Show a task",
            "Returns a task with its state, its attempts used and allowed, and what it is waiting \
             for.",
        ),
        get("/runs/{id}/tasks/{task}/attempts", tasks::get_attempts)
            .id("tasks_get_attempts")
            .needs(Read, On::Run)
            .docs(
                "List the attempts of a task",
                "Returns the attempts in pages, oldest first, with the worker, the error and the decision about \
                 a retry.",
            ),
        get("/runs/{id}/tasks/{task}/logs", logs::get_lines).id("logs_get_lines").needs(Read, On::Run).docs(
            "Read the log of a task",
            "Returns the log lines of one attempt in pages, the latest attempt by default.",
        ),
        get("/runs/{id}/tasks/{task}/logs/follow", live::get_log)
            .id("live_get_log")
            .needs(Read, On::Run)
            .docs(
                "Follow the log of a task",
                "Streams log lines as server-sent events until the task has ended. Reconnect with \
                 `Last-Event-ID` to miss nothing.",
            )
            .answers("text/event-stream"),
        get("/runs/{id}/tasks/{task}/output", tasks::get_output)
            .id("tasks_get_output")
            .needs(Read, On::Run)
            .docs(
                "Show the output of a task",
                "Returns the output of the task's last attempt. Returns 404 while the task has not \
                 succeeded.",
            ),
    ]
}

fn changes() -> Vec<Row> {
    vec![
        post("/runs/{id}/tasks/{task}/approve", approvals::post_approve)
            .audited(Before::Task)
            .id("answers_post_approve")
            .needs(Operate, On::Run)
            .docs(
                "Approve a task",
                "Approves a task that is waiting for approval. The answers to its form become part of \
                 its output.",
            ),
        post("/runs/{id}/tasks/{task}/reject", approvals::post_reject)
            .audited(Before::Task)
            .id("answers_post_reject")
            .needs(Operate, On::Run)
            .docs("Reject a task", "Rejects a task that is waiting for approval. The task fails."),
        post("/runs/{id}/tasks/{task}/clear", operate::on_task(Operation::Clear))
            .audited(Before::Task)
            .id("operate_post_clear")
            .needs(Operate, On::Run)
            .docs(
                "Clear a task",
                "Runs a task again, with everything downstream. Its earlier attempts remain as history.",
            ),
        post("/runs/{id}/tasks/{task}/succeed", operate::post_succeed)
            .audited(Before::Task)
            .id("operate_post_succeed")
            .needs(Operate, On::Run)
            .docs(
                "Mark a task as succeeded",
                "Ends a task as succeeded, with the given output. Downstream tasks continue.",
            ),
        post("/runs/{id}/tasks/{task}/fail", operate::on_task(|task| Operation::Mark(task, Mark::Failed)))
            .audited(Before::Task)
            .id("operate_post_fail")
            .needs(Operate, On::Run)
            .docs("Mark a task as failed", "Ends a task as failed. It is not retried."),
        post("/runs/{id}/tasks/{task}/wake", operate::on_task(Operation::Wake))
            .audited(Before::Task)
            .id("operate_post_wake")
            .needs(Operate, On::Run)
            .docs("Wake a task", "Ends a task's sleep, or the delay before its next attempt, now."),
    ]
}

//! The protocol of remote workers.

use auth::Permission::Work;

use super::{On, Row, post};
use crate::execution;

pub(super) fn rows() -> Vec<Row> {
    vec![
        post("/execution/lease", execution::post_lease)
            .attempt_step()
            .id("execution_post_lease")
            .needs(Work, On::Some)
            .docs(
                "Lease attempts",
                "Gives a remote worker up to `limit` attempts of its queue whose task types it can run and \
                 whose required labels it has, in the order of priority and age. If there are none, it \
                 waits up to `wait_seconds` for one.",
            ),
        post("/execution/heartbeat", execution::post_heartbeat)
            .attempt_step()
            .id("execution_post_heartbeat")
            .needs(Work, On::Some)
            .docs(
                "Send a heartbeat",
                "Keeps a worker's leases and returns the attempts it still holds. A worker that stays \
                 silent loses its attempts.",
            ),
        post("/execution/goodbye", execution::post_goodbye)
            .attempt_step()
            .id("execution_post_goodbye")
            .needs(Work, On::Some)
            .docs(
                "Deregister a worker",
                "Removes a worker that stops. It must hold no attempts; removing it again changes nothing.",
            ),
        post("/execution/breakers", execution::post_breakers)
            .attempt_step()
            .id("execution_post_breakers")
            .needs(Work, On::Some)
            .docs(
                "Share breakers of hosts",
                "Reads the circuit breakers of hosts that a worker's tasks call, or reports what the worker found out \
                 about one. Workers and functions share the breakers of a tenant, and an administrator resets them.",
            ),
        post("/execution/{id}/{task}/{attempt}/log", execution::post_log)
            .attempt_step()
            .id("execution_post_log")
            .needs(Work, On::Some)
            .docs(
                "Append to the log of an attempt",
                "Appends log lines. Lines that were already received are ignored.",
            ),
        post("/execution/{id}/{task}/{attempt}/checkpoint", execution::post_checkpoint)
            .attempt_step()
            .id("execution_post_checkpoint")
            .needs(Work, On::Some)
            .docs("Save a checkpoint", "Saves the progress of an attempt. The next attempt starts from it."),
        post("/execution/{id}/{task}/{attempt}/progress", execution::post_progress)
            .attempt_step()
            .id("execution_post_progress")
            .needs(Work, On::Some)
            .docs(
                "Report progress",
                "Records the share of an attempt's work that is done and values of its metrics. Omitted values \
                 stay unchanged.",
            ),
        post("/execution/{id}/{task}/{attempt}/complete", execution::post_complete)
            .attempt_step()
            .id("execution_post_complete")
            .needs(Work, On::Some)
            .docs("Complete an attempt", "Reports that an attempt succeeded, with its output."),
        post("/execution/{id}/{task}/{attempt}/fail", execution::post_fail)
            .attempt_step()
            .id("execution_post_fail")
            .needs(Work, On::Some)
            .docs(
                "Fail an attempt",
                "Reports that an attempt failed. The task's retry policy decides whether another \
                 follows.",
            ),
        post("/execution/{id}/{task}/{attempt}/release", execution::post_release)
            .attempt_step()
            .id("execution_post_release")
            .needs(Work, On::Some)
            .docs(
                "Hand back an attempt",
                "Hands an attempt back. The next one follows at once and uses up no retry.",
            ),
    ]
}

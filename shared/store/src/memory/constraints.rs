//! The constraints of the schema, so that what Postgres would refuse is refused under virtual time, too, and
//! by the same name.

use model::{AttemptRecord, Run, Task, TaskState};

use crate::{Error, Result};

pub(super) fn run(run: &Run) -> Result<()> {
    holds(run.state.is_final() == run.finished_at.is_some(), "a_finished_run_has_a_time")?;
    holds(run.revision >= 0 && run.events >= 0, "a_run_counts_from_zero")
}

pub(super) fn task(task: &Task) -> Result<()> {
    let ended = task.parents.succeeded + task.parents.failed + task.parents.skipped;
    holds(task.state.is_final() == task.finished_at.is_some(), "a_finished_task_has_a_time")?;
    holds(task.worker.is_none() || task.state == TaskState::Running, "only_a_running_task_has_a_worker")?;
    holds(ended <= task.parents.done, "a_parent_ends_in_one_way")
}

pub(super) fn attempt(attempt: &AttemptRecord) -> Result<()> {
    let ended = [TaskState::Succeeded, TaskState::Failed, TaskState::Cancelled].contains(&attempt.state);
    holds(ended, "an_attempt_that_is_over_ended")?;
    holds(attempt.attempt >= 1, "attempts_are_numbered_from_one")
}

/// Refuses, naming the constraint, where it does not hold.
pub(super) fn holds(holds: bool, constraint: &str) -> Result<()> {
    if holds {
        Ok(())
    } else {
        Err(Error::Database(sqlx::Error::Protocol(format!("violates \"{constraint}\""))))
    }
}

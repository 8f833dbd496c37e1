//! The constraints of the schema, so that what Postgres would refuse is refused under virtual time, too, and
//! by the same name.

use model::{AttemptRecord, Fan, Run, Task, TaskIndex, TaskState, Timer, TimerKind};

use crate::{Error, Result};

pub(super) fn run(run: &Run) -> Result<()> {
    holds(run.state.is_final() == run.finished_at.is_some(), "a_finished_run_has_a_time")?;
    holds(run.revision >= 0 && run.events >= 0, "a_run_counts_from_zero")?;
    holds(run.parent.is_none_or(|parent| parent.key.run != run.id), "a_run_is_not_its_own_parent")?;
    holds(run.parent.is_none() || run.depth >= 1, "a_run_with_a_parent_is_below_it")?;
    holds(run.concurrency_group.is_some() || !run.waiting, "only_a_run_in_a_concurrency_group_waits")
}

pub(super) fn task(task: &Task) -> Result<()> {
    let ended = task.parents.succeeded + task.parents.failed + task.parents.skipped;
    holds(task.state.is_final() == task.finished_at.is_some(), "a_finished_task_has_a_time")?;
    holds(task.worker.is_none() || task.state == TaskState::Running, "only_a_running_task_has_a_worker")?;
    holds(ended <= task.parents.done, "a_parent_ends_in_one_way")?;
    holds(task.child.is_none_or(|child| child.of < task.index), "a_child_comes_after_its_fan_out")?;
    holds(task.handed_back <= task.attempt, "only_attempts_are_handed_back")?;
    holds(task.voided <= task.attempt, "only_attempts_that_were_made_are_void")?;
    holds(task.begun_at.is_none() || task.attempt >= 1, "only_an_attempt_begins_a_task")?;
    task.fan.map_or(Ok(()), |fan| fan_out(task.index, &fan))
}

fn fan_out(index: TaskIndex, fan: &Fan) -> Result<()> {
    let ended = fan.ended.succeeded + fan.ended.failed + fan.ended.skipped;
    let counted = fan.released <= fan.total && fan.ended.done <= fan.total && ended <= fan.ended.done;
    holds(counted, "a_fan_out_counts_its_children")?;
    holds(fan.total == 0 || fan.first > index, "children_come_after_their_fan_out")
}

pub(super) fn timer(timer: &Timer) -> Result<()> {
    let of_a_run = timer.task.is_none();
    let kind_of_a_run = matches!(timer.kind, TimerKind::Timeout | TimerKind::Deadline);
    holds(!of_a_run || timer.attempt == 0, "a_run_has_no_attempts")?;
    holds(!of_a_run || kind_of_a_run, "a_run_neither_retries_nor_sleeps")?;
    holds(of_a_run || timer.kind != TimerKind::Deadline, "only_a_run_has_a_deadline")
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

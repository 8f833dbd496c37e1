//! A run as a whole, in a few sentences.

use model::{EventKind, RunState, TaskIndex, TaskState};

use super::{Story, ended, other_runs, words};

pub(super) fn summary(story: &Story<'_>) -> String {
    let summary = match story.run.state {
        RunState::Queued if story.run.waiting => other_runs::waiting_for_group(story),
        RunState::Queued => "was created, and none of its tasks has started.".to_owned(),
        RunState::Running => in_progress(story),
        RunState::Paused => paused(story),
        RunState::Stalled => {
            "is stalled: it has not ended, no task can continue and none waits for anything. \
            This is a defect of Ebbflow; `ebb run evaluate` re-evaluates it, `ebb run cancel` ends it."
                .to_owned()
        }
        RunState::Succeeded => format!("succeeded{}: of {}.", ended_at(story), tallies(story)),
        RunState::Failed => has_failed(story),
        RunState::Cancelled => was_cancelled(story),
    };
    let (run, workflow) = (story.run.id, &story.run.workflow);
    let (origin, late, unheard) =
        (other_runs::origin(story), missed_deadline(story), undelivered_callbacks(story));
    format!("Run {run} of `{workflow}` {summary}{late}{unheard}{origin}")
}

fn paused(story: &Story<'_>) -> String {
    let event = story.last_of_run(EventKind::RunPaused);
    let by = event.map(|event| format!(" by {}", story.actor(event))).unwrap_or_default();
    let command = format!("ebb run resume {}", story.run.id);
    format!("was paused{by}. It starts no more tasks until it is resumed: `{command}`.{}", open(story))
}

fn missed_deadline(story: &Story<'_>) -> String {
    let Some(event) = story.last_of_run(EventKind::RunMissedDeadline) else { return String::new() };
    let limit = story.graph.workflow().deadline_seconds.unwrap_or_default();
    format!(" It missed its deadline at {}: deadline_seconds is {limit}.", story.moment(event.at))
}

/// Callbacks that could not be delivered.
fn undelivered_callbacks(story: &Story<'_>) -> String {
    let failed = |event: &&model::Event| event.data["error"].is_string();
    let failed: Vec<&model::Event> = story.of_run(EventKind::RunCalledBack).filter(failed).collect();
    let Some(last) = failed.last() else { return String::new() };
    let text = |field: &str| words::quote(last.data[field].as_str().unwrap_or_default());
    let (what, error, at) = (text("what"), text("error"), story.moment(last.at));
    match failed.len() {
        1 => format!(" A callback could not be delivered at {at}: {what}: {error}."),
        count => {
            format!(" {count} callbacks could not be delivered, the last one at {at}: {what}: {error}.")
        }
    }
}

fn in_progress(story: &Story<'_>) -> String {
    let since = story.run.started_at.unwrap_or(story.run.created_at);
    let mut summary = format!("has been running since {}.{}", story.moment(since), open(story));
    if let Some(first) = first_to_fail(story).filter(|_| story.run.failures > 0) {
        summary += &format!(" It will end as failed, since `{}` failed.", story.name(first));
    }
    if let Some(end) = other_runs::times_out_at(story) {
        summary += &format!(" It times out at {} (`timeout_seconds`).", story.moment(end));
    }
    summary
}

/// Describes what the run waits for now.
fn open(story: &Story<'_>) -> String {
    let busy = story.in_state(|state| !state.is_final() && state != TaskState::Pending);
    let pending = story.in_state(|state| state == TaskState::Pending).len();
    let then = match pending {
        0 => String::new(),
        1 => "; 1 task has not started".to_owned(),
        _ => format!("; {pending} tasks have not started"),
    };
    match busy.as_slice() {
        [] => format!(" None of its tasks is active{then}."),
        busy => format!(" It waits for {}{then}.", story.names_and_states(busy)),
    }
}

fn has_failed(story: &Story<'_>) -> String {
    let at = ended_at(story);
    if let Some(event) = story.timeout_event() {
        let limit = &event.data["timeout_seconds"];
        return format!(
            "failed{at}, since it exceeded its timeout_seconds of {limit}: of {}.",
            tallies(story)
        );
    }
    let Some(first) = first_to_fail(story) else {
        return format!("failed{at}: of {}.", tallies(story));
    };
    let others = story.in_state(|state| state == TaskState::Failed).len() - 1;
    let others = match others {
        0 => String::new(),
        _ => format!(" {} failed, too.", words::tasks(others)),
    };
    let (name, error, followed) =
        (story.name(first), ended::failure_and_end(story, first), ended::what_followed(story, first));
    format!("failed{at}, since `{name}` failed: {error}.{followed}{others}")
}

fn was_cancelled(story: &Story<'_>) -> String {
    let cancelled = story.in_state(|state| state == TaskState::Cancelled);
    let (by, reason) = cancelled.first().map_or((None, None), |task| ended::cancellation(story, *task));
    let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("was cancelled{by}{}{reason}. Of {}.", ended_at(story), tallies(story))
}

/// The failed task that came first; one that may fail only where no other did.
pub(super) fn first_to_fail(story: &Story<'_>) -> Option<TaskIndex> {
    let failed = story.in_state(|state| state == TaskState::Failed);
    let order = |task: &TaskIndex| (story.spec(*task).allow_failure, story.tasks[task].finished_at, *task);
    failed.into_iter().min_by_key(order)
}

fn ended_at(story: &Story<'_>) -> String {
    let Some(end) = story.run.finished_at else { return String::new() };
    let took = story.run.started_at.map(|start| format!(", after {}", words::span(end - start)));
    format!(" at {}{}", story.moment(end), took.unwrap_or_default())
}

/// How many tasks are in which state.
fn tallies(story: &Story<'_>) -> String {
    let tally = |(state, count): (TaskState, u32)| format!("{count} {}", words::state(state));
    let removed = story.run.counts.of(TaskState::Removed);
    let (own, total) = (story.graph.len(), story.run.counts.total() - removed);
    let present = story.run.counts.present().filter(|(state, _)| *state != TaskState::Removed);
    let mut all = words::tasks(own as usize);
    if total > own {
        all += &format!(" and {} of fan-outs", words::children(total - own));
    }
    format!("its {all}, {}", words::list(present.map(tally)))
}

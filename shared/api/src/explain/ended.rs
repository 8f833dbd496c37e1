//! Tasks that ended: how, and what led to it and followed from it.

use model::{EventKind, Task, TaskIndex, TaskKind};
use serde_json::{Value, json};

use super::{Explained, Story, skipped, words};

/// A task that a person marked.
fn marked(story: &Story<'_>, task: &Task) -> Option<Explained> {
    let event = story.done_to(task, EventKind::TaskMarked)?;
    let because = format!("It was marked as {} by {}.", task.state.name(), story.actor(event));
    Some(Explained::new(because, json!({"by": event.actor, "reason": event.data["reason"]})))
}

pub(super) fn succeeded(story: &Story<'_>, task: &Task) -> Explained {
    if let Some(marked) = marked(story, task) {
        return marked;
    }
    let finished = task.finished_at.unwrap_or(task.since);
    let took = task.started_at.map(|started| format!(" It took {}.", words::span(finished - started)));
    let choice = choice_of_switch(story, task).map(|choice| format!(" As a switch, {choice}."));
    let because = format!(
        "It succeeded at {}, on attempt {}.{}{}",
        story.moment(finished),
        task.attempt,
        took.unwrap_or_default(),
        choice.unwrap_or_default()
    );
    let why = story.data(task.index, EventKind::TaskSucceeded);
    Explained::new(because, if why.is_object() { why.clone() } else { json!({}) })
}

fn choice_of_switch(story: &Story<'_>, task: &Task) -> Option<String> {
    let is_switch = story.spec(task.index).kind == TaskKind::Switch;
    is_switch.then(|| skipped::choice(story, task.index))?.map(|choice| choice.describe())
}

pub(super) fn failed(story: &Story<'_>, task: &Task) -> Explained {
    if let Some(marked) = marked(story, task) {
        return Explained { because: marked.because + &what_followed(story, task.index), ..marked };
    }
    let mut because = format!("It failed: {}.", failure_and_end(story, task.index));
    if story.spec(task.index).allow_failure {
        because += " The run may succeed all the same: `allow_failure` is set.";
    }
    because += &what_followed(story, task.index);
    let kept = story.kept_from_running_by(task.index);
    let more = kept.len().saturating_sub(super::MAX_LISTED);
    let details = json!({
        "attempts": story.attempts(task.index), "kept_from_running": story.states(kept), "more": more,
    });
    Explained::new(because, details)
}

/// The error of a failed task, how often it was tried, and why not again.
pub(super) fn failure_and_end(story: &Story<'_>, task: TaskIndex) -> String {
    let error = story.failure(task).map_or_else(|| "no reason was given".into(), words::failure);
    let times = words::times(story.tasks.get(&task).map_or(1, |task| task.tries()));
    match story.data(task, EventKind::TaskFailed)["reason"].as_str() {
        Some(reason) => format!("{error}. It was tried {times}: {reason}"),
        None => format!("{error}. It was tried {times}"),
    }
}

pub(super) fn what_followed(story: &Story<'_>, task: TaskIndex) -> String {
    match story.kept_from_running_by(task).as_slice() {
        [] => String::new(),
        kept => format!(" {} could not run because of it.", story.names(kept)),
    }
}

pub(super) fn upstream_failed(story: &Story<'_>, task: &Task) -> Explained {
    let rule = words::rule(story.spec(task.index).trigger_rule);
    let rule = rule.map(|rule| format!(" {rule}")).unwrap_or_default();
    if let Some((because, details)) = came_too_late(story, task) {
        return Explained::new(because, details);
    }
    let Some(origin) = story.first_failed_above(task.index) else {
        return Explained::new(format!("Something that it depends on failed.{rule}"), json!({}));
    };
    let error = story.failure(origin).map_or_else(|| "no reason was given".into(), words::failure);
    let at = story.moment(story.tasks[&origin].since);
    let name = story.name(origin);
    let because = format!("It could not run, since `{name}` failed at {at}: {error}.{rule}");
    let failure = story.failure(origin).map(|failure| json!(failure));
    Explained::new(because, json!({"failed": name, "error": failure}))
}

/// Why a task cannot begin any more, where its run took too long.
fn came_too_late(story: &Story<'_>, task: &Task) -> Option<(String, Value)> {
    let event = story.timeout_event().filter(|event| task.since >= event.at)?;
    let limit = &event.data["timeout_seconds"];
    let because = format!(
        "It had not started when the run exceeded its timeout_seconds of {limit}, at {}.",
        story.moment(event.at)
    );
    Some((because, json!({"timeout_seconds": limit, "at": event.at})))
}

pub(super) fn cancelled(story: &Story<'_>, task: &Task) -> Explained {
    let at = story.moment(task.since);
    let (by, reason) = cancellation(story, task.index);
    let because = match &reason {
        Some(reason) => format!("{} cancelled it at {at}: {reason}.", by.unwrap_or("Ebbflow")),
        None => format!("{} cancelled it at {at}, without a reason.", by.unwrap_or("Ebbflow")),
    };
    Explained::new(because, json!({"by": by, "reason": reason}))
}

/// Who cancelled a task, and why.
pub(super) fn cancellation<'a>(story: &'a Story<'_>, task: TaskIndex) -> (Option<&'a str>, Option<String>) {
    let event = story.last(task, EventKind::TaskCancelled);
    let by = event.and_then(|event| event.actor.as_deref());
    let reason = event.and_then(|event| event.data["reason"].as_str()).map(words::quote);
    (by, reason)
}

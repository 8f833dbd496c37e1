//! Tasks that have not ended: what each waits for.

use chrono::TimeDelta;
use model::{EventKind, Instant, Limit, Pacing, RunState, Task, TaskIndex};
use read::SlotWait;
use serde_json::{Value, json};

use super::{Explained, MAX_LISTED, Story, fan_out, other_runs, words};

pub(super) fn pending(story: &Story<'_>, task: &Task) -> Explained {
    if let Some(child) = task.child {
        return fan_out::before_its_turn(story, child);
    }
    let open: Vec<TaskIndex> =
        story.parents(task.index).filter(|parent| !story.state(*parent).is_final()).collect();
    let rule = story.spec(task.index).trigger_rule;
    let mut because = match open.as_slice() {
        [] if story.run.waiting => "It could start, but the run waits for its concurrency group.".to_owned(),
        [] if story.run.state == RunState::Paused => "It could start, but the run is paused.".to_owned(),
        [] => "All its dependencies have ended; the next recheck of the run decides what it does.".to_owned(),
        open => format!("It waits for {}.", story.names_and_states(open)),
    };
    because.extend(words::rule(rule).map(|rule| format!(" {rule}")));
    because.extend(fan_out::fan_in(story, task));
    let cleared = story.done_to(task, EventKind::TaskCleared);
    because.extend(cleared.map(|event| format!(" It was cleared by {}.", story.actor(event))));
    let more = open.len().saturating_sub(MAX_LISTED);
    Explained::new(because, json!({"waits_for": story.states(open), "more": more, "trigger_rule": rule}))
}

pub(super) fn queued(story: &Story<'_>, task: &Task) -> Explained {
    let since = story.moment(task.since);
    let attempt = task.attempt;
    if story.run.state == RunState::Paused {
        let because = format!("It has been ready since {since}, but the run is paused.");
        return Explained::new(because, json!({"attempt": attempt}));
    }
    let Some(wait) = story.around.slot_waits.get(&task.index).filter(|wait| !wait.granted) else {
        let because = format!("It has been ready since {since} and starts at once.");
        return Explained::new(because, json!({"attempt": attempt}));
    };
    if let Limit::Breaker(..) = wait.limit {
        return behind_breaker(story, task, wait);
    }
    let because = format!(
        "It has been ready since {since} and waits for a slot: {} has {} of {} taken, and {}.",
        words::limit(&wait.limit),
        wait.used,
        wait.slots.map_or_else(|| "any number".to_owned(), |slots| slots.to_string()),
        words::ahead(wait.ahead as usize),
    );
    let name = Some(wait.limit.name()).filter(|name| !name.is_empty()).unwrap_or("own");
    let command = format!("ebb limits show {} {}", wait.limit.kind(), words::shell(name));
    let because = format!("{because} `{command}` lists the tasks that have them.");
    let details = json!({
        "attempt": attempt, "limit": wait.limit.kind(), "name": wait.limit.name(),
        "slots": wait.slots, "used": wait.used, "ahead": wait.ahead, "command": command,
    });
    Explained::new(because, details)
}

/// Attempts at the task failed so often that none begins for a while.
fn behind_breaker(story: &Story<'_>, task: &Task, wait: &SlotWait) -> Explained {
    let (since, breaker) = (story.moment(task.since), words::limit(&wait.limit));
    let state = match wait.until {
        Some(until) => format!("is open until {}", story.moment(until)),
        None => "waits for the result of a probe".to_owned(),
    };
    let command = "ebb breakers";
    let because = format!(
        "It has been ready since {since}, but {breaker} {state}, since attempts failed repeatedly; {}. `{command}` says why.",
        words::ahead(wait.ahead as usize),
    );
    let details = json!({
        "attempt": task.attempt, "limit": wait.limit.kind(), "name": wait.limit.name(),
        "ahead": wait.ahead, "command": command,
    });
    Explained::new(because, details).until(wait.until)
}

pub(super) fn dispatched(story: &Story<'_>, task: &Task) -> Explained {
    let spec = story.spec(task.index);
    let (queue, seconds) = (&spec.queue, spec.dispatch_timeout());
    let (attempt, since) = (attempt_of(story, task), story.moment(task.since));
    let lack = story.around.served.as_ref().and_then(|served| spec.lack(story.run.tenant, served));
    let none = lack.as_ref().map(|lack| format!(", but {lack}")).unwrap_or_default();
    let mut because =
        format!("It has waited for a worker of the queue `{queue}` since {since}{none}: {attempt}.");
    let until = task.since + TimeDelta::seconds(seconds.into());
    let fails = lack.is_some() || spec.dispatch_timeout_seconds.is_some();
    because += &match (fails, until <= story.now) {
        (true, false) => format!(" If none takes it until {}, it fails as `not_taken`.", story.moment(until)),
        (true, true) => " It fails as `not_taken` with the next recheck of the run.".to_owned(),
        (false, true) => " It waits on while workers serve the queue.".to_owned(),
        (false, false) => String::new(),
    };
    let mut details = json!({"queue": queue, "attempt": task.attempt, "dispatch_timeout_seconds": seconds});
    if let Some(lack) = lack {
        details["lacks"] = json!(lack);
    }
    Explained::new(because, details)
}

pub(super) fn running(story: &Story<'_>, task: &Task) -> Explained {
    let worker = task.worker.map_or_else(|| "A worker".to_owned(), |worker| format!("Worker {worker}"));
    let since = task.started_at.unwrap_or(task.since);
    let until = since + TimeDelta::seconds(story.spec(task.index).timeout_seconds.into());
    let because = format!(
        "{worker} has held {} since {}. The attempt times out at {}.",
        attempt_of(story, task),
        story.moment(since),
        story.moment(until)
    );
    Explained::new(because, json!({"worker": task.worker, "attempt": task.attempt})).until(Some(until))
}

pub(super) fn sleeping(story: &Story<'_>, task: &Task) -> Explained {
    if let Some(fan) = task.fan {
        return fan_out::fanned_out(story, task, fan);
    }
    let asked = story.last(task.index, EventKind::TaskWaiting);
    let slept = story.last(task.index, EventKind::TaskSleeping);
    let data = asked.or(slept).map_or(&Value::Null, |event| &event.data);
    if let Some(explained) = other_runs::awaiting_other_run(story, task, data) {
        return explained;
    }
    let until = serde_json::from_value(data["until"].clone()).ok();
    if let Some(pacing) = story.spec(task.index).pacing {
        return polling(story, task, &pacing, until);
    }
    match (asked, data["signal"].as_str()) {
        (Some(_), Some(signal)) => awaiting_signal(story, task, signal, until),
        (Some(_), None) => awaiting_approval(story, task, until),
        (None, _) => asleep(until.map(|until| story.moment(until))).until(until),
    }
}

fn polling(story: &Story<'_>, task: &Task, pacing: &Pacing, until: Option<Instant>) -> Explained {
    let next = pacing.next_poll(task.started_at.unwrap_or(task.since), story.now);
    let mut because = format!(
        "It has polled since {}, polls again at {}{}.",
        story.moment(task.since),
        story.moment(next),
        deadline(story, until)
    );
    let failed =
        task.failure.as_ref().map(|failure| format!(" Its last poll failed: {}.", words::failure(failure)));
    because.extend(failed);
    Explained::new(because, json!({"next_poll": next})).until(until)
}

fn asleep(until: Option<String>) -> Explained {
    let until = until.map(|until| format!(" until {until}")).unwrap_or_default();
    Explained::new(format!("It sleeps{until}."), json!({}))
}

fn awaiting_signal(story: &Story<'_>, task: &Task, signal: &str, until: Option<Instant>) -> Explained {
    let command = format!("ebb signal {} {}", story.run.id, words::shell(signal));
    let because = format!(
        "It has waited for the signal `{signal}` since {}{}. Send it with `{command}`.",
        story.moment(task.since),
        deadline(story, until)
    );
    Explained::new(because, json!({"signal": signal, "command": command})).until(until)
}

fn awaiting_approval(story: &Story<'_>, task: &Task, until: Option<Instant>) -> Explained {
    let spec = story.spec(task.index);
    let command = format!("ebb approve {} {}", story.run.id, words::shell(&story.name(task.index)));
    let approvers = spec.config["approvers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let approvers: Vec<String> = approvers.map(str::to_owned).collect();
    let by = match approvers.as_slice() {
        [] => String::new(),
        [one] => format!(" by {one}"),
        several => format!(" by one of {}", words::list(several.iter().cloned())),
    };
    let because = format!(
        "It has waited for approval{by} since {}{}. Approve it with `{command}`.",
        story.moment(task.since),
        deadline(story, until)
    );
    Explained::new(because, json!({"approvers": approvers, "command": command})).until(until)
}

pub(super) fn up_for_retry(story: &Story<'_>, task: &Task) -> Explained {
    let retrying = story.last(task.index, EventKind::TaskRetrying);
    let delay = |event: &model::Event| event.data["delay_ms"].as_i64().map(TimeDelta::milliseconds);
    let until = retrying.and_then(|event| Some(event.at + delay(event)?));
    let error = story.failure(task.index).map_or_else(|| "no reason was given".into(), words::failure);
    let when = until.map(|until| format!(" at {}", story.moment(until))).unwrap_or_default();
    let allowed = story.attempts_allowed(task);
    let because =
        format!("Attempt {} of {allowed} failed: {error}. The next one starts{when}.", task.attempt);
    Explained::new(because, json!({"attempts": story.attempts(task.index)})).until(until)
}

fn attempt_of(story: &Story<'_>, task: &Task) -> String {
    format!("attempt {} of {}", task.attempt, story.attempts_allowed(task))
}

fn deadline(story: &Story<'_>, until: Option<Instant>) -> String {
    until.map(|until| format!(" and times out at {}", story.moment(until))).unwrap_or_default()
}

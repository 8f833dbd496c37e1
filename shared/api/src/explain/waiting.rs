//! Tasks that have not ended: what each waits for.

use chrono::TimeDelta;
use model::{EventKind, Instant, Pacing, RunState, Task, TaskIndex};
use serde_json::{Value, json};

use super::{Explained, MAX_LISTED, Story, words};

impl Story<'_> {
    pub(super) fn pending(&self, task: &Task) -> Explained {
        if let Some(child) = task.child {
            return self.before_its_turn(child);
        }
        let open: Vec<TaskIndex> =
            self.parents(task.index).filter(|parent| !self.state(*parent).is_final()).collect();
        let rule = self.spec(task.index).trigger_rule;
        let mut because = match open.as_slice() {
            [] if self.run.waiting => {
                "It could start, but the run waits for its concurrency group.".to_owned()
            }
            [] if self.run.state == RunState::Paused => "It could start, but the run is paused.".to_owned(),
            [] => "All its dependencies have ended; the next recheck of the run decides what it does."
                .to_owned(),
            open => format!("It waits for {}.", self.names_and_states(open)),
        };
        because.extend(words::rule(rule).map(|rule| format!(" {rule}")));
        because.extend(self.fan_in(task));
        let cleared = self.done_to(task, EventKind::TaskCleared);
        because.extend(cleared.map(|event| format!(" It was cleared by {}.", self.actor(event))));
        let more = open.len().saturating_sub(MAX_LISTED);
        Explained::new(because, json!({"waits_for": self.states(open), "more": more, "trigger_rule": rule}))
    }

    pub(super) fn queued(&self, task: &Task) -> Explained {
        let since = self.moment(task.since);
        let attempt = task.attempt;
        if self.run.state == RunState::Paused {
            let because = format!("It has been ready since {since}, but the run is paused.");
            return Explained::new(because, json!({"attempt": attempt}));
        }
        let Some(wait) = self.around.slot_waits.get(&task.index).filter(|wait| !wait.granted) else {
            let because = format!("It has been ready since {since} and starts at once.");
            return Explained::new(because, json!({"attempt": attempt}));
        };
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

    pub(super) fn dispatched(&self, task: &Task) -> Explained {
        let queue = &self.spec(task.index).queue;
        let (attempt, since) = (self.attempt_of(task), self.moment(task.since));
        let because = format!("It has waited for a worker of the queue `{queue}` since {since}: {attempt}.");
        Explained::new(because, json!({"queue": queue, "attempt": task.attempt}))
    }

    pub(super) fn running(&self, task: &Task) -> Explained {
        let worker = task.worker.map_or_else(|| "A worker".to_owned(), |worker| format!("Worker {worker}"));
        let since = task.started_at.unwrap_or(task.since);
        let until = since + TimeDelta::seconds(self.spec(task.index).timeout_seconds.into());
        let because = format!(
            "{worker} has held {} since {}. The attempt times out at {}.",
            self.attempt_of(task),
            self.moment(since),
            self.moment(until)
        );
        Explained::new(because, json!({"worker": task.worker, "attempt": task.attempt})).until(Some(until))
    }

    pub(super) fn sleeping(&self, task: &Task) -> Explained {
        if let Some(fan) = task.fan {
            return self.fanned_out(task, fan);
        }
        let asked = self.last(task.index, EventKind::TaskWaiting);
        let slept = self.last(task.index, EventKind::TaskSleeping);
        let data = asked.or(slept).map_or(&Value::Null, |event| &event.data);
        if let Some(explained) = self.elsewhere(task, data) {
            return explained;
        }
        let until = serde_json::from_value(data["until"].clone()).ok();
        if let Some(pacing) = self.spec(task.index).pacing {
            return self.looking(task, &pacing, until);
        }
        match (asked, data["signal"].as_str()) {
            (Some(_), Some(signal)) => self.awaiting_signal(task, signal, until),
            (Some(_), None) => self.awaiting_approval(task, until),
            (None, _) => Self::asleep(until.map(|until| self.moment(until))).until(until),
        }
    }

    fn looking(&self, task: &Task, pacing: &Pacing, until: Option<Instant>) -> Explained {
        let next = pacing.next_poll(task.started_at.unwrap_or(task.since), self.now);
        let mut because = format!(
            "It has polled since {}, polls again at {}{}.",
            self.moment(task.since),
            self.moment(next),
            self.deadline(until)
        );
        let failed = task
            .failure
            .as_ref()
            .map(|failure| format!(" Its last poll failed: {}.", words::failure(failure)));
        because.extend(failed);
        Explained::new(because, json!({"next_poll": next})).until(until)
    }

    fn asleep(until: Option<String>) -> Explained {
        let until = until.map(|until| format!(" until {until}")).unwrap_or_default();
        Explained::new(format!("It sleeps{until}."), json!({}))
    }

    fn awaiting_signal(&self, task: &Task, signal: &str, until: Option<Instant>) -> Explained {
        let command = format!("ebb signal {} {}", self.run.id, words::shell(signal));
        let because = format!(
            "It has waited for the signal `{signal}` since {}{}. Send it with `{command}`.",
            self.moment(task.since),
            self.deadline(until)
        );
        Explained::new(because, json!({"signal": signal, "command": command})).until(until)
    }

    fn awaiting_approval(&self, task: &Task, until: Option<Instant>) -> Explained {
        let spec = self.spec(task.index);
        let command = format!("ebb approve {} {}", self.run.id, words::shell(&self.name(task.index)));
        let approvers = spec.config["approvers"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let approvers: Vec<String> = approvers.map(str::to_owned).collect();
        let by = match approvers.as_slice() {
            [] => String::new(),
            [one] => format!(" by {one}"),
            several => format!(" by one of {}", words::list(several.iter().cloned())),
        };
        let because = format!(
            "It has waited for approval{by} since {}{}. Approve it with `{command}`.",
            self.moment(task.since),
            self.deadline(until)
        );
        Explained::new(because, json!({"approvers": approvers, "command": command})).until(until)
    }

    pub(super) fn up_for_retry(&self, task: &Task) -> Explained {
        let retrying = self.last(task.index, EventKind::TaskRetrying);
        let delay = |event: &model::Event| event.data["delay_ms"].as_i64().map(TimeDelta::milliseconds);
        let until = retrying.and_then(|event| Some(event.at + delay(event)?));
        let error = self.failure(task.index).map_or_else(|| "no reason was given".into(), words::failure);
        let when = until.map(|until| format!(" at {}", self.moment(until))).unwrap_or_default();
        let allowed = self.attempts_allowed(task);
        let because =
            format!("Attempt {} of {allowed} failed: {error}. The next one starts{when}.", task.attempt);
        Explained::new(because, json!({"attempts": self.attempts(task.index)})).until(until)
    }

    fn attempt_of(&self, task: &Task) -> String {
        format!("attempt {} of {}", task.attempt, self.attempts_allowed(task))
    }

    fn deadline(&self, until: Option<Instant>) -> String {
        until.map(|until| format!(" and times out at {}", self.moment(until))).unwrap_or_default()
    }

    pub(super) fn moment(&self, at: Instant) -> String {
        words::moment(at, self.now)
    }
}

//! Tasks that ended: how, and what led to it and followed from it.

use model::{EventKind, Task, TaskIndex, TaskKind};
use serde_json::{Value, json};

use super::{Explained, Story, words};

impl Story<'_> {
    /// A task that a person marked.
    fn marked(&self, task: &Task) -> Option<Explained> {
        let event = self.done_to(task, EventKind::TaskMarked)?;
        let because = format!("It was marked as {} by {}.", task.state.name(), self.actor(event));
        Some(Explained::new(because, json!({"by": event.actor, "reason": event.data["reason"]})))
    }

    pub(super) fn succeeded(&self, task: &Task) -> Explained {
        if let Some(marked) = self.marked(task) {
            return marked;
        }
        let finished = task.finished_at.unwrap_or(task.since);
        let took = task.started_at.map(|started| format!(" It took {}.", words::span(finished - started)));
        let choice = self.choice_of_switch(task).map(|choice| format!(" As a switch, {choice}."));
        let because = format!(
            "It succeeded at {}, on attempt {}.{}{}",
            self.moment(finished),
            task.attempt,
            took.unwrap_or_default(),
            choice.unwrap_or_default()
        );
        let why = self.data(task.index, EventKind::TaskSucceeded);
        Explained::new(because, if why.is_object() { why.clone() } else { json!({}) })
    }

    fn choice_of_switch(&self, task: &Task) -> Option<String> {
        let is_switch = self.spec(task.index).kind == TaskKind::Switch;
        is_switch.then(|| self.choice(task.index))?.map(|choice| choice.describe())
    }

    pub(super) fn failed(&self, task: &Task) -> Explained {
        if let Some(marked) = self.marked(task) {
            return Explained { because: marked.because + &self.what_followed(task.index), ..marked };
        }
        let mut because = format!("It failed: {}.", self.failure_and_end(task.index));
        if self.spec(task.index).allow_failure {
            because += " The run may succeed all the same: `allow_failure` is set.";
        }
        because += &self.what_followed(task.index);
        let kept = self.kept_from_running_by(task.index);
        let more = kept.len().saturating_sub(super::MAX_LISTED);
        let details = json!({
            "attempts": self.attempts(task.index), "kept_from_running": self.states(kept), "more": more,
        });
        Explained::new(because, details)
    }

    /// The error of a failed task, how often it was tried, and why not again.
    pub(super) fn failure_and_end(&self, task: TaskIndex) -> String {
        let error = self.failure(task).map_or_else(|| "no reason was given".into(), words::failure);
        let times = words::times(self.tasks.get(&task).map_or(1, |task| task.tries()));
        match self.data(task, EventKind::TaskFailed)["reason"].as_str() {
            Some(reason) => format!("{error}. It was tried {times}: {reason}"),
            None => format!("{error}. It was tried {times}"),
        }
    }

    pub(super) fn what_followed(&self, task: TaskIndex) -> String {
        match self.kept_from_running_by(task).as_slice() {
            [] => String::new(),
            kept => format!(" {} could not run because of it.", self.names(kept)),
        }
    }

    pub(super) fn upstream_failed(&self, task: &Task) -> Explained {
        let rule = words::rule(self.spec(task.index).trigger_rule);
        let rule = rule.map(|rule| format!(" {rule}")).unwrap_or_default();
        if let Some((because, details)) = self.came_too_late(task) {
            return Explained::new(because, details);
        }
        let Some(origin) = self.first_failed_above(task.index) else {
            return Explained::new(format!("Something that it depends on failed.{rule}"), json!({}));
        };
        let error = self.failure(origin).map_or_else(|| "no reason was given".into(), words::failure);
        let at = self.moment(self.tasks[&origin].since);
        let name = self.name(origin);
        let because = format!("It could not run, since `{name}` failed at {at}: {error}.{rule}");
        let failure = self.failure(origin).map(|failure| json!(failure));
        Explained::new(because, json!({"failed": name, "error": failure}))
    }

    /// Why a task cannot begin any more, where its run took too long.
    fn came_too_late(&self, task: &Task) -> Option<(String, Value)> {
        let event = self.end_of_time().filter(|event| task.since >= event.at)?;
        let limit = &event.data["timeout_seconds"];
        let because = format!(
            "It had not started when the run exceeded its timeout_seconds of {limit}, at {}.",
            self.moment(event.at)
        );
        Some((because, json!({"timeout_seconds": limit, "at": event.at})))
    }

    pub(super) fn cancelled(&self, task: &Task) -> Explained {
        let at = self.moment(task.since);
        let (by, reason) = self.cancellation(task.index);
        let because = match &reason {
            Some(reason) => format!("{} cancelled it at {at}: {reason}.", by.unwrap_or("Ebbflow")),
            None => format!("{} cancelled it at {at}, without a reason.", by.unwrap_or("Ebbflow")),
        };
        Explained::new(because, json!({"by": by, "reason": reason}))
    }

    /// Who cancelled a task, and why.
    pub(super) fn cancellation(&self, task: TaskIndex) -> (Option<&str>, Option<String>) {
        let event = self.last(task, EventKind::TaskCancelled);
        let by = event.and_then(|event| event.actor.as_deref());
        let reason = event.and_then(|event| event.data["reason"].as_str()).map(words::quote);
        (by, reason)
    }
}

//! A run as a whole, in a few sentences.

use model::{EventKind, RunState, TaskIndex, TaskState};

use super::{Story, words};

impl Story<'_> {
    pub(super) fn summary(&self) -> String {
        let summary = match self.run.state {
            RunState::Queued if self.run.waiting => self.waiting_for_its_turn(),
            RunState::Queued => "was created, and none of its tasks has started.".to_owned(),
            RunState::Running => self.in_progress(),
            RunState::Paused => self.paused(),
            RunState::Stalled => {
                "is stalled: it has not ended, no task can continue and none waits for anything. \
                This is a defect of Ebbflow; `ebb run evaluate` re-evaluates it, `ebb run cancel` ends it."
                    .to_owned()
            }
            RunState::Succeeded => format!("succeeded{}: of {}.", self.ended_at(), self.tallies()),
            RunState::Failed => self.has_failed(),
            RunState::Cancelled => self.was_cancelled(),
        };
        let (run, workflow) = (self.run.id, &self.run.workflow);
        let (origin, late, unheard) = (self.origin(), self.missed_deadline(), self.unheard());
        format!("Run {run} of `{workflow}` {summary}{late}{unheard}{origin}")
    }

    fn paused(&self) -> String {
        let event = self.last_of_run(EventKind::RunPaused);
        let by = event.map(|event| format!(" by {}", self.actor(event))).unwrap_or_default();
        let command = format!("ebb run resume {}", self.run.id);
        format!("was paused{by}. It starts no more tasks until it is resumed: `{command}`.{}", self.open())
    }

    fn missed_deadline(&self) -> String {
        let Some(event) = self.last_of_run(EventKind::RunMissedDeadline) else { return String::new() };
        let limit = self.graph.workflow().deadline_seconds.unwrap_or_default();
        format!(" It missed its deadline at {}: deadline_seconds is {limit}.", self.moment(event.at))
    }

    /// Callbacks that could not be delivered.
    fn unheard(&self) -> String {
        let failed = |event: &&model::Event| event.data["error"].is_string();
        let failed: Vec<&model::Event> = self.of_run(EventKind::RunCalledBack).filter(failed).collect();
        let Some(last) = failed.last() else { return String::new() };
        let text = |field: &str| words::quote(last.data[field].as_str().unwrap_or_default());
        let (what, error, at) = (text("what"), text("error"), self.moment(last.at));
        match failed.len() {
            1 => format!(" A callback could not be delivered at {at}: {what}: {error}."),
            count => {
                format!(" {count} callbacks could not be delivered, the last one at {at}: {what}: {error}.")
            }
        }
    }

    fn in_progress(&self) -> String {
        let since = self.run.started_at.unwrap_or(self.run.created_at);
        let mut summary = format!("has been running since {}.{}", self.moment(since), self.open());
        if let Some(first) = self.first_to_fail().filter(|_| self.run.failures > 0) {
            summary += &format!(" It will end as failed, since `{}` failed.", self.name(first));
        }
        if let Some(end) = self.gives_up_at() {
            summary += &format!(" It times out at {} (`timeout_seconds`).", self.moment(end));
        }
        summary
    }

    /// What the run waits for now.
    fn open(&self) -> String {
        let busy = self.in_state(|state| !state.is_final() && state != TaskState::Pending);
        let pending = self.in_state(|state| state == TaskState::Pending).len();
        let then = match pending {
            0 => String::new(),
            1 => "; 1 task has not started".to_owned(),
            _ => format!("; {pending} tasks have not started"),
        };
        match busy.as_slice() {
            [] => format!(" None of its tasks is active{then}."),
            busy => format!(" It waits for {}{then}.", self.names_and_states(busy)),
        }
    }

    fn has_failed(&self) -> String {
        let at = self.ended_at();
        if let Some(event) = self.end_of_time() {
            let limit = &event.data["timeout_seconds"];
            return format!(
                "failed{at}, since it exceeded its timeout_seconds of {limit}: of {}.",
                self.tallies()
            );
        }
        let Some(first) = self.first_to_fail() else {
            return format!("failed{at}: of {}.", self.tallies());
        };
        let others = self.in_state(|state| state == TaskState::Failed).len() - 1;
        let others = match others {
            0 => String::new(),
            _ => format!(" {} failed, too.", words::tasks(others)),
        };
        let (name, error, followed) =
            (self.name(first), self.failure_and_end(first), self.what_followed(first));
        format!("failed{at}, since `{name}` failed: {error}.{followed}{others}")
    }

    fn was_cancelled(&self) -> String {
        let cancelled = self.in_state(|state| state == TaskState::Cancelled);
        let (by, reason) = cancelled.first().map_or((None, None), |task| self.cancellation(*task));
        let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("was cancelled{by}{}{reason}. Of {}.", self.ended_at(), self.tallies())
    }

    /// The failed task that came first; one that may fail only where no other did.
    fn first_to_fail(&self) -> Option<TaskIndex> {
        let failed = self.in_state(|state| state == TaskState::Failed);
        let order = |task: &TaskIndex| (self.spec(*task).allow_failure, self.tasks[task].finished_at, *task);
        failed.into_iter().min_by_key(order)
    }

    fn ended_at(&self) -> String {
        let Some(end) = self.run.finished_at else { return String::new() };
        let took = self.run.started_at.map(|start| format!(", after {}", words::span(end - start)));
        format!(" at {}{}", self.moment(end), took.unwrap_or_default())
    }

    /// How many tasks are in which state.
    fn tallies(&self) -> String {
        let tally = |(state, count): (TaskState, u32)| format!("{count} {}", words::state(state));
        let removed = self.run.counts.of(TaskState::Removed);
        let (own, total) = (self.graph.len(), self.run.counts.total() - removed);
        let present = self.run.counts.present().filter(|(state, _)| *state != TaskState::Removed);
        let mut all = words::tasks(own as usize);
        if total > own {
            all += &format!(" and {} of fan-outs", words::children(total - own));
        }
        format!("its {all}, {}", words::list(present.map(tally)))
    }
}

//! A run as a whole, in a few sentences.

use model::{RunState, TaskIndex, TaskState};

use super::{Story, words};

impl Story<'_> {
    pub(super) fn summary(&self) -> String {
        let told = match self.run.state {
            RunState::Queued => "was created, and nothing of it has begun.".to_owned(),
            RunState::Running => self.under_way(),
            RunState::Paused => {
                format!("is paused: it begins nothing new until it is resumed.{}", self.open())
            }
            RunState::Stalled => {
                "is stalled: it has not ended, nothing of it can go on and nothing is waited for. \
                This is a defect of Ebbflow; `ebb run cancel` ends the run."
                    .to_owned()
            }
            RunState::Succeeded => format!("succeeded{}: of {}.", self.ended_at(), self.tallies()),
            RunState::Failed => self.has_failed(),
            RunState::Cancelled => self.was_cancelled(),
        };
        format!("Run {} of `{}` {told}", self.run.id, self.run.workflow)
    }

    fn under_way(&self) -> String {
        let since = self.run.started_at.unwrap_or(self.run.created_at);
        let mut told = format!("has been running since {}.{}", self.moment(since), self.open());
        if let Some(first) = self.first_to_fail().filter(|_| self.run.failures > 0) {
            told += &format!(" It will end as failed, since `{}` failed.", self.name(first));
        }
        told
    }

    /// What the run waits for now.
    fn open(&self) -> String {
        let busy = self.in_state(|state| !state.is_final() && state != TaskState::Pending);
        let pending = self.in_state(|state| state == TaskState::Pending).len();
        let then = match pending {
            0 => String::new(),
            1 => "; 1 task is yet to begin".to_owned(),
            _ => format!("; {pending} tasks are yet to begin"),
        };
        match busy.as_slice() {
            [] => format!(" None of its tasks is under way{then}."),
            busy => format!(" It waits for {}{then}.", self.names_and_states(busy)),
        }
    }

    fn has_failed(&self) -> String {
        let at = self.ended_at();
        let Some(first) = self.first_to_fail() else {
            return format!("failed{at}: of {}.", self.tallies());
        };
        let others = self.in_state(|state| state == TaskState::Failed).len() - 1;
        let others = match others {
            0 => String::new(),
            _ => format!(" {} failed, too.", words::tasks(others)),
        };
        let (name, said, followed) =
            (self.name(first), self.failure_and_end(first), self.what_followed(first));
        format!("failed{at}, since `{name}` failed: {said}.{followed}{others}")
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
        let order =
            |task: &TaskIndex| (self.graph.spec(*task).allow_failure, self.tasks[task].finished_at, *task);
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
        let all = words::tasks(self.graph.len() as usize);
        format!("its {all}, {}", words::list(self.run.counts.present().map(tally)))
    }
}

//! What could continue at once, if its message were not lost.

use model::{Instant, RunId, Task, TaskIndex, TaskKey, TaskKind, TaskState};
use store::Slots;

use crate::fault_points::now;
use crate::observer::Observer;
use crate::replay::Replay;

/// Something of a run that waits for nothing but a message: what, at which attempt.
pub(crate) type Ready = (RunId, Option<TaskIndex>, u32, &'static str);

impl Observer {
    /// When a run ended; none if it has not.
    pub(crate) fn ended_at(&self, run: RunId) -> Option<Instant> {
        self.replays.get(&run)?.run.finished_at
    }

    /// Everything that waits for nothing but a message.
    pub(crate) fn what_is_ready(&self, at: Instant) -> Vec<Ready> {
        let open = self.replays.values().filter(|replay| !replay.run.state.is_final());
        open.flat_map(|replay| self.ready_in(replay, at)).collect()
    }

    fn ready_in(&self, replay: &Replay, at: Instant) -> Vec<Ready> {
        let run = replay.run.id;
        if replay.run.waiting {
            let has_room = !self.is_group_full(replay);
            return has_room
                .then_some((run, None, 0, "waiting, with room in its concurrency group"))
                .into_iter()
                .collect();
        }
        let due = replay.timers.iter().filter(|timer| timer.wake_at <= at);
        let due = due.map(|timer| (run, timer.task, timer.attempt, "a timer that is due"));
        let tasks = replay
            .tasks
            .values()
            .filter_map(|task| Some((run, Some(task.index), task.attempt, self.why_ready(replay, task)?)));
        due.chain(tasks).collect()
    }

    fn why_ready(&self, replay: &Replay, task: &Task) -> Option<&'static str> {
        let key = TaskKey { run: replay.run.id, task: task.index };
        let spec = self.graphs[&replay.run.version].spec_at(task.index, task.child);
        let goes_on = |run: RunId| self.replays.get(&run).is_some_and(|found| !found.run.state.is_final());
        match task.state {
            TaskState::Dispatched => Some("sent to a worker"),
            TaskState::Queued => {
                let granted = now(self.memory.slot_wait(key)).unwrap().is_some_and(|line| line.granted);
                granted.then_some("granted its slots")
            }
            TaskState::Sleeping if spec.kind == TaskKind::Workflow => {
                let child = RunId::of_task(key, task.attempt);
                (!goes_on(child)).then_some("waits for a run that does not go on")
            }
            TaskState::Sleeping if spec.global.is_some() => {
                let name = spec.global.as_ref().map(|global| &global.name);
                let executes = |other: &Replay| {
                    let graph = &self.graphs[&other.run.version];
                    other.run.tenant == replay.run.tenant
                        && other.tasks.values().filter(|task| is_executed(task)).any(|task| {
                            let owner = graph.spec_at(task.index, task.child);
                            owner.global.as_ref().map(|global| &global.name) == name
                                && owner.config == spec.config
                        })
                };
                let owned = self.replays.values().any(executes);
                (!owned).then_some("waits for a shared task that no run executes")
            }
            _ => None,
        }
    }

    fn is_group_full(&self, waiting: &Replay) -> bool {
        let graph = &self.graphs[&waiting.run.version];
        let limit = graph.workflow().concurrency.as_ref().map_or(u32::MAX, |limits| limits.limit);
        let goes_on = |replay: &&Replay| {
            let (one, other) = (&replay.run, &waiting.run);
            (one.tenant, &one.workflow, &one.concurrency_group)
                == (other.tenant, &other.workflow, &other.concurrency_group)
                && !one.waiting
                && !one.state.is_final()
        };
        self.replays.values().filter(goes_on).count() >= limit as usize
    }
}

fn is_executed(task: &Task) -> bool {
    matches!(
        task.state,
        TaskState::Queued | TaskState::Dispatched | TaskState::Running | TaskState::UpForRetry
    )
}

//! The phases of a task, computed from its run's events.

use chrono::TimeDelta;
use model::{Event, EventKind, Instant, Task, TaskState};

/// What a task is about for a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Waits for the tasks it depends on.
    Upstream,
    /// Waits for a slot of a limit.
    Limit,
    /// Has its slots; its message is on its way to a worker.
    Queue,
    /// A worker has claimed it and prepares to run it.
    Start,
    Work,
    /// Sleeps, waits for a person, or for the delay before its next attempt.
    Rest,
}

impl Phase {
    /// The name used in the style sheet.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Upstream => "upstream",
            Self::Limit => "limit",
            Self::Queue => "queue",
            Self::Start => "start",
            Self::Work => "work",
            Self::Rest => "rest",
        }
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Upstream => "waited for upstream",
            Self::Limit => "waited for a slot",
            Self::Queue => "was in the queue",
            Self::Start => "was starting",
            Self::Work => "ran",
            Self::Rest => "slept or waited",
        }
    }
}

/// A while in one phase.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Stretch {
    pub(crate) phase: Phase,
    pub(crate) attempt: u32,
    pub(crate) from: Instant,
    pub(crate) to: Instant,
    /// Whether an attempt failed at its end.
    pub(crate) failed: bool,
}

/// The phases of one task, in order; `events` are those of this task.
pub(crate) fn of_task(task: &Task, events: &[&Event], created: Instant, now: Instant) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    let (mut phase, mut from, mut attempt) = (Some(Phase::Upstream), created, 0);
    for event in events {
        let Some(next) = after(event.kind) else { continue };
        if let Some(phase) = phase {
            let failed = matches!(event.kind, EventKind::TaskFailed | EventKind::TaskRetrying);
            stretches.push(Stretch { phase, attempt, from, to: event.at, failed });
        }
        (phase, from, attempt) = (next, event.at, event.attempt.max(attempt));
    }
    if let Some(phase) = phase.filter(|_| !task.state.is_final()) {
        stretches.push(Stretch { phase, attempt, from, to: now.max(from), failed: false });
    }
    divide_last(&mut stretches, task);
    stretches.retain(|stretch| stretch.to - stretch.from > TimeDelta::zero() || stretch.phase == Phase::Work);
    stretches
}

/// The phase that an event begins: `Some(None)` ends the task, `None` changes nothing.
fn after(kind: EventKind) -> Option<Option<Phase>> {
    use EventKind as E;
    Some(match kind {
        E::TaskQueued => Some(Phase::Limit),
        E::TaskDispatched | E::TaskRedispatched | E::TaskHandedBack => Some(Phase::Queue),
        E::TaskStarted | E::TaskFannedOut => Some(Phase::Work),
        E::TaskSleeping | E::TaskWaiting | E::TaskRetrying => Some(Phase::Rest),
        E::TaskCleared => Some(Phase::Upstream),
        E::TaskSucceeded | E::TaskFailed | E::TaskUpstreamFailed | E::TaskSkipped | E::TaskCancelled => None,
        _ => return None,
    })
}

/// Divides the last stretch at the instant the work began. No event records that instant, but the row of a task has it
/// once its last attempt has ended. Before it, a worker prepared the attempt; an unclaimed task was in the queue.
fn divide_last(stretches: &mut Vec<Stretch>, task: &Task) {
    let ended = matches!(task.state, TaskState::Succeeded | TaskState::Failed);
    let (Some(last), Some(started)) = (stretches.last_mut(), task.started_at) else { return };
    if !ended || !(last.from..=last.to).contains(&started) {
        return;
    }
    let before = match last.phase {
        Phase::Queue => Phase::Queue,
        Phase::Work => Phase::Start,
        _ => return,
    };
    let work = Stretch { phase: Phase::Work, from: started, ..last.clone() };
    *last = Stretch { phase: before, to: started, failed: false, ..last.clone() };
    stretches.push(work);
}

#[cfg(test)]
mod tests {
    use model::TaskIndex;
    use serde_json::Value;

    use super::*;

    fn at(second: i64) -> Instant {
        Instant::from_timestamp(1_800_000_000 + second, 0).unwrap()
    }

    fn event(second: i64, kind: EventKind, attempt: u32) -> Event {
        let task = Some(TaskIndex(0));
        Event { at: at(second), kind, task, child: None, attempt, actor: None, data: Value::Null }
    }

    fn phases(task: &Task, events: &[Event]) -> Vec<(Phase, u32, i64)> {
        let events: Vec<&Event> = events.iter().collect();
        let stretches = of_task(task, &events, at(0), at(100));
        let long = |stretch: &Stretch| (stretch.to - stretch.from).num_seconds();
        stretches.iter().map(|stretch| (stretch.phase, stretch.attempt, long(stretch))).collect()
    }

    #[test]
    fn each_wait_has_its_phase_and_each_attempt_its_own() {
        use EventKind as E;
        let task = Task { state: TaskState::Succeeded, ..Task::pending(TaskIndex(0), at(0)) };
        let events = [
            event(2, E::TaskQueued, 0),
            event(5, E::TaskDispatched, 1),
            event(6, E::TaskStarted, 1),
            event(16, E::TaskRetrying, 1),
            event(26, E::TaskDispatched, 2),
            event(27, E::TaskStarted, 2),
            event(30, E::TaskSucceeded, 2),
        ];
        use Phase as P;
        let expected = [
            (P::Upstream, 0, 2),
            (P::Limit, 0, 3),
            (P::Queue, 1, 1),
            (P::Work, 1, 10),
            (P::Rest, 1, 10),
            (P::Queue, 2, 1),
            (P::Work, 2, 3),
        ];
        assert_eq!(phases(&task, &events), expected);
    }

    #[test]
    fn an_unfinished_phase_lasts_until_now() {
        let task = Task::pending(TaskIndex(0), at(0));
        assert_eq!(phases(&task, &[]), [(Phase::Upstream, 0, 100)]);
        let running = Task { state: TaskState::Running, ..task };
        let events = [event(10, EventKind::TaskDispatched, 1), event(20, EventKind::TaskStarted, 1)];
        assert_eq!(phases(&running, &events)[2], (Phase::Work, 1, 80));
    }

    #[test]
    fn a_task_that_nobody_claimed_began_when_its_row_says() {
        let task = Task {
            state: TaskState::Succeeded,
            started_at: Some(at(3)),
            finished_at: Some(at(4)),
            ..Task::pending(TaskIndex(0), at(0))
        };
        let events = [event(1, EventKind::TaskDispatched, 1), event(4, EventKind::TaskSucceeded, 1)];
        assert_eq!(
            phases(&task, &events),
            [(Phase::Upstream, 0, 1), (Phase::Queue, 1, 2), (Phase::Work, 1, 1)]
        );
    }

    #[test]
    fn preparing_is_separate_from_waiting_and_working() {
        let ended = Task { state: TaskState::Failed, ..Task::pending(TaskIndex(0), at(0)) };
        let task = Task { started_at: Some(at(5)), finished_at: Some(at(9)), ..ended };
        use EventKind as E;
        let events =
            [event(1, E::TaskDispatched, 1), event(3, E::TaskStarted, 1), event(9, E::TaskFailed, 1)];
        let expected =
            [(Phase::Upstream, 0, 1), (Phase::Queue, 1, 2), (Phase::Start, 1, 2), (Phase::Work, 1, 4)];
        assert_eq!(phases(&task, &events), expected);
        let events: Vec<&Event> = events.iter().collect();
        let failed: Vec<bool> =
            of_task(&task, &events, at(0), at(9)).iter().map(|stretch| stretch.failed).collect();
        assert_eq!(failed, [false, false, false, true], "only the work failed");
    }
}

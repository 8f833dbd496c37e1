//! The invariants of timers: none fires early, and each fires once.

use chrono::TimeDelta;
use model::{Event, EventKind, Instant, TaskIndex, TaskKind, TaskState, Timer, TimerKind};

use crate::check::{Checked, violation};
use crate::replay::{Replay, Rows};

/// No clock of a world is further from the truth.
const WORST_SKEW: TimeDelta = TimeDelta::seconds(65);

/// By the clock of the sweep that fires it, which may be skewed.
pub(crate) fn none_is_early(replay: &Replay, rows: &Rows<'_>, event: &Event, truth: Instant) -> Checked {
    let Some(timer) = cause(replay, rows, event).and_then(|cause| set(replay, cause)) else { return Ok(()) };
    if event.at < timer.wake_at || truth + WORST_SKEW * 2 < timer.wake_at {
        let what = format!("{timer:?} fired at {} by {:?}, when it was {truth}", event.at, event.kind);
        return violation("no_timer_is_early", what);
    }
    Ok(())
}

/// A timer takes effect once. Attempt numbers only grow, so no two timers are the same.
pub(crate) fn each_fires_once(replay: &mut Replay, rows: &Rows<'_>, event: &Event) -> Checked {
    let Some(cause) = cause(replay, rows, event) else { return Ok(()) };
    if replay.fired.contains(&cause) {
        let what = format!("{:?} fired again at {}, by {:?}", cause, event.at, event.kind);
        return violation("each_timer_fires_once", what);
    }
    // A sleeping task may be woken by something else than a timer.
    if set(replay, cause).is_some() {
        replay.fired.insert(cause);
    }
    Ok(())
}

/// Whose timer it is, of which attempt, of which kind.
type Cause = (Option<TaskIndex>, u32, TimerKind);

/// The timer that was set for it.
fn set(replay: &Replay, (task, attempt, kind): Cause) -> Option<&Timer> {
    let own = |timer: &&Timer| timer.task == task && timer.kind == kind && timer.attempt == attempt;
    replay.timers.iter().find(own)
}

/// The timer that an event follows from, if it follows from one.
fn cause(replay: &Replay, rows: &Rows<'_>, event: &Event) -> Option<Cause> {
    let Some(index) = event.task else {
        let kind = match event.kind {
            EventKind::RunTimedOut => TimerKind::Timeout,
            EventKind::RunMissedDeadline => TimerKind::Deadline,
            _ => return None,
        };
        return Some((None, 0, kind));
    };
    // A sensor's timer only lets it poll: what it finds ends it.
    if event.child.is_none() && rows.graph.spec(index).kind == TaskKind::Sensor {
        return None;
    }
    let task = replay.tasks.get(&index)?;
    let late = event.data["class"] == "timeout";
    let kind = match (task.state, event.kind) {
        // A person ended the wait.
        (_, EventKind::TaskWoken) => return None,
        (TaskState::Sleeping, EventKind::TaskSucceeded) if replay.woken.contains(&index) => return None,
        (TaskState::UpForRetry, _) if event.attempt > task.attempt => TimerKind::Retry,
        (TaskState::Sleeping, EventKind::TaskSucceeded) => TimerKind::Sleep,
        (TaskState::Sleeping, EventKind::TaskFailed) if late && !replay.timed_out => TimerKind::Timeout,
        _ => return None,
    };
    Some((Some(index), task.attempt, kind))
}

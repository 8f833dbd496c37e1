//! What must hold of timers: none fires early, and each fires once.

use chrono::TimeDelta;
use model::{Event, EventKind, Instant, TaskIndex, TaskState, Timer, TimerKind};

use crate::check::{Checked, trouble};
use crate::shadow::{Rows, Shadow};

/// No clock of a world is further from the truth.
const WORST_SKEW: TimeDelta = TimeDelta::seconds(65);

/// By the clock of whoever fires it, which may differ from the truth.
pub(crate) fn none_is_early(shadow: &Shadow, rows: &Rows<'_>, event: &Event, truth: Instant) -> Checked {
    let Some(timer) = cause(shadow, rows, event).and_then(|cause| set(shadow, cause)) else { return Ok(()) };
    if event.at < timer.wake_at || truth + WORST_SKEW * 2 < timer.wake_at {
        let what = format!("{timer:?} fired at {} by {:?}, when it was {truth}", event.at, event.kind);
        return trouble("no_timer_is_early", what);
    }
    Ok(())
}

/// What follows from a timer follows from it once: attempts are numbered on, so no other timer is the same.
pub(crate) fn each_fires_once(shadow: &mut Shadow, rows: &Rows<'_>, event: &Event) -> Checked {
    let Some(cause) = cause(shadow, rows, event) else { return Ok(()) };
    if shadow.fired.contains(&cause) {
        let what = format!("{:?} fired again at {}, by {:?}", cause, event.at, event.kind);
        return trouble("each_timer_fires_once", what);
    }
    // Whoever sleeps may be woken by something else than a timer.
    if set(shadow, cause).is_some() {
        shadow.fired.insert(cause);
    }
    Ok(())
}

/// Whose timer it is, of which attempt, of which kind.
type Cause = (Option<TaskIndex>, u32, TimerKind);

/// The timer that was set for it.
fn set(shadow: &Shadow, (task, attempt, kind): Cause) -> Option<&Timer> {
    let own = |timer: &&Timer| timer.task == task && timer.kind == kind && timer.attempt == attempt;
    shadow.timers.iter().find(own)
}

/// The timer that an event follows from, if it follows from one.
fn cause(shadow: &Shadow, rows: &Rows<'_>, event: &Event) -> Option<Cause> {
    let Some(index) = event.task else {
        let kind = match event.kind {
            EventKind::RunTimedOut => TimerKind::Timeout,
            EventKind::RunMissedDeadline => TimerKind::Deadline,
            _ => return None,
        };
        return Some((None, 0, kind));
    };
    // A sensor's timer only lets it look: what it saw ends it.
    if event.child.is_none() && rows.graph.spec(index).kind == "sensor" {
        return None;
    }
    let task = shadow.tasks.get(&index)?;
    let late = event.data["class"] == "timeout";
    let kind = match (task.state, event.kind) {
        // Somebody did not want to wait for it.
        (_, EventKind::TaskWoken) => return None,
        (TaskState::Sleeping, EventKind::TaskSucceeded) if shadow.woken.contains(&index) => return None,
        (TaskState::UpForRetry, _) if event.attempt > task.attempt => TimerKind::Retry,
        (TaskState::Sleeping, EventKind::TaskSucceeded) => TimerKind::Sleep,
        (TaskState::Sleeping, EventKind::TaskFailed) if late && !shadow.timed_out => TimerKind::Timeout,
        _ => return None,
    };
    Some((Some(index), task.attempt, kind))
}

//! The append-only record of what happened to a run. Its timeline is read from it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Child, Instant, TaskIndex};

/// One change of state: when, what, to which task, by whom, and why.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Event {
    /// When it happened.
    pub at: Instant,
    /// What happened.
    pub kind: EventKind,
    /// The task it happened to; none for the run itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskIndex>,
    /// The task's place, if it is a child of a fan-out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<Child>,
    /// The attempt; 0 where none is meant.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    /// Who caused it; none for the engine itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// What else is worth knowing.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The kinds of event, named as the API names them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum EventKind {
    /// The run was created.
    #[serde(rename = "run.created")]
    RunCreated,
    /// Its first task was given a slot.
    #[serde(rename = "run.started")]
    RunStarted,
    /// Others in its group have ended: it may begin.
    #[serde(rename = "run.admitted")]
    RunAdmitted,
    /// It took longer than it may.
    #[serde(rename = "run.timed_out")]
    RunTimedOut,
    /// It should have ended by now; it goes on.
    #[serde(rename = "run.missed_deadline")]
    RunMissedDeadline,
    /// Someone was told what became of it, or could not be.
    #[serde(rename = "run.called_back")]
    RunCalledBack,
    /// A signal was sent to it.
    #[serde(rename = "run.signalled")]
    RunSignalled,
    /// A person paused it.
    #[serde(rename = "run.paused")]
    RunPaused,
    /// A person resumed it.
    #[serde(rename = "run.resumed")]
    RunResumed,
    /// A person retried what failed in it.
    #[serde(rename = "run.retried")]
    RunRetried,
    /// A person wants it looked at for anything that got lost.
    #[serde(rename = "run.evaluated")]
    RunEvaluated,
    /// It cannot go on although it has not ended.
    #[serde(rename = "run.stalled")]
    RunStalled,
    /// What was noted about it did not fit its rows, and was put right.
    #[serde(rename = "run.repaired")]
    RunRepaired,
    /// It ended well.
    #[serde(rename = "run.succeeded")]
    RunSucceeded,
    /// It ended badly.
    #[serde(rename = "run.failed")]
    RunFailed,
    /// It was cancelled.
    #[serde(rename = "run.cancelled")]
    RunCancelled,
    /// A task found no slot and stands in line.
    #[serde(rename = "task.queued")]
    TaskQueued,
    /// A task was given a slot.
    #[serde(rename = "task.dispatched")]
    TaskDispatched,
    /// Its work message had to be sent once more.
    #[serde(rename = "task.redispatched")]
    TaskRedispatched,
    /// A worker took it.
    #[serde(rename = "task.started")]
    TaskStarted,
    /// It waits for a timer.
    #[serde(rename = "task.sleeping")]
    TaskSleeping,
    /// It waits for a signal or an answer.
    #[serde(rename = "task.waiting")]
    TaskWaiting,
    /// Its children came into being.
    #[serde(rename = "task.fanned_out")]
    TaskFannedOut,
    /// Its worker had to end and handed it back: another one carries it out.
    #[serde(rename = "task.handed_back")]
    TaskHandedBack,
    /// It will be tried again.
    #[serde(rename = "task.retrying")]
    TaskRetrying,
    /// It delivered.
    #[serde(rename = "task.succeeded")]
    TaskSucceeded,
    /// It failed for good.
    #[serde(rename = "task.failed")]
    TaskFailed,
    /// Something it depends on failed.
    #[serde(rename = "task.upstream_failed")]
    TaskUpstreamFailed,
    /// It is not needed.
    #[serde(rename = "task.skipped")]
    TaskSkipped,
    /// It was cancelled.
    #[serde(rename = "task.cancelled")]
    TaskCancelled,
    /// It is re-run, since a person cleared it or what it depends on, or retried the run.
    #[serde(rename = "task.cleared")]
    TaskCleared,
    /// A person said how it ended.
    #[serde(rename = "task.marked")]
    TaskMarked,
    /// A person ended its sleep, or the delay before its next attempt.
    #[serde(rename = "task.woken")]
    TaskWoken,
}

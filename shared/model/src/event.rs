//! The append-only record of what happened to a run. Its timeline is read from it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Child, Instant, TaskIndex};

/// One change of state: when, what, to which task, by whom, and why.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Event {
    /// When the change was decided.
    pub at: Instant,
    /// The kind of change.
    pub kind: EventKind,
    /// The task it happened to; none for the run itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskIndex>,
    /// Which child the task is, if it is one of a fan-out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<Child>,
    /// The attempt; 0 if the event is not about one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    /// Who caused it; none if the engine did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Details that depend on the kind.
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
    /// Other runs of its concurrency group have ended: it may begin.
    #[serde(rename = "run.admitted")]
    RunAdmitted,
    /// It exceeded its `timeout_seconds`.
    #[serde(rename = "run.timed_out")]
    RunTimedOut,
    /// It exceeded its `deadline_seconds`, and goes on.
    #[serde(rename = "run.missed_deadline")]
    RunMissedDeadline,
    /// A callback about it was delivered, or could not be.
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
    /// A person asked for a check for anything that was lost.
    #[serde(rename = "run.evaluated")]
    RunEvaluated,
    /// It cannot go on although it has not ended.
    #[serde(rename = "run.stalled")]
    RunStalled,
    /// Its counters did not match its rows and were corrected.
    #[serde(rename = "run.repaired")]
    RunRepaired,
    /// It ended and succeeded.
    #[serde(rename = "run.succeeded")]
    RunSucceeded,
    /// It ended and failed.
    #[serde(rename = "run.failed")]
    RunFailed,
    /// A person or a policy cancelled it.
    #[serde(rename = "run.cancelled")]
    RunCancelled,
    /// A task found no free slot and waits for one.
    #[serde(rename = "task.queued")]
    TaskQueued,
    /// A task was given a slot.
    #[serde(rename = "task.dispatched")]
    TaskDispatched,
    /// Its work message was published once more.
    #[serde(rename = "task.redispatched")]
    TaskRedispatched,
    /// A worker took it.
    #[serde(rename = "task.started")]
    TaskStarted,
    /// It waits for a timer.
    #[serde(rename = "task.sleeping")]
    TaskSleeping,
    /// It waits for a signal or an approval.
    #[serde(rename = "task.waiting")]
    TaskWaiting,
    /// Its children were created.
    #[serde(rename = "task.fanned_out")]
    TaskFannedOut,
    /// Its worker had to stop and handed it back: another worker executes it.
    #[serde(rename = "task.handed_back")]
    TaskHandedBack,
    /// It will be tried again.
    #[serde(rename = "task.retrying")]
    TaskRetrying,
    /// One of its attempts succeeded.
    #[serde(rename = "task.succeeded")]
    TaskSucceeded,
    /// It failed for good.
    #[serde(rename = "task.failed")]
    TaskFailed,
    /// Something it depends on failed.
    #[serde(rename = "task.upstream_failed")]
    TaskUpstreamFailed,
    /// It does not have to run.
    #[serde(rename = "task.skipped")]
    TaskSkipped,
    /// A person or a policy cancelled it.
    #[serde(rename = "task.cancelled")]
    TaskCancelled,
    /// It is re-run: a person cleared it or a task it depends on, or retried the run.
    #[serde(rename = "task.cleared")]
    TaskCleared,
    /// A person decided how it ended.
    #[serde(rename = "task.marked")]
    TaskMarked,
    /// A person ended its sleep, or the delay before its next attempt.
    #[serde(rename = "task.woken")]
    TaskWoken,
}

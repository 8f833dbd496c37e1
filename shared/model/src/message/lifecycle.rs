//! Outgoing messages about the ends of runs and tasks, for anyone to subscribe.

use serde::{Deserialize, Serialize};

use crate::{Instant, RunId, RunState, TaskIndex, TaskKind, TaskState, TenantId};

/// A run ended, for subscribers outside.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunFinished {
    /// The run that ended.
    pub run: RunId,
    /// The tenant that the run belongs to.
    pub tenant: TenantId,
    /// The workflow that it is a run of.
    pub workflow: String,
    /// The state that it ended in.
    pub state: RunState,
    /// When it was created; none in messages of versions that did not send it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Instant>,
    /// When its last task ended.
    pub finished_at: Instant,
}

/// A task ended, for subscribers outside.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TaskFinished {
    /// The run of the task.
    pub run: RunId,
    /// The tenant that the run belongs to.
    pub tenant: TenantId,
    /// The workflow that it is a run of.
    pub workflow: String,
    /// The task's position in the run.
    pub task: TaskIndex,
    /// The task's name in the workflow.
    pub name: String,
    /// Its type; none in messages of versions that did not send it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<TaskKind>,
    /// The state that it ended in.
    pub state: TaskState,
    /// When the task ended.
    pub finished_at: Instant,
}

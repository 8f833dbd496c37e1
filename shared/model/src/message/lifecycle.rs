//! Outgoing: what became of runs and tasks, for anyone to subscribe.

use serde::{Deserialize, Serialize};

use crate::{Instant, RunId, RunState, TaskIndex, TaskKind, TaskState, TenantId};

/// A run ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunFinished {
    /// The run.
    pub run: RunId,
    /// Whose.
    pub tenant: TenantId,
    /// Of which workflow.
    pub workflow: String,
    /// How.
    pub state: RunState,
    /// When it was made; nothing in messages of versions that did not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Instant>,
    /// When.
    pub finished_at: Instant,
}

/// A task ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TaskFinished {
    /// The run.
    pub run: RunId,
    /// Whose.
    pub tenant: TenantId,
    /// Of which workflow.
    pub workflow: String,
    /// The task's place.
    pub task: TaskIndex,
    /// The task's name.
    pub name: String,
    /// Its type; nothing in messages of versions that did not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<TaskKind>,
    /// How.
    pub state: TaskState,
    /// When.
    pub finished_at: Instant,
}

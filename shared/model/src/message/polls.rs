//! Sensors that should look.

use serde::{Deserialize, Serialize};

use crate::{Child, Instant, TaskKey, TenantId, VersionId};

/// A sensor should poll. Polling twice is harmless.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PollDue {
    /// Whose.
    pub tenant: TenantId,
    /// The group that looks.
    pub queue: String,
    /// For whom.
    pub watch: Watch,
}

/// Whose sensor it is.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Watch {
    /// A task's.
    Task {
        /// The task.
        #[serde(flatten)]
        key: TaskKey,
        /// Its attempt.
        attempt: u32,
        /// The run's version.
        version: VersionId,
        /// Its place, if it is a child of a fan-out.
        #[serde(default)]
        child: Option<Child>,
        /// When it began to look.
        since: Instant,
        /// Whether its last look is noted as failed.
        #[serde(default)]
        failed: bool,
    },
    /// A trigger's.
    Trigger {
        /// The workflow.
        workflow: String,
        /// The trigger's name.
        name: String,
    },
}

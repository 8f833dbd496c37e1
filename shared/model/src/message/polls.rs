//! Messages that make sensors poll.

use serde::{Deserialize, Serialize};

use crate::{Child, Instant, TaskKey, TenantId, VersionId};

/// A sensor is to be polled. Polling twice is harmless.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PollDue {
    /// The tenant that the sensor belongs to.
    pub tenant: TenantId,
    /// The queue whose executors poll.
    pub queue: String,
    /// The task or trigger that needs the result.
    pub target: PollTarget,
}

/// The task or trigger that a sensor belongs to.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PollTarget {
    /// A sensor task of a run.
    Task {
        /// The task that waits.
        #[serde(flatten)]
        key: TaskKey,
        /// The attempt that waits.
        attempt: u32,
        /// The version of the run.
        version: VersionId,
        /// Which child it is, if it is one of a fan-out.
        #[serde(default)]
        child: Option<Child>,
        /// When it began to poll.
        since: Instant,
        /// Whether its last poll is recorded as failed.
        #[serde(default)]
        failed: bool,
    },
    /// A trigger of a workflow.
    Trigger {
        /// The name of the workflow.
        workflow: String,
        /// The trigger's name in it.
        name: String,
    },
}

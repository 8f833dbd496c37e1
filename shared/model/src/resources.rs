//! The resources that a task's program may use, and the network that it may reach.

use serde::{Deserialize, Serialize};

/// The maximum amounts that a task's program may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Resources {
    /// The number of CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// The memory in bytes, of all processes together where the worker has control groups, and of each otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// The size in bytes of each file that it writes, and of its scratch directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<u64>,
    /// The number of processes and threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
}

impl Resources {
    /// Whether nothing is limited.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }
}

/// The network that a task's program may reach.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkAccess {
    /// Whatever its worker reaches.
    #[default]
    Shared,
    /// Nothing, not even the worker's own machine.
    None,
}

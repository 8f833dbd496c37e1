//! What a program may do.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What one program may see, use and reach.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Plan {
    /// The user and group that it runs as; the worker's own if none is given.
    pub user: Option<u32>,
    /// The folders and files that it may change, besides its scratch folder.
    pub writable: Vec<PathBuf>,
    /// The folders and files that it may read, besides the system's.
    pub readable: Vec<PathBuf>,
    /// The maximum amounts that it may use.
    pub limits: Limits,
    /// What it may reach.
    pub network: Network,
}

/// The maximum amounts that a program may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Limits {
    /// The number of CPUs.
    pub cpus: Option<u32>,
    /// The memory of each process, in bytes: its private writable data, however much address space it reserves.
    pub memory: Option<u64>,
    /// The size of each file that it writes, in bytes.
    pub file_size: Option<u64>,
    /// The number of processes and threads. It holds for programs that run as a user of their own, and otherwise where the
    /// system lets users create user namespaces.
    pub processes: Option<u64>,
}

/// What a program may reach over the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Whatever its worker reaches.
    #[default]
    Shared,
    /// Nothing, not even the worker's own machine.
    None,
}

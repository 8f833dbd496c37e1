//! What a program may do.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What one program may see, use and reach.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Plan {
    /// The user and group that it runs as; the worker's own if none is given.
    pub user: Option<u32>,
    /// The folder of its control group, whose limits hold for all its processes together; none where there are no groups.
    pub group: Option<PathBuf>,
    /// Its scratch folder, which it may change.
    pub scratch: PathBuf,
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
    /// The memory in bytes: of each process, its private writable data, however much address space it reserves; and of all
    /// together, what they use, if they have a control group.
    pub memory: Option<u64>,
    /// The size in bytes of each file that it writes, and of everything in its scratch folder.
    pub disk: Option<u64>,
    /// The number of processes and threads. It holds for programs that have a control group or run as a user of their own,
    /// and otherwise where the system lets users create user namespaces.
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

//! How workers describe themselves, and the commands they receive.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{Abilities, Instant, Labels, TenantId};

/// How a worker describes itself when it registers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerFacts {
    /// The function that it is an instance of.
    #[serde(default = "WorkerFacts::usual_function")]
    pub function: String,
    /// The queue that it serves; none if it takes everything that is pushed to it.
    #[serde(default)]
    pub queue: Option<String>,
    /// The machine, or whatever the platform calls one.
    pub host: String,
    /// The version of the program.
    pub version: String,
    /// When its process started.
    pub since: Instant,
    /// Its breakers that are open, by tenant, host and port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breakers: Vec<OpenBreaker>,
    /// Facts that a remote worker reports about itself; none for execute services.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<RemoteFacts>,
}

/// Facts that a remote worker reports about itself.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RemoteFacts {
    /// The tenant whose tasks it takes.
    pub tenant: TenantId,
    /// The name that it chose, unique per process.
    pub name: String,
    /// The maximum number of attempts that it executes at the same time.
    pub slots: u32,
    /// The labels that tasks may require.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// The names of the task types that it can run; none for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types: Option<Vec<String>>,
    /// How much of its machine is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<ResourceUsage>,
}

/// How much of a machine is in use, each as a share from 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ResourceUsage {
    /// The share of its processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
    /// The share of its memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<f64>,
    /// The share of its disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<f64>,
}

/// A breaker that is open: calls to its host failed repeatedly, so the worker makes none for a while.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OpenBreaker {
    /// The host that calls go to.
    pub host: String,
    /// When the calls began to fail.
    pub since: Instant,
    /// When the next call shows whether the host is back.
    pub until: Instant,
}

impl RemoteFacts {
    /// The properties that decide which tasks of its queue it may lease.
    pub fn abilities(&self) -> Abilities {
        Abilities { labels: self.labels.clone(), types: self.types.clone().map(BTreeSet::from_iter) }
    }
}

impl WorkerFacts {
    fn usual_function() -> String {
        "execute".into()
    }
}

/// The commands that a worker can receive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerCommandKind {
    /// Take no more work, finish the attempts it holds, and stop.
    Drain,
    /// Stop everything at once, hand it back, and stop.
    Kill,
}

impl WorkerCommandKind {
    /// Every command, the stronger one last.
    pub const ALL: [WorkerCommandKind; 2] = [Self::Drain, Self::Kill];

    /// The name used in rows and API responses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Drain => "drain",
            Self::Kill => "kill",
        }
    }

    /// The command of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A command to a worker, with who gave it and why.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WorkerCommand {
    /// The action that the worker is to take.
    pub kind: WorkerCommandKind,
    /// Who gave the command.
    pub actor: String,
    /// Why, if they gave a reason.
    pub reason: Option<String>,
    /// When the command was given.
    pub at: Instant,
}

//! Identifiers, each a type of its own, so that one cannot be passed for another.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Names one run. Its sixteen bytes are also the run's trace id, so one run is one trace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub Uuid);

impl RunId {
    /// The id of the run that an idempotency key asks for: the same key, the same run.
    pub fn from_key(tenant: TenantId, workflow: &str, key: &str) -> Self {
        let name = format!("{}\n{workflow}\n{key}", tenant.0);
        Self(Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()))
    }

    /// The id of the run that an attempt at a task starts: the same attempt, the same run.
    pub fn of_task(task: TaskKey, attempt: u32) -> Self {
        Self(Uuid::new_v5(&task.run.0, format!("{}\n{attempt}", task.task.0).as_bytes()))
    }

    /// The trace id of everything that happens for this run, as 32 hexadecimal digits.
    pub fn trace_id(self) -> String {
        self.0.simple().to_string()
    }

    /// The root of that trace, as W3C writes trace contexts.
    pub fn traceparent(self) -> String {
        let span = Uuid::new_v5(&self.0, b"run").simple().to_string();
        format!("00-{}-{}-01", self.trace_id(), &span[..16])
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for RunId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text).map(Self)
    }
}

/// A tenant's number; also its group in the fair queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TenantId(pub i32);

impl TenantId {
    /// The tenant that exists from the first migration on.
    pub const DEFAULT: TenantId = TenantId(1);
    /// The name of that tenant.
    pub const DEFAULT_NAME: &str = "default";
}

/// Names one immutable version of a workflow across all tenants.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VersionId(pub i64);

/// A task's position in its version's list of tasks; small, so that hot rows stay small.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskIndex(pub u32);

impl TaskIndex {
    /// As an index into a slice of tasks.
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

/// One task of one run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct TaskKey {
    /// The run that the task belongs to.
    pub run: RunId,
    /// The task within it.
    pub task: TaskIndex,
}

/// Names one worker: an instance that executes attempts, from its start to its end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerId(pub Uuid);

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for WorkerId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text).map(Self)
    }
}

/// Names one backfill, across all tenants.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BackfillId(pub Uuid);

impl BackfillId {
    /// The prefix of the concurrency groups of backfills.
    const GROUP_PREFIX: &'static str = "backfill:";

    /// The concurrency group of its runs: when one ends, the next may begin.
    pub fn concurrency_group(self) -> String {
        format!("{}{}", Self::GROUP_PREFIX, self.0)
    }

    /// The backfill that the group belongs to, if it is a backfill's.
    pub fn of_concurrency_group(group: &str) -> Option<Self> {
        group.strip_prefix(Self::GROUP_PREFIX)?.parse().ok()
    }
}

impl fmt::Display for BackfillId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for BackfillId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text).map(Self)
    }
}

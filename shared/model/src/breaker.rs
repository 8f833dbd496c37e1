//! Circuit breakers: after repeated failures of a task, or of calls to a server, nothing of the kind begins for a while.
//! Then one probe shows whether it works again. Here are the rules and the rows; the decisions are `engine::breaker`.

use serde::{Deserialize, Serialize};

use crate::{Instant, Limit, TenantId};

/// When the breaker of a task opens, and for how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BreakerSpec {
    /// The number of failed attempts that opens it.
    pub failures: u32,
    /// The time within which they must fail.
    pub window_seconds: u32,
    /// How long no attempt begins once it is open.
    pub pause_seconds: u32,
}

impl Default for BreakerSpec {
    fn default() -> Self {
        Self { failures: 5, window_seconds: 600, pause_seconds: 300 }
    }
}

/// The target that a breaker protects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BreakerKind {
    /// Attempts of one task, in all runs of its workflow.
    Task,
    /// Calls to one host and port.
    Host,
}

impl BreakerKind {
    /// Every kind of breaker.
    pub const ALL: [Self; 2] = [Self::Task, Self::Host];

    /// The name used in rows and API responses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Host => "host",
        }
    }

    /// The kind of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Which breaker it is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BreakerKey {
    /// The tenant whose work it stops.
    pub tenant: TenantId,
    /// The target: attempts of a task, or calls to a host.
    pub kind: BreakerKind,
    /// Its name: `WORKFLOW/TASK`, or `HOST:PORT`.
    pub name: String,
}

impl BreakerKey {
    /// The breaker of a task; the children of a fan-out share that of the fan-out.
    pub fn of_task(tenant: TenantId, workflow: &str, task: &str) -> Self {
        Self { tenant, kind: BreakerKind::Task, name: format!("{workflow}/{task}") }
    }

    /// The breaker of a server.
    pub fn of_host(tenant: TenantId, host: &str, port: u16) -> Self {
        Self { tenant, kind: BreakerKind::Host, name: format!("{host}:{port}") }
    }

    /// The limit whose slots it takes away; none for a host, whose calls wait in the worker.
    pub fn limit(&self) -> Option<Limit> {
        (self.kind == BreakerKind::Task).then(|| Limit::Breaker(self.tenant, self.name.clone()))
    }
}

/// A breaker that is not closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opening {
    /// When it opened first.
    pub since: Instant,
    /// When the pause ends; during a probe, when another one may begin.
    pub until: Instant,
    /// The length of the pause.
    pub pause_seconds: u32,
    /// Whether the pause is over, and a probe decides what follows.
    pub probing: bool,
}

/// The breaker of a task while it is not closed, as a claim finds it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BreakerGate {
    /// Which breaker it is.
    pub key: BreakerKey,
    /// Whether the pause is over, and a probe decides what follows.
    pub probing: bool,
    /// The number of attempts that have its slots, or wait with one for another limit.
    pub used: u32,
}

/// A breaker and what it remembers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Breaker {
    /// The key of its row.
    pub id: i64,
    /// Which breaker it is.
    pub key: BreakerKey,
    /// When the failures that count happened, oldest first.
    pub failed_at: Vec<Instant>,
    /// Set unless it is closed.
    pub open: Option<Opening>,
    /// The message of the last failure.
    pub message: String,
}

impl Breaker {
    /// A closed breaker that remembers nothing.
    pub fn closed(id: i64, key: BreakerKey) -> Self {
        Self { id, key, failed_at: Vec::new(), open: None, message: String::new() }
    }

    /// Whether there is nothing to remember: such a breaker needs no row.
    pub fn is_idle(&self) -> bool {
        self.open.is_none() && self.failed_at.is_empty()
    }
}

/// The breakers to read in a transaction. Each is locked, in the order of their ids.
#[derive(Clone, PartialEq, Debug)]
pub enum BreakerRead {
    /// Those about which something happened. Where it was a failure (`true`), one that does not exist is created; where it
    /// was not, closed ones are left out.
    Happened(Vec<(BreakerKey, bool)>),
    /// Those whose pause is over and that let no probe through yet.
    Due {
        /// The end of the pause is not later than this.
        now: Instant,
        /// The maximum number of breakers.
        limit: u32,
    },
    /// The one of this tenant with this id.
    Id(TenantId, i64),
}

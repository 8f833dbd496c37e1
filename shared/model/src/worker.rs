//! What workers say of themselves, and what they are told.

use serde::{Deserialize, Serialize};

use crate::Instant;

/// What a worker says of itself when it registers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WorkerFacts {
    /// Which function it is an instance of.
    #[serde(default = "WorkerFacts::usual_function")]
    pub function: String,
    /// The queue that it serves; none if it takes whatever is sent to it.
    #[serde(default)]
    pub queue: Option<String>,
    /// The machine, or what stands for one.
    pub host: String,
    /// The version of the program.
    pub version: String,
    /// Since when it is up.
    pub since: Instant,
    /// Its breakers that are open, by tenant, host and port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breakers: Vec<OpenBreaker>,
}

/// A breaker that is open: calls to its host failed again and again, so a worker makes none for a while.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OpenBreaker {
    /// The host that is called.
    pub host: String,
    /// Since when no calls are made as they come.
    pub since: Instant,
    /// When the next one shows whether it is back.
    pub until: Instant,
}

impl WorkerFacts {
    fn usual_function() -> String {
        "execute".into()
    }
}

/// What a worker can be told to do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerCommandKind {
    /// Take no more work, finish what is held, end.
    Drain,
    /// Stop everything at once, hand it back, end.
    Kill,
}

impl WorkerCommandKind {
    /// All of them, the stronger one last.
    pub const ALL: [WorkerCommandKind; 2] = [Self::Drain, Self::Kill];

    /// The name used in rows and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Drain => "drain",
            Self::Kill => "kill",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What a worker was told to do, by whom and why.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WorkerCommand {
    /// What.
    pub kind: WorkerCommandKind,
    /// Who said so.
    pub actor: String,
    /// Why, if they said.
    pub reason: Option<String>,
    /// When.
    pub at: Instant,
}

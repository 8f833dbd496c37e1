//! Offers: dispatched tasks that workers lease, each waiting for a worker that may take it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::{BackfillId, TaskIndex, TaskKey, TenantId};

/// The value of a label: what a worker has, or a task requires.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Label {
    /// The value `true` or `false`.
    Flag(bool),
    /// A number, such as an amount of memory.
    Number(Number),
    /// A text, such as the name of a region.
    Text(String),
}

impl Label {
    /// Whether both are the same, however a number is written.
    fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(one), Self::Number(other)) => one == other || one.as_f64() == other.as_f64(),
            _ => self == other,
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => flag.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

/// Labels by name: those of a worker, or those that a task requires of its worker.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Labels(pub BTreeMap<String, Label>);

impl Labels {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a worker with these labels has all that a task requires.
    pub fn satisfy(&self, required: &Self) -> bool {
        required.0.iter().all(|(name, value)| self.0.get(name).is_some_and(|own| own.equals(value)))
    }
}

/// The properties of an offer that decide which workers may take it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Demand {
    /// The workflow, which a worker needs a permission for.
    pub workflow: String,
    /// The name of the task type, which the worker must be able to run.
    pub kind: String,
    /// The labels that the worker must have.
    pub requires: Labels,
}

/// A dispatched task that workers lease, as a decision makes it known to workers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// The task that was dispatched.
    pub task: TaskIndex,
    /// The attempt that is to begin.
    pub attempt: u32,
    /// The queue whose workers may take it.
    pub queue: String,
    /// The name of the task type.
    pub kind: String,
    /// The labels that its worker must have.
    pub requires: Labels,
    /// The backfill whose turn it takes; none for a live task.
    pub backfill: Option<BackfillId>,
    /// Its order within its fairness group, lowest first.
    pub rank: i64,
}

/// Offers that the same workers may take and that share their turns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OfferGroup {
    /// The properties that decide which workers may take them.
    pub demand: Demand,
    /// The backfill that they belong to; none for live tasks.
    pub backfill: Option<BackfillId>,
    /// The weight of the backfill; none for live tasks.
    pub weight: Option<u32>,
}

/// An offer that a worker may take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// The task that is offered.
    pub key: TaskKey,
    /// The attempt that is to begin.
    pub attempt: u32,
    /// Its order within its fairness group, lowest first.
    pub rank: i64,
    /// The backfill that it belongs to; none for a live task.
    pub backfill: Option<BackfillId>,
    /// The weight of the backfill; none for a live task.
    pub weight: Option<u32>,
}

/// An offer that was just made, in a queue of a tenant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewOffer {
    /// The tenant whose workers may take it.
    pub tenant: TenantId,
    /// The queue that these workers serve.
    pub queue: String,
    /// The other properties that decide which of them may take it.
    pub demand: Demand,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Labels {
        serde_json::from_str(text).unwrap_or_default()
    }

    #[test]
    fn a_worker_needs_every_label_with_the_same_value() {
        let worker = labels(r#"{"gpu": true, "zone": "a", "memory": 64}"#);
        for (required, satisfied) in [
            ("{}", true),
            (r#"{"gpu": true}"#, true),
            (r#"{"gpu": true, "zone": "a"}"#, true),
            (r#"{"memory": 64.0}"#, true),
            (r#"{"gpu": false}"#, false),
            (r#"{"gpu": "true"}"#, false),
            (r#"{"zone": "b"}"#, false),
            (r#"{"ssd": true}"#, false),
        ] {
            assert_eq!(worker.satisfy(&labels(required)), satisfied, "{required}");
        }
    }
}

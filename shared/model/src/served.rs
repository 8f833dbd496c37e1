//! The tasks that the remote workers of a queue can run, and the requirements of a task that none of them meets.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::{Label, Labels, TenantId};

/// The tasks that a remote worker can run. Leases select tasks by it, and it decides that no worker will take a task.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Abilities {
    /// The labels that tasks may require.
    pub labels: Labels,
    /// The names of the task types; none for any.
    pub types: Option<BTreeSet<String>>,
}

impl Abilities {
    /// Whether the worker can run a task of this type that requires these labels.
    pub fn suit(&self, kind: &str, requires: &Labels) -> bool {
        self.run(kind) && self.labels.satisfy(requires)
    }

    fn run(&self, kind: &str) -> bool {
        self.types.as_ref().is_none_or(|types| types.contains(kind))
    }
}

/// The queues of tenants that remote workers serve, and what these can run. A worker serves its queue until it says goodbye
/// or is declared dead. Clones share the data, since each command of a sweep has one.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ServedQueues(Arc<BTreeMap<(TenantId, String), Vec<Abilities>>>);

impl ServedQueues {
    /// What the workers of a tenant's queue lack to run a task of this type that requires these labels; none if one of them
    /// can run it.
    pub fn lack(&self, tenant: TenantId, queue: &str, kind: &str, requires: &Labels) -> Option<Lack> {
        let Some(workers) = self.0.get(&(tenant, queue.to_owned())) else { return Some(Lack::Workers) };
        if workers.iter().any(|worker| worker.suit(kind, requires)) {
            return None;
        }
        let able: Vec<&Abilities> = workers.iter().filter(|worker| worker.run(kind)).collect();
        if able.is_empty() {
            return Some(Lack::Type(kind.to_owned()));
        }
        let is_missing = |(name, value): &(&String, &Label)| {
            let one = Labels(BTreeMap::from([((*name).clone(), (*value).clone())]));
            !able.iter().any(|worker| worker.labels.satisfy(&one))
        };
        let missing: BTreeMap<String, Label> =
            requires.0.iter().filter(is_missing).map(|(name, value)| (name.clone(), value.clone())).collect();
        // If there is a worker for each of them, what is missing is one that has all.
        Some(Lack::Labels(if missing.is_empty() { requires.clone() } else { Labels(missing) }))
    }
}

impl FromIterator<(TenantId, String, Abilities)> for ServedQueues {
    fn from_iter<I: IntoIterator<Item = (TenantId, String, Abilities)>>(workers: I) -> Self {
        let mut queues: BTreeMap<(TenantId, String), Vec<Abilities>> = BTreeMap::new();
        for (tenant, queue, abilities) in workers {
            let of_queue = queues.entry((tenant, queue)).or_default();
            if !of_queue.contains(&abilities) {
                of_queue.push(abilities);
            }
        }
        Self(Arc::new(queues))
    }
}

/// Why no worker of a queue can run a task. Its text continues a sentence about the workers of that queue.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lack {
    /// No worker serves the queue.
    Workers,
    /// None of its workers runs tasks of this type.
    Type(String),
    /// None of those that run its type has these labels.
    Labels(Labels),
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workers => write!(f, "none is at work"),
            Self::Type(name) => write!(f, "none runs the type `{name}`"),
            Self::Labels(Labels(labels)) => {
                let labels: Vec<String> =
                    labels.iter().map(|(name, value)| format!("`{name}: {value}`")).collect();
                let noun = if labels.len() == 1 { "label" } else { "labels" };
                write!(f, "none has the {noun} {}", labels.join(" and "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENANT: TenantId = TenantId::DEFAULT;

    fn labels(text: &str) -> Labels {
        serde_json::from_str(text).unwrap_or_default()
    }

    fn worker(queue: &str, own: &str, types: Option<&[&str]>) -> (TenantId, String, Abilities) {
        let types = types.map(|types| types.iter().map(|name| (*name).to_owned()).collect());
        (TENANT, queue.to_owned(), Abilities { labels: labels(own), types })
    }

    #[test]
    fn what_no_worker_of_the_queue_has_is_named() {
        let served = ServedQueues::from_iter([
            worker("pool", r#"{"zone": "a"}"#, None),
            worker("pool", r#"{"ssd": true}"#, None),
            worker("pool", r#"{"ssd": true}"#, None),
            worker("tiles", r#"{"gpu": true}"#, Some(&["bash"])),
            worker("tiles", "{}", Some(&["tile.cut"])),
        ]);
        for (queue, kind, requires, expected) in [
            ("pool", "bash", "{}", None),
            ("pool", "bash", r#"{"ssd": true}"#, None),
            ("none", "bash", "{}", Some("none is at work")),
            ("pool", "bash", r#"{"gpu": true, "ssd": true}"#, Some("none has the label `gpu: true`")),
            (
                "pool",
                "bash",
                r#"{"zone": "a", "ssd": true}"#,
                Some("none has the labels `ssd: true` and `zone: a`"),
            ),
            ("tiles", "bash", r#"{"gpu": true}"#, None),
            ("tiles", "python", "{}", Some("none runs the type `python`")),
            // The worker with the label does not run the type.
            ("tiles", "tile.cut", r#"{"gpu": true}"#, Some("none has the label `gpu: true`")),
        ] {
            let lack = served.lack(TENANT, queue, kind, &labels(requires));
            let message = lack.map(|lack| lack.to_string());
            assert_eq!(message.as_deref(), expected, "{queue} {kind} {requires}");
        }
        let other = TenantId(TENANT.0 + 1);
        assert_eq!(served.lack(other, "pool", "bash", &Labels::default()), Some(Lack::Workers));
    }
}

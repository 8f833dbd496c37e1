//! Queues: who executes the tasks of each, and which queues an installation has.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::message::CALLBACK_QUEUE;

/// Who executes the tasks of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueKind {
    /// A service of the installation executes them, and an attempt takes at most as long as a request may.
    Service,
    /// Workers lease and execute them, wherever these run, and an attempt takes as long as it needs.
    Pool,
}

impl QueueKind {
    /// The names in the order in which they are listed.
    pub const NAMES: [&str; 2] = ["service", "pool"];

    /// Its name in files and settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Pool => "pool",
        }
    }
}

/// A queue that an installation lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InstalledQueue {
    /// Its service ends an attempt after that many seconds, if it has a limit.
    Service(Option<u32>),
    /// Workers lease its tasks.
    Pool,
}

/// The queues of an installation. One that lists none, such as that of a laptop, has the [usual](Self::USUAL) ones and whatever
/// else files declare.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Queues(Option<BTreeMap<String, InstalledQueue>>);

impl Queues {
    /// The queues that exist where none are listed. Files may say that workers lease from them.
    pub const USUAL: [&str; 2] = ["heavy", "light"];

    /// The queues of an installation that lists them.
    pub fn listed(queues: BTreeMap<String, InstalledQueue>) -> Self {
        Self(Some(queues))
    }

    /// Whether the installation lists its queues: files then cannot add one that a service executes.
    pub fn are_listed(&self) -> bool {
        self.0.is_some()
    }

    /// The kind of a queue that files cannot change: all that are listed, and the one of callbacks.
    pub fn fixed_kind(&self, name: &str) -> Option<QueueKind> {
        self.kind(name).filter(|_| self.are_listed() || name == CALLBACK_QUEUE)
    }

    /// The kind of a queue; none if the installation does not have it.
    pub fn kind(&self, name: &str) -> Option<QueueKind> {
        match &self.0 {
            Some(listed) => listed.get(name).map(|queue| match queue {
                InstalledQueue::Service(_) => QueueKind::Service,
                InstalledQueue::Pool => QueueKind::Pool,
            }),
            None => Self::USUAL.contains(&name).then_some(QueueKind::Service),
        }
    }

    /// How many seconds an attempt may take on a queue, if it has a limit.
    pub fn attempt_seconds(&self, name: &str) -> Option<u32> {
        match self.0.as_ref()?.get(name)? {
            InstalledQueue::Service(seconds) => *seconds,
            InstalledQueue::Pool => None,
        }
    }

    /// The names of the queues, in order.
    pub fn names(&self) -> Vec<&str> {
        match &self.0 {
            Some(listed) => listed.keys().map(String::as_str).collect(),
            None => Self::USUAL.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_that_lists_queues_has_those_and_no_others() {
        let usual = Queues::default();
        assert_eq!((usual.kind("light"), usual.kind("gpu")), (Some(QueueKind::Service), None));
        assert_eq!((usual.fixed_kind("light"), usual.fixed_kind("heavy")), (Some(QueueKind::Service), None));
        let listed = [("gpu", InstalledQueue::Pool), ("slow", InstalledQueue::Service(Some(585)))];
        let listed = Queues::listed(listed.map(|(name, queue)| (name.to_owned(), queue)).into());
        assert_eq!(listed.names(), ["gpu", "slow"]);
        assert_eq!((listed.kind("gpu"), listed.kind("light")), (Some(QueueKind::Pool), None));
        assert_eq!((listed.attempt_seconds("slow"), listed.attempt_seconds("gpu")), (Some(585), None));
    }
}

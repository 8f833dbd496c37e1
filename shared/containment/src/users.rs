//! Users for programs: one per attempt, so that programs of different attempts cannot signal or read each other.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};

/// The range that systems reserve for users that exist only while a service runs.
const RANGE: RangeInclusive<u32> = 61_184..=65_519;

/// The users that are free. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct TaskUsers(Arc<Mutex<BTreeSet<u32>>>);

impl TaskUsers {
    /// A user that no other attempt of this worker has; none unless this process is root.
    pub fn acquire(&self) -> Option<TaskUser> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Workers on the same machine start at different ends of the range.
        let first = std::process::id() % u32::try_from(RANGE.count()).unwrap_or(1);
        let id = RANGE.cycle().skip(first as usize).take(RANGE.count()).find(|id| !used.contains(id))?;
        used.insert(id);
        Some(TaskUser { id, used: self.clone() })
    }
}

/// A user that is free again after it is dropped.
#[derive(Debug)]
pub struct TaskUser {
    id: u32,
    used: TaskUsers,
}

impl TaskUser {
    /// The number of the user and of its group.
    pub fn id(&self) -> u32 {
        self.id
    }
}

impl Drop for TaskUser {
    fn drop(&mut self) {
        self.used.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_at_the_same_time_have_different_users() {
        let users = TaskUsers::default();
        let (Some(one), Some(other)) = (users.acquire(), users.acquire()) else {
            assert!(!rustix::process::geteuid().is_root(), "root has users to give");
            return;
        };
        assert_ne!(one.id(), other.id());
        assert!(RANGE.contains(&one.id()) && RANGE.contains(&other.id()));
        let freed = one.id();
        drop(one);
        assert_eq!(users.acquire().map(|user| user.id()), Some(freed));
    }
}

//! The attempts that this process gave to workers, so that their first reports need no reads.
//!
//! What is kept of an attempt never changes once it is leased. Whether the worker still holds it, only the decision about its
//! report says.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::{Instant, RunId, TaskKey, WorkerId};

/// How many attempts are kept; beyond that those of the oldest run go first.
const MAX_GIVEN: usize = 10_000;

/// An attempt that a worker was given, as its reports name it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct AttemptName {
    /// The run of the task.
    pub run: RunId,
    /// The name of the task.
    pub task: String,
    /// The number of the attempt.
    pub attempt: u32,
    /// The worker that was given it.
    pub worker: WorkerId,
}

/// What is known of an attempt that a worker was given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GivenAttempt {
    /// The task of the attempt.
    pub key: TaskKey,
    /// The workflow of the run, on which the worker's permission depends.
    pub workflow: String,
    /// When the worker claimed the attempt.
    pub claimed_at: Instant,
}

/// The attempts that were given to workers and not reported about since.
#[derive(Default)]
pub(crate) struct GivenAttempts(Mutex<BTreeMap<AttemptName, GivenAttempt>>);

impl GivenAttempts {
    pub(super) fn add(&self, name: AttemptName, given: GivenAttempt) {
        let mut attempts = self.attempts();
        attempts.insert(name, given);
        if attempts.len() > MAX_GIVEN {
            attempts.pop_first();
        }
    }

    pub(super) fn take(&self, name: &AttemptName) -> Option<GivenAttempt> {
        self.attempts().remove(name)
    }

    fn attempts(&self) -> MutexGuard<'_, BTreeMap<AttemptName, GivenAttempt>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use model::TaskIndex;
    use uuid::Uuid;

    use super::*;

    fn attempt(run: u128) -> (AttemptName, GivenAttempt) {
        let (run, worker) = (RunId(Uuid::from_u128(run)), WorkerId(Uuid::from_u128(1)));
        let key = TaskKey { run, task: TaskIndex(0) };
        let given = GivenAttempt { key, workflow: "w".into(), claimed_at: Instant::UNIX_EPOCH };
        (AttemptName { run, task: "a".into(), attempt: 1, worker }, given)
    }

    #[test]
    fn an_attempt_is_found_once_and_by_its_own_worker_only() {
        let (given, (name, expected)) = (GivenAttempts::default(), attempt(1));
        given.add(name.clone(), expected.clone());
        let stranger = AttemptName { worker: WorkerId(Uuid::from_u128(2)), ..name.clone() };
        assert_eq!(given.take(&stranger), None);
        assert_eq!(given.take(&name), Some(expected));
        assert_eq!(given.take(&name), None);
    }

    #[test]
    fn the_attempts_of_the_oldest_run_make_room() {
        let given = GivenAttempts::default();
        for run in (1..=MAX_GIVEN as u128 + 1).rev() {
            let (name, attempt) = attempt(run);
            given.add(name, attempt);
        }
        assert_eq!(given.attempts().len(), MAX_GIVEN);
        assert_eq!(given.take(&attempt(1).0), None);
        assert!(given.take(&attempt(2).0).is_some());
    }
}

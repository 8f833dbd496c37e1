//! Whether a failed task is tried again, when, and why: the only place that decides it.

use chrono::TimeDelta;
use model::{Backoff, ErrorClass, Failure, RetryPolicy, Task, TaskKey};

/// How often a task is tried again after its worker was lost, even where its policy allows no retry:
/// that is our trouble, not the task's.
const RETRIES_AFTER_LOSS: u32 = 3;

/// What follows from a failure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Choice {
    /// Try again after the delay.
    Retry {
        /// How long to wait; zero is at once.
        delay: TimeDelta,
        /// Why, for the task's history.
        reason: String,
    },
    /// Make no further attempt.
    GiveUp {
        /// Why, for the task's history.
        reason: String,
    },
}

/// Decides what follows from the failure of `attempt`, not counting those handed back; `before` is the failure of the attempt before it.
pub fn choose(
    policy: &RetryPolicy,
    key: TaskKey,
    attempt: u32,
    failure: &Failure,
    before: Option<&Failure>,
) -> Choice {
    let killed_before = before.is_some_and(|failure| failure.class == ErrorClass::Killed);
    match failure.class {
        ErrorClass::Permanent => return give_up("a permanent error is not retried"),
        ErrorClass::Killed if killed_before => return give_up("it was killed twice in a row"),
        _ => {}
    }
    let allowed = retries_allowed(policy, failure.class);
    if attempt > allowed {
        return give_up(match allowed {
            0 => "no retries are allowed".to_owned(),
            1 => "the one retry is used up".to_owned(),
            _ => format!("all {allowed} retries are used up"),
        });
    }
    let delay = match failure.class {
        ErrorClass::WorkerLost => TimeDelta::zero(),
        _ => delay(policy, key, attempt),
    };
    Choice::Retry { delay, reason: format!("retry {attempt} of {allowed}") }
}

/// The retries that the policy allows after a failure of that class.
fn retries_allowed(policy: &RetryPolicy, class: ErrorClass) -> u32 {
    match class {
        ErrorClass::Killed => policy.max_retries.max(1),
        ErrorClass::WorkerLost => policy.max_retries.max(RETRIES_AFTER_LOSS),
        ErrorClass::Permanent | ErrorClass::Transient | ErrorClass::Timeout => policy.max_retries,
    }
}

/// The number of attempts a task may take in all: the total in "attempt 2 of 4".
///
/// Attempts that were handed back or voided by a clear use up no retry, so they raise the total. The class of the
/// last failure decides the budget, as it does in [`choose`]: a lost worker is retried even where the policy allows no
/// retry. The total is never below the current attempt.
pub fn attempts_allowed(policy: &RetryPolicy, task: &Task) -> u32 {
    let retries =
        task.failure.as_ref().map_or(policy.max_retries, |failure| retries_allowed(policy, failure.class));
    let uncounted = task.attempt - task.tries();
    retries.saturating_add(1).saturating_add(uncounted).max(task.attempt)
}

fn give_up(reason: impl Into<String>) -> Choice {
    Choice::GiveUp { reason: reason.into() }
}

/// The delay after `attempt`, jitter included. The jitter comes from the task itself: the same task and
/// attempt always waits the same time, different ones spread out.
fn delay(policy: &RetryPolicy, key: TaskKey, attempt: u32) -> TimeDelta {
    let factor = match policy.backoff {
        Backoff::Exponential => 2f64.powi(attempt.min(63) as i32 - 1),
        Backoff::Linear => f64::from(attempt),
        Backoff::Constant => 1.0,
    };
    let plain = (policy.initial_delay_seconds * factor).min(policy.max_delay_seconds);
    let seconds = plain * (1.0 + policy.jitter * (2.0 * spread(key, attempt) - 1.0));
    TimeDelta::milliseconds((seconds.max(0.0) * 1000.0) as i64)
}

/// A number in [0, 1) that looks random and depends on nothing but its arguments (FNV-1a).
fn spread(key: TaskKey, attempt: u32) -> f64 {
    let bytes =
        key.run.0.into_bytes().into_iter().chain(key.task.0.to_le_bytes()).chain(attempt.to_le_bytes());
    let hash = bytes
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    (hash >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use model::{RunId, TaskIndex};
    use uuid::Uuid;

    use super::*;

    const KEY: TaskKey = TaskKey { run: RunId(Uuid::from_u128(7)), task: TaskIndex(3) };

    fn policy(max_retries: u32, backoff: Backoff) -> RetryPolicy {
        RetryPolicy {
            max_retries,
            backoff,
            initial_delay_seconds: 10.0,
            max_delay_seconds: 60.0,
            jitter: 0.0,
        }
    }

    fn choose_class(max_retries: u32, attempt: u32, class: ErrorClass, before: Option<ErrorClass>) -> bool {
        let before = before.map(|class| Failure::new(class, "before"));
        let policy = policy(max_retries, Backoff::Constant);
        let choice = choose(&policy, KEY, attempt, &Failure::new(class, "x"), before.as_ref());
        matches!(choice, Choice::Retry { .. })
    }

    #[test]
    fn the_attempts_allowed_are_never_fewer_than_the_attempts_made() {
        let now = model::Instant::UNIX_EPOCH;
        for (max_retries, attempt, handed_back, voided, class, allowed) in [
            (0, 0, 0, 0, None, 1),
            (2, 1, 0, 0, None, 3),
            (0, 2, 0, 0, Some(ErrorClass::WorkerLost), 4),
            (5, 2, 0, 0, Some(ErrorClass::WorkerLost), 6),
            (0, 2, 0, 0, Some(ErrorClass::Killed), 2),
            (0, 2, 0, 0, Some(ErrorClass::Transient), 2),
            (0, 2, 1, 0, None, 2),
            (1, 4, 1, 2, None, 5),
        ] {
            let failure = class.map(|class| Failure::new(class, "x"));
            let task = Task { attempt, handed_back, voided, failure, ..Task::pending(TaskIndex(0), now) };
            let policy = policy(max_retries, Backoff::Constant);
            assert_eq!(attempts_allowed(&policy, &task), allowed, "{task:?}");
        }
    }

    #[test]
    fn the_class_decides_whether_there_is_another_try() {
        use ErrorClass::{Killed, Permanent, Timeout, Transient, WorkerLost};
        for (max_retries, attempt, class, before, expected) in [
            (0, 1, Transient, None, false),
            (2, 1, Transient, None, true),
            (2, 2, Transient, Some(Transient), true),
            (2, 3, Transient, Some(Transient), false),
            (2, 1, Timeout, None, true),
            (5, 1, Permanent, None, false),
            (0, 1, Killed, None, true),
            (0, 2, Killed, Some(Killed), false),
            (5, 2, Killed, Some(Killed), false),
            (5, 3, Killed, Some(Transient), true),
            (0, 1, WorkerLost, None, true),
            (0, 4, WorkerLost, Some(WorkerLost), false),
        ] {
            let got = choose_class(max_retries, attempt, class, before);
            assert_eq!(got, expected, "{class:?} at attempt {attempt} of 1 + {max_retries} after {before:?}");
        }
    }

    #[test]
    fn delays_grow_as_the_policy_says_up_to_its_longest() {
        for (backoff, expected) in [
            (Backoff::Exponential, [10, 20, 40, 60]),
            (Backoff::Linear, [10, 20, 30, 40]),
            (Backoff::Constant, [10, 10, 10, 10]),
        ] {
            let seconds = [1, 2, 3, 4].map(|attempt| delay(&policy(9, backoff), KEY, attempt).num_seconds());
            assert_eq!(seconds, expected, "{backoff:?}");
        }
    }

    #[test]
    fn jitter_stays_within_its_part_and_repeats_exactly() {
        let policy = RetryPolicy { jitter: 0.1, ..policy(9, Backoff::Constant) };
        let delays: Vec<i64> =
            (1..200).map(|attempt| delay(&policy, KEY, attempt).num_milliseconds()).collect();
        assert!(delays.iter().all(|delay| (9_000..=11_000).contains(delay)));
        assert!(delays.iter().any(|delay| *delay < 9_700) && delays.iter().any(|delay| *delay > 10_300));
        let again: Vec<i64> =
            (1..200).map(|attempt| delay(&policy, KEY, attempt).num_milliseconds()).collect();
        assert_eq!(delays, again);
    }

    #[test]
    fn a_lost_worker_costs_no_waiting() {
        let lost = Failure::new(ErrorClass::WorkerLost, "worker died");
        let choice = choose(&policy(0, Backoff::Constant), KEY, 1, &lost, None);
        assert_eq!(choice, Choice::Retry { delay: TimeDelta::zero(), reason: "retry 1 of 3".into() });
    }
}

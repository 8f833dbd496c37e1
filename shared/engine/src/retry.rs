//! Whether a failed task is tried again, when, and why: the only place that decides it.
//!
//! Every failure counts against `max_retries`, a lost worker and a kill like any other. What differs is whether a second attempt
//! does harm after a loss, since nobody knows what the first one did: `idempotent: true` allows a few even where the policy allows
//! none, `idempotent: false` allows none even where the policy does.

use chrono::TimeDelta;
use model::{Backoff, ErrorClass, Failure, FailurePattern, RetryPolicy, Task, TaskKey, TaskSpec};

/// How often an idempotent task is tried again after a loss, where its policy allows fewer retries.
const RETRIES_AFTER_LOSS: u32 = 3;

/// A day: no other side delays a retry for longer, in seconds.
const MAX_RETRY_AFTER: u32 = 86_400;

/// The consequence of a failure.
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

/// The failure as the task's history shows it: after a loss, the outcome of an attempt that must not be repeated is unknown.
pub fn classify(spec: &TaskSpec, failure: Failure) -> Failure {
    if failure.class.is_loss() { unreported(spec, failure) } else { failure }
}

/// The failure of an attempt that had begun and whose end nobody reported.
pub fn unreported(spec: &TaskSpec, failure: Failure) -> Failure {
    if spec.idempotent != Some(false) {
        return failure;
    }
    let message =
        format!("{}; what the attempt did is unknown, and the task is not idempotent", failure.message);
    Failure { class: ErrorClass::OutcomeUnknown, message, ..failure }
}

/// Decides what follows from the failure of the current attempt at a task. The failure was classified.
pub fn choose(spec: &TaskSpec, key: TaskKey, task: &Task, failure: &Failure) -> Choice {
    let policy = &spec.retry;
    if let Some(reason) = refusal(spec, failure) {
        return give_up(reason);
    }
    let (tries, allowed) = (task.tries(), retries_allowed(spec, failure.class));
    if tries > allowed {
        return give_up(match allowed {
            0 => "no retries are allowed".to_owned(),
            1 => "the one retry is used up".to_owned(),
            _ => format!("all {allowed} retries are used up"),
        });
    }
    let delay = match failure.class {
        ErrorClass::WorkerLost => TimeDelta::zero(),
        _ => delay(policy, key, tries).max(asked_for(failure)),
    };
    let total = total(allowed, task);
    Choice::Retry { delay, reason: format!("attempt {} of {total} follows", task.attempt + 1) }
}

/// Why the policy retries no failure like this one, whatever retries are left.
fn refusal(spec: &TaskSpec, failure: &Failure) -> Option<String> {
    let RetryPolicy { retry_exit_codes, no_retry_exit_codes, retry_on, no_retry_on, .. } = &spec.retry;
    if failure.class == ErrorClass::OutcomeUnknown {
        return Some("the task is not idempotent: a person decides whether it runs again".to_owned());
    }
    if let Some(code) = failure.exit_code.filter(|code| no_retry_exit_codes.contains(code)) {
        return Some(format!("exit code {code} is not retried"));
    }
    if let Some(pattern) = first_match(no_retry_on, failure) {
        return Some(format!("no_retry_on lists `{pattern}`"));
    }
    let is_listed = failure.exit_code.is_some_and(|code| retry_exit_codes.contains(&code))
        || first_match(retry_on, failure).is_some();
    match (is_listed, failure.class) {
        (true, _) => None,
        // The lists are about what a program reports; a loss is not its doing.
        (false, class) if class.is_loss() && spec.idempotent == Some(true) => None,
        (false, _) if !retry_exit_codes.is_empty() || !retry_on.is_empty() => {
            Some("neither retry_on nor retry_exit_codes lists it".to_owned())
        }
        (false, class) if class.is_retryable() => None,
        (false, ErrorClass::NotTaken) => Some("another attempt would not find a worker either".to_owned()),
        (false, _) => Some("a permanent error is not retried".to_owned()),
    }
}

fn first_match<'p>(patterns: &'p [FailurePattern], failure: &Failure) -> Option<&'p FailurePattern> {
    patterns.iter().find(|pattern| pattern.matches(failure))
}

/// The retries that the task allows after a failure of that class.
fn retries_allowed(spec: &TaskSpec, class: ErrorClass) -> u32 {
    let max_retries = spec.retry.max_retries;
    if class.is_loss() && spec.idempotent == Some(true) {
        max_retries.max(RETRIES_AFTER_LOSS)
    } else {
        max_retries
    }
}

/// The number of attempts a task may take in all: the total in "attempt 2 of 4".
///
/// The class of the last failure decides the budget, as it does in [`choose`].
pub fn attempts_allowed(spec: &TaskSpec, task: &Task) -> u32 {
    let last = task.failure.as_ref();
    total(last.map_or(spec.retry.max_retries, |failure| retries_allowed(spec, failure.class)), task)
}

/// Attempts that were handed back or voided by a clear use up no retry, so they raise the total, which is never below the
/// current attempt.
fn total(retries: u32, task: &Task) -> u32 {
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
        Backoff::Exponential => policy.multiplier.powi(attempt.min(63) as i32 - 1),
        Backoff::Linear => f64::from(attempt),
        Backoff::Constant => 1.0,
    };
    let plain = (policy.initial_delay_seconds * factor).min(policy.max_delay_seconds);
    let seconds = plain * (1.0 + policy.jitter * (2.0 * spread(key, attempt) - 1.0));
    TimeDelta::milliseconds((seconds.max(0.0) * 1000.0) as i64)
}

/// How long the other side asked to be left alone.
fn asked_for(failure: &Failure) -> TimeDelta {
    TimeDelta::seconds(failure.retry_after_seconds.unwrap_or_default().min(MAX_RETRY_AFTER).into())
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
            ..RetryPolicy::default()
        }
    }

    fn spec(max_retries: u32, idempotent: Option<bool>) -> TaskSpec {
        TaskSpec { retry: policy(max_retries, Backoff::Constant), idempotent, ..TaskSpec::default() }
    }

    fn task(attempt: u32) -> Task {
        Task { attempt, ..Task::pending(TaskIndex(0), model::Instant::UNIX_EPOCH) }
    }

    fn decide(spec: &TaskSpec, attempt: u32, failure: Failure) -> (ErrorClass, Choice) {
        let failure = classify(spec, failure);
        (failure.class, choose(spec, KEY, &task(attempt), &failure))
    }

    fn is_retried(spec: &TaskSpec, attempt: u32, failure: Failure) -> bool {
        matches!(decide(spec, attempt, failure).1, Choice::Retry { .. })
    }

    fn reason(spec: &TaskSpec, attempt: u32, failure: Failure) -> String {
        match decide(spec, attempt, failure).1 {
            Choice::Retry { reason, .. } | Choice::GiveUp { reason } => reason,
        }
    }

    fn exit(code: i32) -> Failure {
        Failure { exit_code: Some(code), ..Failure::of_program(format!("exited with code {code}")) }
    }

    #[test]
    fn the_attempts_allowed_are_never_fewer_than_the_attempts_made() {
        use ErrorClass::{Killed, OutcomeUnknown, Transient, WorkerLost};
        for (max_retries, idempotent, attempt, handed_back, voided, class, allowed) in [
            (0, None, 0, 0, 0, None, 1),
            (2, None, 1, 0, 0, None, 3),
            (0, None, 1, 0, 0, Some(WorkerLost), 1),
            (0, Some(true), 2, 0, 0, Some(WorkerLost), 4),
            (5, Some(true), 2, 0, 0, Some(WorkerLost), 6),
            (0, Some(true), 2, 0, 0, Some(Killed), 4),
            (0, Some(true), 2, 0, 0, Some(Transient), 2),
            (2, Some(false), 1, 0, 0, Some(OutcomeUnknown), 3),
            (0, None, 2, 1, 0, None, 2),
            (1, None, 4, 1, 2, None, 5),
        ] {
            let failure = class.map(|class| Failure::new(class, "x"));
            let task = Task { handed_back, voided, failure, ..task(attempt) };
            assert_eq!(attempts_allowed(&spec(max_retries, idempotent), &task), allowed, "{task:?}");
        }
    }

    #[test]
    fn a_retry_is_not_earlier_than_the_other_side_asked() {
        let throttled = |seconds| Failure {
            retry_after_seconds: Some(seconds),
            ..Failure::transient("429 Too Many Requests")
        };
        for (asked, waits) in [(0, 10), (3, 10), (90, 90), (u32::MAX, 86_400)] {
            let (_, choice) = decide(&spec(1, None), 1, throttled(asked));
            assert!(
                matches!(choice, Choice::Retry { delay, .. } if delay.num_seconds() == waits),
                "{choice:?}"
            );
        }
        assert!(!is_retried(&spec(0, None), 1, throttled(3)), "the usual rule decides whether");
    }

    #[test]
    fn every_failure_counts_against_max_retries() {
        use ErrorClass::{Killed, NotTaken, Permanent, ProgramFailed, Timeout, Transient, WorkerLost};
        for (max_retries, attempt, class, expected) in [
            (0, 1, Transient, false),
            (2, 1, Transient, true),
            (2, 2, ProgramFailed, true),
            (2, 3, Transient, false),
            (2, 1, Timeout, true),
            (5, 1, Permanent, false),
            (5, 1, NotTaken, false),
            (0, 1, Killed, false),
            (1, 1, Killed, true),
            (5, 3, Killed, true),
            (0, 1, WorkerLost, false),
            (1, 1, WorkerLost, true),
            (1, 2, WorkerLost, false),
        ] {
            let got = is_retried(&spec(max_retries, None), attempt, Failure::new(class, "x"));
            assert_eq!(got, expected, "{class:?} at attempt {attempt} of 1 + {max_retries}");
        }
    }

    #[test]
    fn an_idempotent_task_is_tried_again_three_times_after_a_loss() {
        for class in [ErrorClass::WorkerLost, ErrorClass::Killed] {
            let lost = || Failure::new(class, "x");
            for (attempt, expected) in [(1, true), (3, true), (4, false)] {
                assert_eq!(is_retried(&spec(0, Some(true)), attempt, lost()), expected, "attempt {attempt}");
            }
            assert!(is_retried(&spec(5, Some(true)), 5, lost()), "the policy may allow more");
        }
        assert!(!is_retried(&spec(0, Some(true)), 1, Failure::transient("x")), "only a loss is repeated");
    }

    #[test]
    fn after_a_loss_of_what_must_not_be_repeated_a_person_decides() {
        for class in [ErrorClass::WorkerLost, ErrorClass::Killed] {
            let (class, choice) = decide(&spec(5, Some(false)), 1, Failure::new(class, "worker died"));
            assert_eq!(class, ErrorClass::OutcomeUnknown);
            let reason = "the task is not idempotent: a person decides whether it runs again".to_owned();
            assert_eq!(choice, Choice::GiveUp { reason });
        }
        assert!(is_retried(&spec(1, Some(false)), 1, Failure::of_program("x")), "its outcome is known");
        let listed = RetryPolicy {
            retry_on: vec![FailurePattern::Class(ErrorClass::OutcomeUnknown)],
            ..policy(5, Backoff::Constant)
        };
        let spec = TaskSpec { retry: listed, ..spec(5, Some(false)) };
        assert!(!is_retried(&spec, 1, Failure::new(ErrorClass::WorkerLost, "x")), "no list overrides that");
    }

    #[test]
    fn exit_codes_and_patterns_refine_what_is_retried() {
        let pattern = |text: &str| FailurePattern::try_from(text.to_owned()).unwrap();
        let refined = |change: &dyn Fn(&mut RetryPolicy)| {
            let mut spec = spec(5, None);
            change(&mut spec.retry);
            spec
        };
        let usual = spec(5, None);
        assert!(is_retried(&usual, 1, exit(1)));
        assert_eq!(reason(&usual, 1, exit(127)), "exit code 127 is not retried");
        let only = refined(&|policy| policy.retry_exit_codes = vec![75]);
        assert!(is_retried(&only, 1, exit(75)));
        assert_eq!(reason(&only, 1, exit(1)), "neither retry_on nor retry_exit_codes lists it");
        assert!(!is_retried(&only, 1, Failure::transient("x")));
        let but = refined(&|policy| policy.no_retry_exit_codes = vec![2]);
        assert!(!is_retried(&but, 1, exit(2)) && is_retried(&but, 1, exit(127)));
        let listed = refined(&|policy| policy.retry_on = vec![pattern("permanent"), pattern("*code 3*")]);
        assert!(is_retried(&listed, 1, Failure::permanent("x")) && is_retried(&listed, 1, exit(3)));
        assert!(!is_retried(&listed, 1, exit(4)));
        let refused = refined(&|policy| policy.no_retry_on = vec![pattern("timeout"), pattern("*quota*")]);
        assert_eq!(
            reason(&refused, 1, Failure::new(ErrorClass::Timeout, "x")),
            "no_retry_on lists `timeout`"
        );
        assert_eq!(reason(&refused, 1, Failure::transient("Quota exceeded")), "no_retry_on lists `*quota*`");
        let both = refined(&|policy| {
            policy.retry_on = vec![pattern("transient")];
            policy.no_retry_on = vec![pattern("*quota*")];
        });
        assert!(
            is_retried(&both, 1, Failure::transient("x"))
                && !is_retried(&both, 1, Failure::transient("quota"))
        );
    }

    #[test]
    fn delays_grow_as_the_policy_says_up_to_its_longest() {
        for (backoff, multiplier, expected) in [
            (Backoff::Exponential, 2.0, [10, 20, 40, 60]),
            (Backoff::Exponential, 1.5, [10, 15, 22, 33]),
            (Backoff::Linear, 2.0, [10, 20, 30, 40]),
            (Backoff::Constant, 2.0, [10, 10, 10, 10]),
        ] {
            let policy = RetryPolicy { multiplier, ..policy(9, backoff) };
            let seconds = [1, 2, 3, 4].map(|attempt| delay(&policy, KEY, attempt).num_seconds());
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
        let (_, choice) =
            decide(&spec(0, Some(true)), 1, Failure::new(ErrorClass::WorkerLost, "worker died"));
        let reason = "attempt 2 of 4 follows".to_owned();
        assert_eq!(choice, Choice::Retry { delay: TimeDelta::zero(), reason });
    }
}

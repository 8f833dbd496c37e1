//! The time after which the platform ends a request, and with it the attempt.

use std::time::Duration;

use model::message::TaskDispatched;
use model::{ErrorClass, Failure, Instant, TaskSpec};

use crate::task_runners::Unfinished;

/// How long a process may continue after SIGTERM where there is a limit: an attempt ends 15 s before its request does, and the rest
/// of them is for its report.
const GRACE: Duration = Duration::from_secs(10);

/// The longest that an attempt may take here; none for no limit.
#[derive(Clone, Copy, Default)]
pub(crate) struct AttemptLimit(pub(crate) Option<Duration>);

impl AttemptLimit {
    /// How long an attempt with this timeout may take.
    pub(crate) fn cap(self, timeout: Duration) -> Duration {
        self.0.map_or(timeout, |longest| timeout.min(longest))
    }

    /// How long a process may continue after SIGTERM.
    pub(crate) fn grace(self, usual: Duration) -> Duration {
        self.0.map_or(usual, |_| usual.min(GRACE))
    }

    /// Says what to use instead, if an attempt with this timeout was ended by the limit. The failure is permanent: another attempt
    /// would end there as well.
    pub(crate) fn explain(self, timeout: Duration, unfinished: Unfinished) -> Unfinished {
        match (unfinished, self.0) {
            (Unfinished::Failed(failure), Some(longest))
                if failure.class == ErrorClass::Timeout && timeout > longest =>
            {
                let message = format!(
                    "the attempt took longer than {} s, which is all that this queue's service allows: split the task, let a \
                     sensor or `wait_for_signal` wait for work that runs elsewhere, or name a queue of the kind \
                     `pool`, whose workers take as long as they need",
                    longest.as_secs()
                );
                Unfinished::Failed(Failure { class: ErrorClass::Permanent, message, ..failure })
            }
            (other, _) => other,
        }
    }
}

/// How long the attempt may take: the timeout of one attempt, or the rest of the time for all attempts.
pub(crate) fn timeout_for(spec: &TaskSpec, work: &TaskDispatched, now: Instant) -> Duration {
    let one = Duration::from_secs(spec.timeout_seconds.into());
    let left = work.give_up_at.map(|end| (end - now).to_std().unwrap_or_default());
    left.map_or(one, |left| one.min(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: AttemptLimit = AttemptLimit(Some(Duration::from_secs(585)));

    fn explained(limit: AttemptLimit, timeout: u64, class: ErrorClass) -> String {
        let failed = Unfinished::Failed(Failure::new(class, "as it was"));
        match limit.explain(Duration::from_secs(timeout), failed) {
            Unfinished::Failed(failure) => failure.message,
            Unfinished::Stopped => String::new(),
        }
    }

    #[test]
    fn an_attempt_ends_before_the_platform_ends_it() {
        let hour = Duration::from_secs(3_600);
        assert_eq!(LIMIT.cap(hour), Duration::from_secs(585));
        assert_eq!(LIMIT.cap(Duration::from_secs(60)), Duration::from_secs(60));
        assert_eq!(AttemptLimit::default().cap(hour), hour);
    }

    #[test]
    fn only_an_attempt_that_the_limit_ended_says_what_to_use_instead() {
        let message = explained(LIMIT, 3_600, ErrorClass::Timeout);
        assert!(message.contains("585 s") && message.contains("`pool`"), "{message}");
        assert_eq!(explained(LIMIT, 60, ErrorClass::Timeout), "as it was");
        assert_eq!(explained(LIMIT, 3_600, ErrorClass::Transient), "as it was");
        assert_eq!(explained(AttemptLimit::default(), 3_600, ErrorClass::Timeout), "as it was");
    }
}

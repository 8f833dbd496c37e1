//! Circuit breakers: when one opens, when it lets a probe through, and what the probe's result means.
//!
//! ```text
//! closed ─ enough failures ─▶ open ─ the pause is over ─▶ probing ─ a success ─▶ closed
//!                              ▲                             │
//!                              └───────── a failure ─────────┘
//! ```
//!
//! The breaker of a task is a [`Limit`](model::Limit) whose slots follow from its state, so its queued tasks wait like those of any
//! other limit: closed it has no bound, open it has no slot, and while it probes it has one. An attempt that had its slot
//! before the breaker opened is refused when it is claimed ([`refuses`]), and waits again.

use chrono::TimeDelta;
use model::{
    Breaker, BreakerGate, BreakerKey, BreakerSpec, Child, ErrorClass, Failure, Instant, Opening, TaskIndex,
    TaskState, TenantId,
};

use crate::Command;
use crate::run_slice::RunSlice;

/// The maximum length of a remembered message, in characters.
const MAX_MESSAGE: usize = 500;

/// How many calls in a row must fail to open the breaker of a host.
pub const HOST_FAILURES: u32 = 10;

/// How long the breaker of a host blocks calls at first; the time doubles after each failed probe.
const FIRST_HOST_PAUSE: u32 = 5;

/// The maximum time that the breaker of a host blocks calls.
const MAX_HOST_PAUSE: u32 = 60;

/// How long a host's probe may take before another one may begin.
const PROBE_LEASE: TimeDelta = TimeDelta::seconds(30);

/// The end of an attempt at a task that has a breaker.
#[derive(Clone, PartialEq, Debug)]
pub struct AttemptEnd {
    /// The breaker of the task.
    pub key: BreakerKey,
    /// When that breaker opens.
    pub rule: BreakerSpec,
    /// Why the attempt failed; none if it succeeded.
    pub failure: Option<String>,
}

/// The ends of attempts in a slice that count for breakers, in order.
pub fn attempt_ends<'s>(slice: &'s RunSlice<'_>) -> &'s [AttemptEnd] {
    &slice.attempt_ends
}

/// Notes that an attempt at a task ended which was in that state, if the task has a breaker. Only an attempt that was under way
/// counts: one that waits for another run's execution would count a second time.
pub(crate) fn note(slice: &mut RunSlice<'_>, index: TaskIndex, before: TaskState, failure: Option<&Failure>) {
    let Some(rule) = slice.spec(index).breaker.filter(|_| before.holds_slots()) else { return };
    // Where the other side is busy, or no worker came, nothing was found broken.
    let is_harmless =
        |failure: &Failure| failure.retry_after_seconds.is_some() || failure.class == ErrorClass::NotTaken;
    if failure.is_some_and(is_harmless) {
        return;
    }
    let key = slice.graph.breaker(slice.run.tenant, index, slice.tasks[&index].child);
    let failure = failure.map(|failure| failure.message.clone());
    slice.attempt_ends.push(AttemptEnd { key, rule, failure });
}

/// The breaker that may refuse a claim; none if no attempt would begin, or its task has none.
pub fn gate_of(slice: &RunSlice<'_>, command: &Command) -> Option<BreakerKey> {
    let Command::Claim { task: index, attempt, .. } = command else { return None };
    let task = slice.tasks.get(index)?;
    let would_begin = task.state == TaskState::Dispatched && task.attempt == *attempt;
    let key = || slice.graph.breaker(slice.run.tenant, *index, task.child);
    (would_begin && slice.spec(*index).breaker.is_some()).then(key)
}

/// Adds a breaker that is not closed, which may refuse claims in this slice.
pub fn add_gate(slice: &mut RunSlice<'_>, gate: BreakerGate) {
    slice.gates.insert(gate.key.clone(), gate);
}

/// Why a claim does not begin an attempt; none if its breaker lets it through.
pub(crate) fn refusal(slice: &RunSlice<'_>, claim: &Command) -> Option<String> {
    let gate = slice.gates.get(&gate_of(slice, claim)?).filter(|gate| refuses(gate))?;
    Some(format!("the circuit breaker of `{}` is open", gate.key.name))
}

/// Whether a breaker keeps an attempt that has its slot from beginning. An attempt may have got the slot before the breaker
/// opened, and waited since for a pool or a worker. While the breaker probes, only one that has the slot alone begins, so there
/// is one probe, whichever attempt comes first.
pub fn refuses(gate: &BreakerGate) -> bool {
    !gate.probing || gate.used > 1
}

impl crate::Graph {
    /// The breaker that a task of a tenant's run has if its definition says so.
    pub(crate) fn breaker(&self, tenant: TenantId, index: TaskIndex, child: Option<Child>) -> BreakerKey {
        let named = self.spec(child.map_or(index, |child| child.of));
        BreakerKey::of_task(tenant, &self.workflow().name, &named.name)
    }
}

/// Records the end of an attempt.
pub fn record(breaker: &mut Breaker, end: &AttemptEnd, now: Instant) {
    let pause = end.rule.pause_seconds;
    match (&end.failure, breaker.open) {
        (Some(message), None) => {
            let window = TimeDelta::seconds(end.rule.window_seconds.into());
            breaker.failed_at.retain(|at| now - *at < window);
            breaker.failed_at.push(now);
            remember(breaker, message);
            if breaker.failed_at.len() >= end.rule.failures as usize {
                breaker.open = Some(opening(now, now, pause));
            }
        }
        (Some(message), Some(open)) if open.probing => {
            remember(breaker, message);
            breaker.open = Some(opening(open.since, now, pause));
        }
        (None, Some(open)) if open.probing => close(breaker),
        // An attempt that began before the breaker opened says nothing new.
        (Some(_), Some(_)) | (None, _) => {}
    }
}

/// The pause is over: a probe may begin.
pub fn end_pause(breaker: &mut Breaker, now: Instant) {
    if let Some(open) = breaker.open.as_mut().filter(|open| open.until <= now) {
        open.probing = true;
    }
}

/// Closes a breaker, and forgets the failures.
pub fn close(breaker: &mut Breaker) {
    *breaker = Breaker::closed(breaker.id, breaker.key.clone());
}

/// How many attempts at its task may be active; none for any number.
pub fn slots(breaker: &Breaker) -> Option<u32> {
    breaker.open.map(|open| u32::from(open.probing))
}

/// Opens the breaker of a host, for as long as it is open elsewhere already, if it is.
pub fn open_host(breaker: &mut Breaker, message: &str, now: Instant) -> Opening {
    if breaker.open.is_none() {
        breaker.failed_at = vec![now; HOST_FAILURES as usize];
        remember(breaker, message);
    }
    *breaker.open.get_or_insert_with(|| opening(now, now, FIRST_HOST_PAUSE))
}

/// Takes the probe of a host. Returns since and until when it is open, if it is not the caller's turn.
pub fn take_probe(open: &mut Opening, now: Instant) -> Result<(), Opening> {
    if now < open.until {
        return Err(*open);
    }
    *open = Opening { until: now + PROBE_LEASE, probing: true, ..*open };
    Ok(())
}

/// The probe of a host failed: its calls are blocked again, for longer.
pub fn fail_probe(open: &mut Opening, now: Instant) {
    *open = opening(open.since, now, MAX_HOST_PAUSE.min(open.pause_seconds.saturating_mul(2)));
}

/// Whether a breaker that was like `before` has just opened, or opened again.
pub fn has_opened(before: Option<Opening>, after: Option<Opening>) -> bool {
    after.is_some_and(|after| !after.probing) && before.is_none_or(|before| before.probing)
}

fn opening(since: Instant, now: Instant, pause_seconds: u32) -> Opening {
    let until = now + TimeDelta::seconds(pause_seconds.into());
    Opening { since, until, pause_seconds, probing: false }
}

fn remember(breaker: &mut Breaker, message: &str) {
    breaker.message = message.chars().take(MAX_MESSAGE).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: BreakerSpec = BreakerSpec { failures: 3, window_seconds: 60, pause_seconds: 300 };

    fn at(second: i64) -> Instant {
        Instant::from_timestamp(1_800_000_000 + second, 0).unwrap()
    }

    fn breaker() -> Breaker {
        Breaker::closed(1, BreakerKey::of_task(TenantId::DEFAULT, "etl", "load"))
    }

    fn end(failure: Option<&str>) -> AttemptEnd {
        AttemptEnd { key: breaker().key, rule: RULE, failure: failure.map(str::to_owned) }
    }

    fn fail(breaker: &mut Breaker, second: i64) {
        record(breaker, &end(Some("no")), at(second));
    }

    fn opened() -> Breaker {
        let mut breaker = breaker();
        [0, 1, 2].into_iter().for_each(|second| fail(&mut breaker, second));
        breaker
    }

    #[test]
    fn it_opens_after_enough_failures_within_the_window() {
        let mut breaker = breaker();
        for (second, is_open) in [(0, false), (59, false), (61, false), (62, true)] {
            fail(&mut breaker, second);
            assert_eq!(breaker.open.is_some(), is_open, "{second}");
        }
        let open = breaker.open.unwrap();
        assert_eq!((open.since, open.until, open.probing), (at(62), at(362), false));
        assert_eq!((slots(&breaker), breaker.message.as_str()), (Some(0), "no"));
    }

    #[test]
    fn a_success_in_between_resets_nothing() {
        let mut breaker = breaker();
        for second in [0, 1, 2] {
            fail(&mut breaker, second);
            record(&mut breaker, &end(None), at(second));
        }
        assert_eq!(slots(&breaker), Some(0));
    }

    #[test]
    fn one_probe_decides_after_the_pause() {
        let mut breaker = opened();
        end_pause(&mut breaker, at(301));
        assert_eq!(slots(&breaker), Some(0), "not before its end");
        end_pause(&mut breaker, at(302));
        assert_eq!(slots(&breaker), Some(1));
        fail(&mut breaker, 310);
        let open = breaker.open.unwrap();
        assert_eq!((open.since, open.until, open.probing), (at(2), at(610), false), "it opens again");
        end_pause(&mut breaker, at(610));
        record(&mut breaker, &end(None), at(611));
        assert_eq!((breaker.is_idle(), slots(&breaker)), (true, None));
    }

    #[test]
    fn attempts_that_began_before_it_opened_change_nothing() {
        let mut breaker = opened();
        let before = breaker.clone();
        fail(&mut breaker, 3);
        record(&mut breaker, &end(None), at(4));
        assert_eq!(breaker, before);
    }

    #[test]
    fn a_long_message_is_cut() {
        let mut breaker = breaker();
        record(&mut breaker, &end(Some(&"é".repeat(1_000))), at(0));
        assert_eq!(breaker.message.chars().count(), MAX_MESSAGE);
    }

    #[test]
    fn a_host_is_probed_by_one_caller_at_a_time_and_blocked_for_longer_each_time() {
        let mut breaker = Breaker::closed(1, BreakerKey::of_host(TenantId::DEFAULT, "api.example", 443));
        let mut open = open_host(&mut breaker, "refused", at(0));
        assert_eq!(open_host(&mut breaker, "again", at(3)), open, "it is open already");
        assert_eq!(breaker.message, "refused");
        assert_eq!(take_probe(&mut open, at(4)).unwrap_err().until, at(5));
        assert_eq!(take_probe(&mut open, at(5)), Ok(()));
        assert_eq!(take_probe(&mut open, at(6)).unwrap_err().until, at(35), "somebody else probes");
        fail_probe(&mut open, at(7));
        assert_eq!((open.since, open.until, open.probing), (at(0), at(17), false));
        for _ in 0..9 {
            fail_probe(&mut open, at(100));
        }
        assert_eq!(open.until, at(160), "a minute at most");
        assert_eq!(take_probe(&mut open, at(160)), Ok(()));
        assert_eq!(
            take_probe(&mut open, at(190)),
            Ok(()),
            "a probe that was given up does not block for ever"
        );
    }
}

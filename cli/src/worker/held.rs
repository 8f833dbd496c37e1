//! The attempts that a worker holds, their stop signals, and what the server says it holds.
//!
//! The two may differ for a while: the server may have taken an attempt away, and the response to a lease may have been lost
//! or may still be on its way. Leases are counted to tell the last two apart.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use execute::StopSignals;
use tokio::sync::watch;

use super::protocol::AttemptId;

/// The attempts that a worker holds.
pub(super) struct Held {
    state: Mutex<State>,
    /// The number of attempts, for those who wait until there are none.
    count: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    attempts: BTreeMap<AttemptId, Attempt>,
    /// Why all attempts are handed back, once they are.
    hand_back_reason: Option<String>,
    leases_begun: u64,
    leases_ended: u64,
    /// Attempts that only the server knows, with the number of leases begun when it first said so.
    unknown: BTreeMap<AttemptId, u64>,
}

#[derive(Default)]
struct Attempt {
    signals: StopSignals,
    is_lost: bool,
}

/// What to do after a heartbeat.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Differences {
    /// Attempts that were taken away, and were asked to stop.
    pub(super) lost: Vec<AttemptId>,
    /// Attempts that came with a lease whose response was lost: to be released.
    pub(super) unknown: Vec<AttemptId>,
}

impl Default for Held {
    fn default() -> Self {
        Self { state: Mutex::default(), count: watch::Sender::new(0) }
    }
}

impl Held {
    /// Records that a lease is requested: until its end, attempts of it may be on their way.
    pub(super) fn begin_lease(&self) {
        self.lock().leases_begun += 1;
    }

    /// Records the end of the lease, and the attempts that it brought. Returns their stop signals, in the same order.
    pub(super) fn end_lease(&self, leased: impl IntoIterator<Item = AttemptId>) -> Vec<StopSignals> {
        let mut state = self.lock();
        state.leases_ended += 1;
        let signals = leased.into_iter().map(|id| {
            let attempt = Attempt::default();
            if state.hand_back_reason.is_some() {
                attempt.signals.stop.cancel();
            }
            let signals = attempt.signals.clone();
            state.unknown.remove(&id);
            state.attempts.insert(id, attempt);
            signals
        });
        let signals = signals.collect();
        self.count.send_replace(state.attempts.len());
        signals
    }

    /// Removes an attempt whose end the server knows.
    pub(super) fn remove(&self, id: &AttemptId) {
        let mut state = self.lock();
        state.attempts.remove(id);
        self.count.send_replace(state.attempts.len());
    }

    /// The attempts, before a heartbeat: those that the response must list.
    pub(super) fn ids(&self) -> Vec<AttemptId> {
        self.lock().attempts.keys().cloned().collect()
    }

    /// Compares what was held before a heartbeat with what the server then said. Stops what was taken away.
    pub(super) fn compare(&self, before: &[AttemptId], server: &[AttemptId]) -> Differences {
        let mut guard = self.lock();
        let state = &mut *guard;
        let mut differences = Differences::default();
        for id in before.iter().filter(|id| !server.contains(id)) {
            if let Some(attempt) = state.attempts.get_mut(id).filter(|attempt| !attempt.is_lost) {
                attempt.is_lost = true;
                attempt.signals.stop.cancel();
                differences.lost.push(id.clone());
            }
        }
        state.unknown.retain(|id, _| server.contains(id));
        for id in server.iter().filter(|id| !state.attempts.contains_key(*id)) {
            let begun = *state.unknown.entry(id.clone()).or_insert(state.leases_begun);
            // Every lease that could have brought it has ended without it.
            if state.leases_ended >= begun {
                differences.unknown.push(id.clone());
            }
        }
        differences
    }

    /// Whether the server took the attempt away.
    pub(super) fn is_lost(&self, id: &AttemptId) -> bool {
        self.lock().attempts.get(id).is_none_or(|attempt| attempt.is_lost)
    }

    /// Stops all attempts, to hand them back.
    pub(super) fn hand_back(&self, reason: &str) {
        let mut state = self.lock();
        state.hand_back_reason.get_or_insert_with(|| reason.to_owned());
        state.attempts.values().for_each(|attempt| attempt.signals.stop.cancel());
    }

    /// Why attempts are handed back, if they are.
    pub(super) fn hand_back_reason(&self) -> Option<String> {
        self.lock().hand_back_reason.clone()
    }

    /// Kills all attempts that have not stopped.
    pub(super) fn kill(&self) {
        self.lock().attempts.values().for_each(|attempt| attempt.signals.kill.cancel());
    }

    /// The number of attempts.
    pub(super) fn count(&self) -> usize {
        *self.count.borrow()
    }

    /// Returns once no attempt is held.
    pub(super) async fn empty(&self) {
        // The sender is part of this value, so it is not dropped meanwhile.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }

    /// Whether the server may know of attempts that this worker does not.
    pub(super) fn has_unknown(&self) -> bool {
        !self.lock().unknown.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use model::RunId;
    use uuid::Uuid;

    use super::*;

    fn id(task: &str) -> AttemptId {
        AttemptId { run: RunId(Uuid::from_u128(1)), task: task.into(), attempt: 1 }
    }

    fn holding(tasks: &[&str]) -> Held {
        let held = Held::default();
        held.begin_lease();
        held.end_lease(tasks.iter().map(|task| id(task)));
        held
    }

    #[test]
    fn an_attempt_that_the_server_took_away_is_stopped_once() {
        let held = holding(&["a", "b"]);
        let lost = Differences { lost: vec![id("a")], ..Differences::default() };
        assert_eq!(held.compare(&held.ids(), &[id("b")]), lost);
        assert_eq!(held.compare(&held.ids(), &[id("b")]), Differences::default());
        assert!(held.is_lost(&id("a")) && !held.is_lost(&id("b")));
    }

    #[test]
    fn an_attempt_leased_during_a_heartbeat_is_not_stopped() {
        let held = holding(&[]);
        let before = held.ids();
        held.begin_lease();
        held.end_lease([id("a")]);
        assert_eq!(held.compare(&before, &[]), Differences::default());
    }

    #[test]
    fn an_unknown_attempt_is_released_once_no_lease_can_bring_it() {
        let held = holding(&[]);
        held.begin_lease();
        assert_eq!(held.compare(&[], &[id("a")]), Differences::default(), "it may be on its way");
        assert!(held.has_unknown());
        held.end_lease([]);
        let unknown = Differences { unknown: vec![id("a")], ..Differences::default() };
        assert_eq!(held.compare(&[], &[id("a")]), unknown);
        held.begin_lease();
        assert_eq!(held.compare(&[], &[id("a")]), unknown, "a later lease does not bring it");
        assert_eq!(held.compare(&[], &[]), Differences::default());
        assert!(!held.has_unknown());
    }

    #[test]
    fn an_attempt_that_arrives_late_is_not_released() {
        let held = holding(&[]);
        held.begin_lease();
        held.compare(&[], &[id("a")]);
        held.end_lease([id("a")]);
        assert_eq!(held.compare(&held.ids(), &[id("a")]), Differences::default());
    }

    #[test]
    fn an_attempt_that_arrives_while_all_are_handed_back_stops_at_once() {
        let held = Held::default();
        held.begin_lease();
        held.hand_back("it must stop");
        assert!(held.end_lease([id("a")])[0].stop.is_cancelled());
    }
}

//! The attempts that a worker has claimed, and their stop signals.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Mutex, MutexGuard};

use host::Verdict;
use model::TaskKey;
use store::Claim;
use tracing::info;

use crate::runner::StopSignals;

/// The attempts that a worker has claimed.
#[derive(Default)]
pub(crate) struct ClaimedAttempts(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    attempts: BTreeMap<(TaskKey, u32), ClaimedAttempt>,
    /// Why all attempts are handed back, once they are.
    hand_back_reason: Option<String>,
}

/// An attempt that is claimed, or about to be.
struct ClaimedAttempt {
    signals: StopSignals,
    /// Whether the store has confirmed the claim.
    confirmed: bool,
}

impl ClaimedAttempts {
    /// Reserves an attempt that is about to be claimed. Otherwise returns the verdict on its message: the attempt runs here
    /// already, since the message came twice, or another worker must take it.
    pub(crate) fn reserve(&self, key: TaskKey, attempt: u32) -> Result<StopSignals, Verdict> {
        let mut claims = self.lock();
        if let Some(reason) = &claims.hand_back_reason {
            return Err(Verdict::Retry(reason.clone()));
        }
        match claims.attempts.entry((key, attempt)) {
            Entry::Occupied(_) => Err(Verdict::Done),
            Entry::Vacant(entry) => {
                let signals = StopSignals::default();
                entry.insert(ClaimedAttempt { signals: signals.clone(), confirmed: false });
                Ok(signals)
            }
        }
    }

    /// Records that the store has confirmed the claim: from now on it lists the attempt as its own.
    pub(crate) fn confirm(&self, key: TaskKey, attempt: u32) {
        if let Some(claimed) = self.lock().attempts.get_mut(&(key, attempt)) {
            claimed.confirmed = true;
        }
    }

    /// Removes an attempt that has ended.
    pub(crate) fn remove(&self, key: TaskKey, attempt: u32) {
        self.lock().attempts.remove(&(key, attempt));
    }

    /// The attempts that the store must list as its own.
    pub(crate) fn confirmed(&self) -> Vec<(TaskKey, u32)> {
        let claims = self.lock();
        claims.attempts.iter().filter(|(_, claimed)| claimed.confirmed).map(|(key, _)| *key).collect()
    }

    /// Stops attempts that were confirmed and that the store no longer lists as its own.
    pub(crate) fn stop_revoked(&self, confirmed: &[(TaskKey, u32)], own: &[Claim]) {
        let is_own = |(key, attempt): &(TaskKey, u32)| {
            own.iter().any(|claim| claim.key == *key && claim.attempt == *attempt)
        };
        for revoked in confirmed.iter().filter(|attempt| !is_own(attempt)) {
            if let Some(claimed) = self.lock().attempts.get(revoked) {
                let (key, attempt) = revoked;
                info!("Stopping attempt {attempt} of a task of run {}: it was reassigned", key.run);
                claimed.signals.stop.cancel();
            }
        }
    }

    /// Attempts that the store lists as its own but that do not run here.
    pub(crate) fn orphaned(&self, own: &[Claim]) -> Vec<Claim> {
        let claims = self.lock();
        let runs_here = |claim: &&Claim| claims.attempts.contains_key(&(claim.key, claim.attempt));
        own.iter().filter(|claim| !runs_here(claim)).copied().collect()
    }

    /// Stops all attempts, to hand them back. No attempt can be reserved from now on.
    pub(crate) fn hand_back(&self, reason: &str) {
        let mut claims = self.lock();
        claims.hand_back_reason.get_or_insert_with(|| reason.to_owned());
        claims.attempts.values().for_each(|claimed| claimed.signals.stop.cancel());
    }

    /// Kills all attempts that have not stopped.
    pub(crate) fn kill(&self) {
        self.lock().attempts.values().for_each(|claimed| claimed.signals.kill.cancel());
    }

    /// Why attempts are handed back, if they are.
    pub(crate) fn hand_back_reason(&self) -> Option<String> {
        self.lock().hand_back_reason.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("no holder panics")
    }
}

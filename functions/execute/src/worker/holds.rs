//! The attempts that a worker holds, and their signals to stop.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Mutex, MutexGuard};

use host::Verdict;
use model::TaskKey;
use store::Claim;
use tokio_util::sync::CancellationToken;
use tracing::info;

/// An attempt's signals to stop: it is asked to, then killed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Halt {
    /// Cancelled when it should stop before it is done.
    pub(crate) stop: CancellationToken,
    /// Cancelled when there is no time left to stop gracefully.
    pub(crate) kill: CancellationToken,
}

/// The attempts that a worker holds.
#[derive(Default)]
pub(crate) struct Holds(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    attempts: BTreeMap<(TaskKey, u32), Hold>,
    /// Why all of it is handed back, once it is.
    handing_back: Option<String>,
}

/// An attempt that is about to be claimed, or was.
struct Hold {
    halt: Halt,
    claimed: bool,
}

impl Holds {
    /// Holds an attempt that is about to be claimed, or returns the verdict on its message: we hold it already, since the message
    /// came twice, or another worker must take it.
    pub(crate) fn add(&self, key: TaskKey, attempt: u32) -> Result<Halt, Verdict> {
        let mut held = self.lock();
        if let Some(why) = &held.handing_back {
            return Err(Verdict::Later(why.clone()));
        }
        match held.attempts.entry((key, attempt)) {
            Entry::Occupied(_) => Err(Verdict::Done),
            Entry::Vacant(place) => {
                let halt = Halt::default();
                place.insert(Hold { halt: halt.clone(), claimed: false });
                Ok(halt)
            }
        }
    }

    /// The attempt was claimed: from now on the store must know that it is ours.
    pub(crate) fn claimed(&self, key: TaskKey, attempt: u32) {
        if let Some(hold) = self.lock().attempts.get_mut(&(key, attempt)) {
            hold.claimed = true;
        }
    }

    /// Lets go of an attempt.
    pub(crate) fn let_go(&self, key: TaskKey, attempt: u32) {
        self.lock().attempts.remove(&(key, attempt));
    }

    /// Those that the store must know to be ours.
    pub(crate) fn all_claimed(&self) -> Vec<(TaskKey, u32)> {
        self.lock().attempts.iter().filter(|(_, hold)| hold.claimed).map(|(attempt, _)| *attempt).collect()
    }

    /// Stops those that were claimed and are not ours any more.
    pub(crate) fn stop_what_was_taken(&self, claimed: &[(TaskKey, u32)], ours: &[Claim]) {
        let is_ours = |(key, attempt): &(TaskKey, u32)| {
            ours.iter().any(|held| held.key == *key && held.attempt == *attempt)
        };
        for taken in claimed.iter().filter(|attempt| !is_ours(attempt)) {
            if let Some(hold) = self.lock().attempts.get(taken) {
                info!("Stopping attempt {} of a task of run {}: it is no longer ours", taken.1, taken.0.run);
                hold.halt.stop.cancel();
            }
        }
    }

    /// Attempts that are ours in the store and that nothing here runs.
    pub(crate) fn unknown(&self, ours: &[Claim]) -> Vec<Claim> {
        let held = self.lock();
        ours.iter().filter(|ours| !held.attempts.contains_key(&(ours.key, ours.attempt))).copied().collect()
    }

    /// Asks all of them to stop, to be handed back for this reason. Nothing is held any more from now on.
    pub(crate) fn hand_back(&self, why: &str) {
        let mut held = self.lock();
        held.handing_back.get_or_insert_with(|| why.to_owned());
        held.attempts.values().for_each(|hold| hold.halt.stop.cancel());
    }

    /// Kills all that was asked to stop and has not.
    pub(crate) fn kill(&self) {
        self.lock().attempts.values().for_each(|hold| hold.halt.kill.cancel());
    }

    /// Why what is held is handed back, if it is.
    pub(crate) fn handed_back(&self) -> Option<String> {
        self.lock().handing_back.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("nothing panics while it is held")
    }
}

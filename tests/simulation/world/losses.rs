//! A world in which messages are lost on purpose, not by random faults.

use std::collections::BTreeMap;

use model::{Instant, RunId};

use super::{MAX_DURATION, World};
use crate::check::End;

impl World {
    /// Whether any message is on its way that nobody sends again until it is answered.
    pub(crate) fn is_anything_in_flight(&self) -> bool {
        self.deliveries.iter().any(|delivery| !delivery.sure)
    }

    /// Loses all of these.
    pub(crate) fn lose_what_is_in_flight(&mut self) {
        self.deliveries.retain(|delivery| delivery.sure);
        self.wake_ups.clear();
    }

    /// Whether it has gone on for longer than any run may take.
    pub(crate) fn takes_too_long(&self) -> bool {
        // A wake-up that is lost costs up to an hour, until the next tick.
        let times = if self.shared.wake_ups.is_some() { 8 } else { 1 };
        self.now() > self.start + MAX_DURATION * times
    }

    /// How the runs that were asked for have ended, and when.
    pub(crate) fn ends(&self) -> BTreeMap<RunId, (End, Instant)> {
        let end = |run: &RunId| Some((*run, (self.observer.end_of(*run)?, self.observer.ended_at(*run)?)));
        self.runs.iter().filter_map(end).collect()
    }
}

//! Wake-ups: what calls the sweep when something is due.
//!
//! Rows in the store say what is due, and a wake-up says only that it is time to look. It may be lost, duplicated or late; the
//! scheduler's tick then finds what it would have found.

mod cloud_tasks;

use std::collections::BTreeSet;

use async_trait::async_trait;
use chrono::{DurationRound, TimeDelta};
use model::{Clock, Instant};
use tokio::sync::watch;

pub use cloud_tasks::{CloudTasks, Target};

use crate::Error;

/// A way to have the sweep called at an instant.
#[async_trait]
pub trait WakeUps: Send + Sync {
    /// Requests a call of the sweep at `due_at`, at the start of the next tenth of a second: never earlier. Many requests for
    /// one tenth result in one call.
    async fn request(&self, due_at: Instant) -> Result<(), Error>;

    /// Whether the sweep is called when it requested it. If not, it must stay up itself for what is due before the next tick.
    fn are_exact(&self) -> bool;
}

/// The scheduler calls the sweep every minute, whatever is requested.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ticks;

#[async_trait]
impl WakeUps for Ticks {
    async fn request(&self, _: Instant) -> Result<(), Error> {
        Ok(())
    }

    fn are_exact(&self) -> bool {
        false
    }
}

/// An alarm clock in the process of the sweep. Clones share the requests.
#[derive(Clone, Debug, Default)]
pub struct Alarm {
    requested: watch::Sender<BTreeSet<Instant>>,
}

#[async_trait]
impl WakeUps for Alarm {
    async fn request(&self, due_at: Instant) -> Result<(), Error> {
        let due_at = whole_tenth(due_at);
        self.requested.send_if_modified(|requested| requested.insert(due_at));
        Ok(())
    }

    fn are_exact(&self) -> bool {
        true
    }
}

impl Alarm {
    /// Resolves when the next requested instant has come. Requests that are due by then are fulfilled with it.
    pub async fn ring(&self, clock: &dyn Clock) {
        let mut requests = self.requested.subscribe();
        loop {
            let next = requests.borrow_and_update().first().copied();
            let rings = async {
                match next {
                    Some(next) => clock.wait_until(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = rings => break,
                // This value holds the sender.
                _ = requests.changed() => {}
            }
        }
        let now = clock.now();
        self.requested.send_modify(|requested| requested.retain(|due_at| *due_at > now));
    }
}

/// The first whole tenth of a second that is not before an instant. What is due is late by this much, so it is short; the sweep
/// stays for what is due within the next seconds, so calls are rarer than that.
fn whole_tenth(instant: Instant) -> Instant {
    let tenth = TimeDelta::milliseconds(100);
    match instant.duration_trunc(tenth) {
        Ok(start) if start < instant => start + tenth,
        Ok(start) => start,
        Err(_) => instant,
    }
}

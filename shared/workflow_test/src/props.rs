//! A bus and a clock of one's own: messages wait until they are taken, and time passes when it is told to.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bus::{Bus, Error};
use clock::Clock;
use model::{Instant, Message};

/// Messages that were published and not yet taken. Clones share one queue.
#[derive(Clone, Default)]
pub(crate) struct Queue(Arc<Mutex<Vec<Message>>>);

impl Queue {
    /// All that was published since the last time.
    pub(crate) fn take(&self) -> Vec<Message> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl Bus for Queue {
    async fn publish(&self, messages: &[Message]) -> Result<(), Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(messages);
        Ok(())
    }

    async fn ping(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// Virtual time, which never goes back. Clones show the same time.
#[derive(Clone)]
pub(crate) struct VirtualClock(Arc<Mutex<Instant>>);

impl VirtualClock {
    pub(crate) fn at(instant: Instant) -> Self {
        Self(Arc::new(Mutex::new(instant)))
    }

    /// Lets time pass until it is `instant`.
    pub(crate) fn reach(&self, instant: Instant) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *now = instant.max(*now);
    }
}

#[async_trait]
impl Clock for VirtualClock {
    fn now(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn wait_until(&self, instant: Instant) {
        self.reach(instant);
    }
}

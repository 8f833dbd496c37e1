//! A fake bus, which keeps messages until they are taken, and a clock that only moves on request.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bus::{Bus, Error};
use model::{Clock, Instant, Message};

/// Messages that were published and not taken yet. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct FakeBus(Arc<Mutex<Vec<Message>>>);

impl FakeBus {
    /// Everything published since the last call.
    pub(crate) fn take(&self) -> Vec<Message> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl Bus for FakeBus {
    async fn publish(&self, messages: &[Message]) -> Result<(), Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(messages);
        Ok(())
    }

    async fn ping(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// Virtual time, which never goes back. Clones share it.
#[derive(Clone)]
pub(crate) struct VirtualClock(Arc<Mutex<Instant>>);

impl VirtualClock {
    pub(crate) fn at(instant: Instant) -> Self {
        Self(Arc::new(Mutex::new(instant)))
    }

    /// Moves time forward to `instant`.
    pub(crate) fn advance_to(&self, instant: Instant) {
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
        self.advance_to(instant);
    }
}

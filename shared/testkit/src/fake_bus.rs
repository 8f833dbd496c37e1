//! Buses without receivers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bus::{Bus, Error};
use model::Message;

/// A bus that drops every message.
#[derive(Clone, Copy, Debug, Default)]
pub struct SilentBus;

#[async_trait]
impl Bus for SilentBus {
    async fn publish(&self, _: &[Message]) -> Result<(), Error> {
        Ok(())
    }

    async fn ping(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// Keeps every message for the test to read. Clones share the messages.
#[derive(Clone, Debug, Default)]
pub struct RecordingBus(Arc<Mutex<Vec<Message>>>);

impl RecordingBus {
    /// The messages published so far.
    pub fn published(&self) -> Vec<Message> {
        self.lock().clone()
    }

    /// Removes and returns the messages published since the last call.
    pub fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Message>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Bus for RecordingBus {
    async fn publish(&self, messages: &[Message]) -> Result<(), Error> {
        self.lock().extend_from_slice(messages);
        Ok(())
    }

    async fn ping(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// Accepts nothing and never answers: a process that publishes here hangs right after its commit.
#[derive(Clone, Copy, Debug, Default)]
pub struct HangingBus;

#[async_trait]
impl Bus for HangingBus {
    async fn publish(&self, _: &[Message]) -> Result<(), Error> {
        std::future::pending().await
    }

    async fn ping(&self) -> Result<(), Error> {
        Ok(())
    }
}

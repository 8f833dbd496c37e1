//! The bus of the simulated world: a bag of messages that the world delivers as it likes.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bus::{Bus, Error};
use model::Message;

use crate::scheduler::Points;

/// Messages that were published and not yet taken out by the world. Clones share one bag.
#[derive(Clone)]
pub(crate) struct Bag {
    points: Points,
    messages: Arc<Mutex<Vec<Message>>>,
}

impl Bag {
    pub(crate) fn new(points: Points) -> Self {
        Self { points, messages: Arc::default() }
    }

    pub(crate) fn take(&self) -> Vec<Message> {
        std::mem::take(&mut self.messages.lock().unwrap())
    }
}

#[async_trait]
impl Bus for Bag {
    /// One message at a time, so that a process can die with half of them published.
    async fn publish(&self, messages: &[Message]) -> Result<(), Error> {
        for message in messages {
            self.points.stop().await;
            self.messages.lock().unwrap().push(message.clone());
        }
        self.points.stop().await;
        Ok(())
    }

    async fn ping(&self) -> Result<(), Error> {
        Ok(())
    }
}

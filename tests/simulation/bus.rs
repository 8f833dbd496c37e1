//! The bus of the simulated world: a bag of messages that the world delivers as it likes.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bus::{Bus, Error};
use model::Message;

use crate::points::{Interrupted, Points};
use crate::weather::Point;

/// Messages that were published and not yet taken out by the world. Clones share one bag.
#[derive(Clone, Default)]
pub(crate) struct Bag(Arc<Mutex<Vec<Message>>>);

impl Bag {
    pub(crate) fn put(&self, message: Message) {
        self.0.lock().unwrap().push(message);
    }

    pub(crate) fn take(&self) -> Vec<Message> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// The bag as one instance reaches it.
pub(crate) struct SimulatedBus {
    pub(crate) bag: Bag,
    pub(crate) points: Points,
}

fn away(_: Interrupted) -> Error {
    Error::Unavailable("the world says so".into())
}

#[async_trait]
impl Bus for SimulatedBus {
    /// One message at a time, so that a process can die with half of them published.
    async fn publish(&self, messages: &[Message]) -> Result<(), Error> {
        self.points.stop(Point::BeforePublish).await.map_err(away)?;
        for (place, message) in messages.iter().enumerate() {
            if place > 0 {
                self.points.stop(Point::MidPublish).await.map_err(away)?;
            }
            self.bag.put(message.clone());
        }
        self.points.stop(Point::AfterPublish).await.map_err(away)
    }

    async fn ping(&self) -> Result<(), Error> {
        Ok(())
    }
}

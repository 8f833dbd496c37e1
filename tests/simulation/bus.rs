//! The bus of the simulated world: messages in flight, which the world delivers in any order, and requested wake-ups.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bus::{Bus, Error, WakeUps};
use model::{Instant, Message};

use crate::fault_points::{Interrupted, Points};
use crate::faults::Point;

/// Messages that were published and not taken yet. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct InFlight(Arc<Mutex<Vec<Message>>>);

impl InFlight {
    pub(crate) fn put(&self, message: Message) {
        self.0.lock().unwrap().push(message);
    }

    pub(crate) fn take(&self) -> Vec<Message> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// The bus as one instance reaches it.
pub(crate) struct SimulatedBus {
    pub(crate) in_flight: InFlight,
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
            self.in_flight.put(message.clone());
        }
        self.points.stop(Point::AfterPublish).await.map_err(away)
    }

    async fn ping(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// Wake-ups that were requested and not taken yet. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct RequestedWakeUps(Arc<Mutex<Vec<Instant>>>);

impl RequestedWakeUps {
    pub(crate) fn take(&self) -> Vec<Instant> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// The queue of wake-ups as one instance reaches it.
pub(crate) struct SimulatedWakeUps {
    pub(crate) requested: RequestedWakeUps,
    pub(crate) points: Points,
}

#[async_trait]
impl WakeUps for SimulatedWakeUps {
    async fn request(&self, due_at: Instant) -> Result<(), Error> {
        self.points.stop(Point::BeforePublish).await.map_err(away)?;
        self.requested.0.lock().unwrap().push(due_at);
        self.points.stop(Point::AfterPublish).await.map_err(away)
    }

    fn are_exact(&self) -> bool {
        true
    }
}

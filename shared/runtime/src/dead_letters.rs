//! Dead dead_letters: what they hold, and publishing it again.

use bus::envelope;
use model::{CloudEvent, Message};
use store::DeadLetter;

use crate::{Error, Heard, Result, Runtime};

/// What became of a dead letter to be published again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Replayed {
    /// It is on its way, and no dead letter any more.
    Sent,
    /// It holds no message of ours, for this reason: it stays.
    NoMessage(String),
}

/// The message that a dead letter holds, or why it holds none.
pub fn message_of(dead_letter: &DeadLetter) -> std::result::Result<Message, String> {
    envelope::reopen(dead_letter.body.as_bytes())
        .map(|delivery| delivery.message)
        .map_err(|rejected| rejected.reason)
}

impl Runtime {
    /// Publishes the message of a dead letter again, then throws the dead_letter away: a process that ends in between publishes it
    /// twice, which is harmless, and never loses it.
    pub async fn replay(&self, dead_letter: &DeadLetter) -> Result<Replayed> {
        let message = match message_of(dead_letter) {
            Ok(message) => message,
            Err(reason) => return replay_event(self, dead_letter, reason).await,
        };
        self.bus.publish(&[message]).await.map_err(Error::Bus)?;
        self.store.discard(&dead_letter.id).await?;
        Ok(Replayed::Sent)
    }
}

/// Lets triggers hear again of an event from elsewhere. It stays where they still can make nothing of it, or where all
/// of them have received it before.
async fn replay_event(runtime: &Runtime, dead_letter: &DeadLetter, reason: String) -> Result<Replayed> {
    let Ok(event) = serde_json::from_str::<CloudEvent>(&dead_letter.body) else {
        return Ok(Replayed::NoMessage(reason));
    };
    let received = runtime.triggers().receive(&event).await?;
    if let Some(complaint) = received.complaint() {
        return Ok(Replayed::NoMessage(complaint));
    }
    if received.heard.iter().all(|(_, heard)| *heard == Heard::Before) {
        return Ok(Replayed::NoMessage("every trigger that it concerns has received it before".into()));
    }
    runtime.store.discard(&dead_letter.id).await?;
    Ok(Replayed::Sent)
}

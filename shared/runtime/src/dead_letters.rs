//! Dead letters: the messages that they hold, replaying and discarding them.

use bus::envelope;
use model::{CloudEvent, Instant, Message};
use store::{DeadLetter, DeadLetterFilter};

use crate::{Error, Result, Runtime, TriggerOutcome};

/// The outcome of a replay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Replayed {
    /// The message was published, and the dead letter is deleted.
    Sent,
    /// It is not an Ebbflow message, for this reason, and stays.
    NoMessage(String),
}

/// An action on dead letters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BulkAction {
    /// Publish their messages again.
    Replay,
    /// Delete the dead letters.
    Discard,
}

/// The outcome of a bulk action.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BulkOutcome {
    /// How many dead letters it examined.
    pub matched: usize,
    /// The ids of those that are not Ebbflow messages and stay.
    pub left: Vec<String>,
    /// The last one that it examined, if there are more.
    pub last: Option<(Instant, String)>,
}

/// The message that a dead letter holds, or why it holds none.
pub fn message_of(dead_letter: &DeadLetter) -> std::result::Result<Message, String> {
    envelope::reopen(dead_letter.body.as_bytes())
        .map(|delivery| delivery.message)
        .map_err(|rejected| rejected.reason)
}

/// Replays and discards dead letters.
#[derive(Clone, Copy)]
pub struct DeadLetters<'r> {
    runtime: &'r Runtime,
}

impl Runtime {
    /// Dead letters: messages that could not be delivered or processed.
    pub fn dead_letters(&self) -> DeadLetters<'_> {
        DeadLetters { runtime: self }
    }
}

impl DeadLetters<'_> {
    /// Publishes the message of a dead letter again, then deletes the dead letter: a process that dies in between publishes
    /// it twice, which is harmless, and never loses it.
    pub async fn replay(self, dead_letter: &DeadLetter) -> Result<Replayed> {
        let message = match message_of(dead_letter) {
            Ok(message) => message,
            Err(reason) => return replay_event(self.runtime, dead_letter, reason).await,
        };
        self.runtime.bus.publish(&[message]).await.map_err(Error::Bus)?;
        self.runtime.store.discard(&dead_letter.id).await?;
        Ok(Replayed::Sent)
    }

    /// Deletes a dead letter.
    pub async fn discard(self, id: &str) -> Result<()> {
        self.runtime.store.discard(id).await?;
        Ok(())
    }

    /// Replays or discards the dead letters that pass a filter, newest first; a dry run only counts them.
    pub async fn replay_or_discard(
        self,
        action: BulkAction,
        filter: &DeadLetterFilter,
        dry_run: bool,
    ) -> Result<BulkOutcome> {
        let wanted = DeadLetterFilter { limit: filter.limit.saturating_add(1), ..filter.clone() };
        let mut found = self.runtime.store.dead_letters(&wanted).await?;
        let more = found.len() > filter.limit as usize;
        found.truncate(filter.limit as usize);
        let last = found.last().filter(|_| more).map(|letter| (letter.at, letter.id.clone()));
        let mut outcome = BulkOutcome { matched: found.len(), last, ..BulkOutcome::default() };
        for letter in found {
            let done = match action {
                BulkAction::Replay if dry_run => message_of(&letter).is_ok(),
                BulkAction::Replay => self.replay(&letter).await? == Replayed::Sent,
                BulkAction::Discard if dry_run => true,
                BulkAction::Discard => self.discard(&letter.id).await.map(|()| true)?,
            };
            if !done {
                outcome.left.push(letter.id);
            }
        }
        Ok(outcome)
    }
}

/// Delivers an event from outside to its triggers again. The dead letter stays if no trigger accepts the event, or if all
/// of them have received it before.
async fn replay_event(runtime: &Runtime, dead_letter: &DeadLetter, reason: String) -> Result<Replayed> {
    let Ok(event) = serde_json::from_str::<CloudEvent>(&dead_letter.body) else {
        return Ok(Replayed::NoMessage(reason));
    };
    let received = runtime.triggers().receive(&event).await?;
    if let Some(complaint) = received.complaint() {
        return Ok(Replayed::NoMessage(complaint));
    }
    if received.outcomes.iter().all(|(_, outcome)| *outcome == TriggerOutcome::Before) {
        return Ok(Replayed::NoMessage("every trigger that it concerns has received it before".into()));
    }
    runtime.store.discard(&dead_letter.id).await?;
    Ok(Replayed::Sent)
}

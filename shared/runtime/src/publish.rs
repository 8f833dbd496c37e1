//! Publishing after the commit. It never fails the caller: what is lost here, the sweep says again.

use model::Message;
use store::Committed;
use tracing::warn;

use crate::place::Granting;
use crate::{Result, Runtime};

/// What a commit left to be said: announcements, which follow from the rows themselves, outbox messages, and who was
/// granted a place.
#[derive(Default)]
pub(crate) struct Unsaid {
    pub(crate) announcements: Vec<Message>,
    pub(crate) committed: Committed,
}

impl Runtime {
    /// Publishes what a commit left to be said, marks outbox messages as sent, and tells those who were granted places.
    pub(crate) async fn publish(&self, unsaid: Unsaid) {
        let granted = self.say(unsaid).await;
        if let Err(error) = self.take_up(granted).await {
            warn!("Tasks that were granted places wait for the sweep: {error}");
        }
    }

    /// Publishes messages. Answers who was granted a place, and whether more may be.
    pub(crate) async fn say(&self, Unsaid { mut announcements, committed }: Unsaid) -> Granting {
        let (ids, outbox): (Vec<i64>, Vec<Message>) =
            committed.unsent.into_iter().map(|row| (row.id, row.message)).unzip();
        announcements.extend(outbox);
        if announcements.is_empty() {
            // Nothing to say.
        } else if let Err(error) = self.bus.publish(&announcements).await {
            warn!("{} messages wait for the sweep: {error}", announcements.len());
        } else if let Err(error) = self.mark_sent(&ids).await {
            warn!("{} messages will be sent again by the sweep: {error}", ids.len());
        }
        Granting { granted: committed.granted, again: committed.again }
    }

    /// Publishes outbox messages that their own process did not live to publish. Answers how many.
    pub async fn relay(&self, before: model::Instant, limit: u32) -> Result<usize> {
        let unsent = self.store.unsent(before, limit).await?;
        let (ids, messages): (Vec<i64>, Vec<Message>) =
            unsent.into_iter().map(|row| (row.id, row.message)).unzip();
        if !messages.is_empty() {
            self.bus.publish(&messages).await.map_err(crate::Error::Bus)?;
            self.mark_sent(&ids).await?;
        }
        Ok(ids.len())
    }

    async fn mark_sent(&self, ids: &[i64]) -> store::Result<()> {
        if ids.is_empty() { Ok(()) } else { self.store.sent(ids).await }
    }
}

//! Publishing after the commit. It never fails the caller: what is lost here, the sweep says again.

use model::Message;
use store::Unsent;
use tracing::warn;

use crate::{Result, Runtime};

/// What a commit left to be said: announcements, which follow from the rows themselves, and outbox messages.
#[derive(Default)]
pub(crate) struct Unsaid {
    pub(crate) announcements: Vec<Message>,
    pub(crate) unsent: Vec<Unsent>,
}

impl Runtime {
    /// Publishes what a commit left to be said, and marks outbox messages as sent.
    pub(crate) async fn publish(&self, Unsaid { mut announcements, unsent }: Unsaid) {
        let (ids, outbox): (Vec<i64>, Vec<Message>) =
            unsent.into_iter().map(|row| (row.id, row.message)).unzip();
        announcements.extend(outbox);
        if announcements.is_empty() {
            return;
        }
        if let Err(error) = self.bus.publish(&announcements).await {
            warn!("{} messages wait for the sweep: {error}", announcements.len());
        } else if let Err(error) = self.mark_sent(&ids).await {
            warn!("{} messages will be sent again by the sweep: {error}", ids.len());
        }
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

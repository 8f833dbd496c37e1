//! Messages that are committed and not yet published.

use async_trait::async_trait;
use model::{Instant, Message};

use super::Memory;
use super::tables::Tables;
use crate::{Outbox, Result, Unsent};

#[async_trait]
impl Outbox for Memory {
    async fn unsent(&self, before: Instant, limit: u32) -> Result<Vec<Unsent>> {
        let tables = self.shared.tables();
        let old = tables.outbox.iter().filter(|(_, (at, _))| *at <= before);
        Ok(old
            .map(|(id, (_, messages))| Unsent { id: *id, messages: messages.clone() })
            .take(limit as usize)
            .collect())
    }

    async fn sent(&self, ids: &[i64]) -> Result<()> {
        let mut tables = self.shared.tables();
        for id in ids {
            tables.outbox.remove(id);
        }
        Ok(())
    }
}

/// Writes the messages of a transaction into the outbox.
pub(super) fn post(tables: &mut Tables, messages: Vec<(Instant, Message)>) -> Option<Unsent> {
    let at = messages.iter().map(|(at, _)| *at).min()?;
    let messages: Vec<Message> = messages.into_iter().map(|(_, message)| message).collect();
    tables.last_post += 1;
    tables.outbox.insert(tables.last_post, (at, messages.clone()));
    Some(Unsent { id: tables.last_post, messages })
}

//! What happened to any run since somebody last asked.

use async_trait::async_trait;

use super::Memory;
use super::tables::Tables;
use crate::{ChangeFeed, FeedCursor, FeedItem, FeedPage, Result};

#[async_trait]
impl ChangeFeed for Memory {
    async fn news(&self, since: Option<&FeedCursor>, limit: u32) -> Result<Option<FeedPage>> {
        let tables = self.shared.tables();
        let cursor = FeedCursor(tables.written.len().to_string());
        let Some(since) = since else {
            return Ok(Some(FeedPage { items: Vec::new(), cursor, complete: true }));
        };
        let Some(new) = since.0.parse().ok().and_then(|from: usize| tables.written.get(from..)) else {
            return Ok(None);
        };
        let complete = new.len() <= limit as usize;
        let mut keys = new[..new.len().min(limit as usize)].to_vec();
        keys.sort_unstable();
        let items = keys.into_iter().filter_map(|key| tables.item(key)).collect();
        Ok(Some(FeedPage { items, cursor, complete }))
    }
}

impl Tables {
    /// What was written to a run's history at once, unless it is forgotten.
    fn item(&self, (run, first): (model::RunId, i64)) -> Option<FeedItem> {
        let (events, row) = (self.events.get(&(run, first))?.clone(), &self.runs.get(&run)?.run);
        Some(FeedItem {
            run,
            tenant: row.tenant,
            workflow: row.workflow.clone(),
            version: row.version,
            state: row.state,
            first,
            events,
        })
    }
}

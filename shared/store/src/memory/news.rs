//! What happened to any run since somebody last asked.

use async_trait::async_trait;

use super::Memory;
use super::tables::Tables;
use crate::{Bookmark, News, NewsItem, NewsStore, Result};

#[async_trait]
impl NewsStore for Memory {
    async fn news(&self, since: Option<&Bookmark>, limit: u32) -> Result<Option<News>> {
        let tables = self.shared.tables();
        let bookmark = Bookmark(tables.written.len().to_string());
        let Some(since) = since else {
            return Ok(Some(News { items: Vec::new(), bookmark, complete: true }));
        };
        let Some(new) = since.0.parse().ok().and_then(|from: usize| tables.written.get(from..)) else {
            return Ok(None);
        };
        let complete = new.len() <= limit as usize;
        let mut keys = new[..new.len().min(limit as usize)].to_vec();
        keys.sort_unstable();
        let items = keys.into_iter().filter_map(|key| tables.item(key)).collect();
        Ok(Some(News { items, bookmark, complete }))
    }
}

impl Tables {
    /// What was written to a run's history at once, unless it is forgotten.
    fn item(&self, (run, first): (model::RunId, i64)) -> Option<NewsItem> {
        let (events, row) = (self.events.get(&(run, first))?.clone(), &self.runs.get(&run)?.run);
        Some(NewsItem {
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

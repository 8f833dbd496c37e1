//! What happened to any run since somebody last asked: for whoever listens.

use async_trait::async_trait;
use model::{Event, RunId, RunState, TenantId, VersionId};

use crate::Result;

/// How far a reader of the news has come. Only the store that gave it knows what it says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FeedCursor(pub String);

/// What happened since a cursor.
#[derive(Clone, PartialEq, Debug)]
pub struct FeedPage {
    /// What happened to each run, by run and in order.
    pub items: Vec<FeedItem>,
    /// Where to go on.
    pub cursor: FeedCursor,
    /// Whether this is all of it. If too much has happened, the rest is not told.
    pub complete: bool,
}

/// What happened to one run in one transaction.
#[derive(Clone, PartialEq, Debug)]
pub struct FeedItem {
    /// The run.
    pub run: RunId,
    /// Whose it is.
    pub tenant: TenantId,
    /// The workflow's name.
    pub workflow: String,
    /// The version that it is of.
    pub version: VersionId,
    /// Where the run stands now.
    pub state: RunState,
    /// The number of the first of these events within the run; the others follow.
    pub first: i64,
    /// The events.
    pub events: Vec<Event>,
}

/// The news of a store.
#[async_trait]
pub trait ChangeFeed: Send + Sync {
    /// What was committed since the cursor, each thing once; without one, only where to begin. At most so many items.
    /// None for a cursor that is not one of this store.
    async fn news(&self, since: Option<&FeedCursor>, limit: u32) -> Result<Option<FeedPage>>;
}

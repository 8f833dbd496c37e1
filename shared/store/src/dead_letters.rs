//! Dead letters: messages that can never succeed.

use async_trait::async_trait;

use crate::{DeadLetter, DeadLetterFilter, Result};

/// Messages that can never succeed, kept until a person replays or discards them.
#[async_trait]
pub trait DeadLetters: Send + Sync {
    /// Keeps a message that can never succeed. The same message id again changes nothing.
    async fn insert_dead_letter(&self, dead_letter: &DeadLetter) -> Result<()>;

    /// The dead letter with that id.
    async fn dead_letter(&self, id: &str) -> Result<Option<DeadLetter>>;

    /// The dead letters that pass a filter, newest first.
    async fn dead_letters(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetter>>;

    /// Deletes a dead letter. Returns whether it was there.
    async fn discard(&self, id: &str) -> Result<bool>;
}

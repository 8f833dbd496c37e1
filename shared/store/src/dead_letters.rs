//! Dead dead_letters: messages that can never succeed.

use async_trait::async_trait;

use crate::{DeadLetter, DeadLetterFilter, Result};

/// Messages that can never succeed.
#[async_trait]
pub trait DeadLetters: Send + Sync {
    /// Keeps a message that can never succeed. The same message id again changes nothing.
    async fn insert_dead_letter(&self, dead_letter: &DeadLetter) -> Result<()>;

    /// One dead letter.
    async fn dead_letter(&self, id: &str) -> Result<Option<DeadLetter>>;

    /// Throws a dead letter away. Returns whether it was there.
    async fn discard(&self, id: &str) -> Result<bool>;
}

/// Dead dead_letters as people see them.
#[async_trait]
pub trait DeadLetterViews: Send + Sync {
    /// Dead dead_letters, newest first.
    async fn dead_letters(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetter>>;
}

//! How far attempts have come, for those that follow them.

use async_trait::async_trait;
use model::{Instant, TaskKey};
use serde_json::Value;

use crate::Result;

/// How far an attempt has come.
#[derive(Clone, PartialEq, Debug)]
pub struct Checkpoint {
    /// The attempt that said so.
    pub attempt: u32,
    /// When.
    pub at: Instant,
    /// What it said.
    pub data: Value,
}

/// The part of a store that is about checkpoints.
#[async_trait]
pub trait Checkpoints: Send + Sync {
    /// Keeps how far an attempt at a task has come, in place of what was kept before; what a later attempt said stays.
    /// Answers whether it was kept.
    async fn keep_checkpoint(&self, key: TaskKey, checkpoint: &Checkpoint) -> Result<bool>;

    /// How far the attempts at a task have come, if one said so.
    async fn checkpoint(&self, key: TaskKey) -> Result<Option<Checkpoint>>;
}

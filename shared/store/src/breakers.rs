//! Circuit breakers, whose state all processes share.

use async_trait::async_trait;
use model::{Breaker, BreakerGate, BreakerKey, BreakerRead};

use crate::Result;

/// Circuit breakers, outside a transaction.
#[async_trait]
pub trait Breakers: Send + Sync {
    /// Those of these breakers that remember a failure, without a lock.
    async fn breakers(&self, keys: &[BreakerKey]) -> Result<Vec<Breaker>>;
}

/// Reads and writes of breakers in a transaction; the engine decides.
#[async_trait]
pub trait TransactionBreakers: Send {
    /// Locks breakers, by id. They come after runs and before limits in the order of locks.
    async fn lock_breakers(&mut self, read: &BreakerRead) -> Result<Vec<Breaker>>;

    /// Those of these breakers of tasks that are not closed, without a lock.
    async fn breaker_gates(&mut self, keys: &[BreakerKey]) -> Result<Vec<BreakerGate>>;

    /// Writes breakers that were locked. One that remembers nothing is deleted.
    async fn save_breakers(&mut self, breakers: &[Breaker]) -> Result<()>;
}

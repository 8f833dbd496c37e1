//! Where processes share what they know of servers.

use async_trait::async_trait;
use model::{BreakerKey, Opening};
use runtime::Runtime;

/// The open breakers of hosts, as all processes share them. Failures are words for the process's log.
#[async_trait]
pub trait SharedBreakers: Send + Sync {
    /// Those of these breakers that are open.
    async fn read(&self, keys: &[BreakerKey]) -> Result<Vec<(BreakerKey, Opening)>, String>;

    /// Opens a breaker after calls failed repeatedly. Returns since and until when it is open.
    async fn open(&self, key: &BreakerKey, message: &str) -> Result<Opening, String>;

    /// Takes the probe of a host, unless it is not the caller's turn: then it returns since and until when the breaker is open.
    async fn take_probe(&self, key: &BreakerKey) -> Result<Result<(), Opening>, String>;

    /// Records the result of a probe. Returns since and until when the breaker is open.
    async fn end_probe(&self, key: &BreakerKey, failed: bool) -> Result<Option<Opening>, String>;
}

#[async_trait]
impl SharedBreakers for Runtime {
    async fn read(&self, keys: &[BreakerKey]) -> Result<Vec<(BreakerKey, Opening)>, String> {
        let found = self.slots().breakers().read(keys).await.map_err(words)?;
        Ok(found.into_iter().filter_map(|row| Some((row.key, row.open?))).collect())
    }

    async fn open(&self, key: &BreakerKey, message: &str) -> Result<Opening, String> {
        self.slots().breakers().open_host(key, message).await.map_err(words)
    }

    async fn take_probe(&self, key: &BreakerKey) -> Result<Result<(), Opening>, String> {
        self.slots().breakers().take_probe(key).await.map_err(words)
    }

    async fn end_probe(&self, key: &BreakerKey, failed: bool) -> Result<Option<Opening>, String> {
        self.slots().breakers().end_probe(key, failed).await.map_err(words)
    }
}

fn words(error: runtime::Error) -> String {
    error.to_string()
}

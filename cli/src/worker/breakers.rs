//! The breakers of hosts, which a worker shares with all others of its tenant through the API.

use api::execution::BreakerStep;
use async_trait::async_trait;
use execute::SharedBreakers;
use model::{BreakerKey, Opening};

use super::protocol::Protocol;

/// The maximum number of hosts in one request.
const MAX_HOSTS: usize = 100;

impl Protocol {
    /// A step about one host. Returns since and until when its breaker is open.
    async fn breaker_step(
        &self,
        step: BreakerStep,
        key: &BreakerKey,
        message: Option<&str>,
    ) -> Result<Option<Opening>, String> {
        let shared = self.breakers(step, vec![key.name.clone()], message.map(str::to_owned));
        let shared = shared.await.map_err(|error| error.to_string())?;
        Ok(shared.items.first().map(|open| open.opening()))
    }
}

#[async_trait]
impl SharedBreakers for Protocol {
    async fn read(&self, keys: &[BreakerKey]) -> Result<Vec<(BreakerKey, Opening)>, String> {
        let mut found = Vec::new();
        for keys in keys.chunks(MAX_HOSTS) {
            let hosts = keys.iter().map(|key| key.name.clone()).collect();
            let shared = self.breakers(BreakerStep::Read, hosts, None).await;
            let items = shared.map_err(|error| error.to_string())?.items;
            // The worker knows its only tenant by no id.
            let key = |host: &str| keys.iter().find(|key| key.name == host).cloned();
            found.extend(items.iter().filter_map(|open| Some((key(&open.host)?, open.opening()))));
        }
        Ok(found)
    }

    async fn open(&self, key: &BreakerKey, message: &str) -> Result<Opening, String> {
        let open = self.breaker_step(BreakerStep::Open, key, Some(message)).await?;
        open.ok_or_else(|| "the server opened no breaker".to_owned())
    }

    async fn take_probe(&self, key: &BreakerKey) -> Result<Result<(), Opening>, String> {
        let open = self.breaker_step(BreakerStep::Probe, key, None).await?;
        Ok(open.map_or(Ok(()), Err))
    }

    async fn end_probe(&self, key: &BreakerKey, failed: bool) -> Result<Option<Opening>, String> {
        let step = if failed { BreakerStep::ProbeFailed } else { BreakerStep::ProbePassed };
        self.breaker_step(step, key, None).await
    }
}

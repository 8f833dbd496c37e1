//! What the simulated store passes on although nobody asks for it there: what only the API needs.

use async_trait::async_trait;
use model::{Instant, TenantId};
use store::Result;

use crate::store::SimulatedStore;

/// Nobody asks for these through the API here, so nothing happens to them.
#[async_trait]
impl store::DeedStore for SimulatedStore {
    async fn note_deed(&self, deed: &store::Deed) -> Result<()> {
        self.inner.note_deed(deed).await
    }

    async fn deeds(&self, tenant: TenantId, filter: &store::DeedFilter) -> Result<Vec<(i64, store::Deed)>> {
        self.inner.deeds(tenant, filter).await
    }

    async fn forget_deeds(&self, before: Instant) -> Result<u64> {
        self.inner.forget_deeds(before).await
    }
}

#[async_trait]
impl store::NewsStore for SimulatedStore {
    async fn news(&self, since: Option<&store::Bookmark>, limit: u32) -> Result<Option<store::News>> {
        self.inner.news(since, limit).await
    }
}

#[async_trait]
impl store::ReceiptStore for SimulatedStore {
    async fn take_key(
        &self,
        key: &store::ReceiptKey,
        fingerprint: &str,
        at: Instant,
        stale: Instant,
        expired: Instant,
    ) -> Result<store::Known> {
        self.inner.take_key(key, fingerprint, at, stale, expired).await
    }

    async fn keep_receipt(&self, key: &store::ReceiptKey, receipt: Option<&store::Receipt>) -> Result<()> {
        self.inner.keep_receipt(key, receipt).await
    }

    async fn forget_receipts(&self, before: Instant) -> Result<u64> {
        self.inner.forget_receipts(before).await
    }
}

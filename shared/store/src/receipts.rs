//! Answers that are kept for a while, so that the same request again is answered alike and nothing is done twice.

use async_trait::async_trait;
use model::{Instant, TenantId};

use crate::Result;

/// Whose key it is: nobody is answered with what another one was told.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ReceiptKey {
    /// For whom they asked.
    pub tenant: TenantId,
    /// Who asked.
    pub actor: String,
    /// The key that they chose.
    pub key: String,
}

/// An answer that can be given again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receipt {
    /// Its status.
    pub status: u16,
    /// The headers that matter, in order.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

/// What is known of a request with a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Known {
    /// Nothing: whoever asked has to see to it.
    New,
    /// Somebody sees to it.
    UnderWay,
    /// It was answered.
    Answered(Receipt),
    /// The key came with another request.
    Other,
}

/// The receipts of a store.
#[async_trait]
pub trait ReceiptStore: Send + Sync {
    /// Takes a key for a request, unless it is known. Whoever took it before `stale` and has not answered is taken for
    /// dead, and receipts from before `expired` are as good as none.
    async fn take_key(
        &self,
        key: &ReceiptKey,
        fingerprint: &str,
        now: Instant,
        stale: Instant,
        expired: Instant,
    ) -> Result<Known>;

    /// Keeps the answer to the request with a key; none lets the key be used again.
    async fn keep_receipt(&self, key: &ReceiptKey, receipt: Option<&Receipt>) -> Result<()>;

    /// Deletes receipts from before an instant, a bounded number at a time. Answers how many.
    async fn forget_receipts(&self, before: Instant) -> Result<u64>;
}

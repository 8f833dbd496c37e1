//! Offers: dispatched tasks of remote queues. They are written with their tasks, by [`Transaction::save`](crate::Transaction::save)
//! and [`create`](crate::Transaction::create).

use async_trait::async_trait;
use model::{Candidate, Child, Instant, NewOffer, OfferGroup, TaskKey, TenantId, VersionId};

use crate::Result;

/// A task that a worker may claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OfferedTask {
    /// The task that is offered.
    pub key: TaskKey,
    /// The attempt that is to begin.
    pub attempt: u32,
    /// The workflow of its run.
    pub workflow: String,
    /// The version of its run.
    pub version: VersionId,
    /// Which child of which fan-out it is, if it is one.
    pub child: Option<Child>,
}

/// Dispatched tasks of remote queues, for workers that may take them.
#[async_trait]
pub trait Offers: Send + Sync {
    /// The groups with offers in a queue of a tenant, each once, however many offers it has.
    async fn offer_groups(&self, tenant: TenantId, queue: &str) -> Result<Vec<OfferGroup>>;

    /// The first offers of each of these groups by rank, at most `limit` of each, without those that are reserved at `now`.
    async fn first_offers(
        &self,
        tenant: TenantId,
        queue: &str,
        groups: &[OfferGroup],
        limit: u32,
        now: Instant,
    ) -> Result<Vec<Candidate>>;

    /// Reserves the first `limit` of these candidates that nobody else has reserved, and returns them in the same order. Of
    /// several callers at the same time none waits for another, and each gets other offers.
    async fn reserve_offers(
        &self,
        candidates: &[Candidate],
        limit: u32,
        now: Instant,
        until: Instant,
    ) -> Result<Vec<OfferedTask>>;

    /// Ends the reservations of these attempts, which nobody has claimed.
    async fn unreserve_offers(&self, attempts: &[(TaskKey, u32)]) -> Result<()>;

    /// The offers that are made from now on, by whichever process.
    async fn listen_for_offers(&self) -> Result<Box<dyn OfferFeed>>;
}

/// Offers as they are made.
#[async_trait]
pub trait OfferFeed: Send {
    /// The next offer; none if some may have been missed. After an error, the next call connects again.
    async fn next(&mut self) -> Result<Option<NewOffer>>;
}

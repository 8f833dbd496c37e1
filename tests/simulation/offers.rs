//! The invariants of offers: they are the dispatched tasks that workers may lease, and those before others in line go first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use engine::Graph;
use model::{Candidate, Instant, OfferGroup, TaskKey, TaskState, TenantId, VersionId};
use store::{Memory, OfferFeed, OfferedTask, Offers, Result};

use crate::check::{Checked, Replays, violation};
use crate::fault_points::now;
use crate::faults::Point;
use crate::leasing::Attempt;
use crate::store::{SimulatedStore, away};
use crate::workflows::LEASED_QUEUE;

/// More offers than any world has.
const ALL: u32 = 100_000;

/// What workers may take is exactly what is dispatched to them.
pub(crate) fn equal_the_dispatched_tasks(
    memory: &Memory,
    replays: &Replays,
    graphs: &BTreeMap<VersionId, Arc<Graph>>,
    tenants: &[TenantId],
) -> Checked {
    let mut dispatched = BTreeSet::new();
    for replay in replays.values() {
        let graph = &graphs[&replay.run.version];
        let tasks = replay.tasks.values().filter(|task| task.state == TaskState::Dispatched);
        let leased = tasks.filter(|task| graph.spec_at(task.index, task.child).leased);
        dispatched
            .extend(leased.map(|task| (TaskKey { run: replay.run.id, task: task.index }, task.attempt)));
    }
    let offered: BTreeSet<Attempt> = tenants.iter().flat_map(|tenant| all(memory, *tenant)).collect();
    if offered == dispatched {
        return Ok(());
    }
    let (kept, missing): (Vec<_>, Vec<_>) =
        (offered.difference(&dispatched).collect(), dispatched.difference(&offered).collect());
    violation("offers_equal_the_dispatched_tasks", format!("{kept:?} are offered, {missing:?} are not"))
}

fn all(memory: &Memory, tenant: TenantId) -> Vec<Attempt> {
    let groups = now(memory.offer_groups(tenant, LEASED_QUEUE)).unwrap();
    // By then, all reservations have ended.
    let offers = memory.first_offers(tenant, LEASED_QUEUE, &groups, ALL, Instant::MAX_UTC);
    now(offers).unwrap().into_iter().map(|offer| (offer.key, offer.attempt)).collect()
}

impl SimulatedStore {
    /// Notes it if the candidates of a group are not in their order, or one that was free is passed over.
    async fn check_order(
        &self,
        candidates: &[Candidate],
        reserved: &[OfferedTask],
        at: Instant,
    ) -> Result<()> {
        for (place, last) in candidates.iter().enumerate() {
            if !reserved.iter().any(|offered| offered.key == last.key) {
                continue;
            }
            for earlier in candidates[..place].iter().filter(|earlier| earlier.backfill == last.backfill) {
                // A reservation that ends at once shows whether it was free.
                let was_free =
                    !self.inner.reserve_offers(std::slice::from_ref(earlier), 1, at, at).await?.is_empty();
                if earlier.rank > last.rank || was_free {
                    self.ledger.note_passed_over(format!("{:?} for {:?}", earlier.key, last.key));
                }
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Offers for SimulatedStore {
    async fn offer_groups(&self, tenant: TenantId, queue: &str) -> Result<Vec<OfferGroup>> {
        self.points.stop(Point::Read).await.map_err(away)?;
        self.inner.offer_groups(tenant, queue).await
    }

    async fn first_offers(
        &self,
        tenant: TenantId,
        queue: &str,
        groups: &[OfferGroup],
        limit: u32,
        at: Instant,
    ) -> Result<Vec<Candidate>> {
        self.points.stop(Point::Read).await.map_err(away)?;
        self.inner.first_offers(tenant, queue, groups, limit, at).await
    }

    async fn reserve_offers(
        &self,
        candidates: &[Candidate],
        limit: u32,
        at: Instant,
        until: Instant,
    ) -> Result<Vec<OfferedTask>> {
        self.points.stop(Point::Write).await.map_err(away)?;
        let candidates = self.planted.candidates(candidates);
        let reserved = self.inner.reserve_offers(&candidates, limit, at, until).await?;
        self.check_order(&candidates, &reserved, at).await?;
        self.points.stop(Point::AfterWrite).await.map_err(away)?;
        Ok(reserved)
    }

    async fn unreserve_offers(&self, attempts: &[(TaskKey, u32)]) -> Result<()> {
        self.points.stop(Point::Write).await.map_err(away)?;
        self.inner.unreserve_offers(attempts).await
    }

    /// Workers of a simulated world ask again and again.
    async fn listen_for_offers(&self) -> Result<Box<dyn OfferFeed>> {
        self.inner.listen_for_offers().await
    }
}

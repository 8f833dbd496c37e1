//! Offers: dispatched tasks of remote queues, and who is notified of new ones.

use std::collections::BTreeSet;

use async_trait::async_trait;
use model::{Candidate, Changes, Demand, Instant, NewOffer, Offer, OfferGroup, TaskKey, TenantId};
use tokio::sync::broadcast::{self, error::RecvError};

use super::Memory;
use super::tables::Tables;
use crate::{Error, OfferFeed, OfferedTask, Offers, Result, normal};

/// The number of new offers that are kept for a process that is slow to receive them.
const MAX_BUFFERED: usize = 1_024;

/// An offer with what follows from its run.
#[derive(Clone)]
pub(super) struct OfferRow {
    tenant: TenantId,
    workflow: String,
    offer: Offer,
    reserved_until: Option<Instant>,
}

impl OfferRow {
    fn demand(&self) -> Demand {
        let Offer { kind, requires, .. } = &self.offer;
        Demand { workflow: self.workflow.clone(), kind: kind.clone(), requires: requires.clone() }
    }

    fn is_free(&self, now: Instant) -> bool {
        self.reserved_until.is_none_or(|until| until <= now)
    }
}

/// Sends new offers to those who listen.
pub(super) struct NewOffers(broadcast::Sender<NewOffer>);

impl Default for NewOffers {
    fn default() -> Self {
        Self(broadcast::Sender::new(MAX_BUFFERED))
    }
}

impl NewOffers {
    pub(super) fn publish<'a>(&self, offers: impl Iterator<Item = &'a OfferRow>) {
        for row in offers {
            let (tenant, queue) = (row.tenant, row.offer.queue.clone());
            // Sending fails only if nobody listens.
            let _ = self.0.send(NewOffer { tenant, queue, demand: row.demand() });
        }
    }
}

/// The rows that changes write; none deletes a row.
pub(super) fn written(changes: &Changes) -> impl Iterator<Item = (TaskKey, Option<OfferRow>)> {
    let run = &changes.run;
    let key = move |task| TaskKey { run: run.id, task };
    let withdrawn = changes.withdrawn_offers.iter().map(move |task| (key(*task), None));
    let made = changes.offers.iter().map(move |offer| {
        let (tenant, workflow) = (run.tenant, normal::text(&run.workflow).into_owned());
        let row = OfferRow { tenant, workflow, offer: offer.clone(), reserved_until: None };
        (key(offer.task), Some(row))
    });
    withdrawn.chain(made)
}

impl Tables {
    fn offers_in<'a>(
        &'a self,
        tenant: TenantId,
        queue: &'a str,
    ) -> impl Iterator<Item = (&'a TaskKey, &'a OfferRow)> {
        self.offers.iter().filter(move |(_, row)| row.tenant == tenant && row.offer.queue == queue)
    }

    fn group_of(&self, row: &OfferRow) -> OfferGroup {
        let backfill = row.offer.backfill;
        let weight = backfill.and_then(|id| self.backfills.get(&id)).map(|backfill| backfill.weight);
        OfferGroup { demand: row.demand(), backfill, weight }
    }

    fn offered(&self, key: TaskKey, row: &OfferRow) -> Option<OfferedTask> {
        let (task, run) = (self.tasks.get(&key)?, &self.runs.get(&key.run)?.run);
        Some(OfferedTask {
            key,
            attempt: row.offer.attempt,
            workflow: row.workflow.clone(),
            version: run.version,
            child: task.child,
        })
    }
}

#[async_trait]
impl Offers for Memory {
    async fn offer_groups(&self, tenant: TenantId, queue: &str) -> Result<Vec<OfferGroup>> {
        let (tables, mut seen) = (self.shared.tables(), BTreeSet::new());
        let mut groups: Vec<(_, OfferGroup)> = Vec::new();
        for (_, row) in tables.offers_in(tenant, queue) {
            let requires = serde_json::to_string(&row.offer.requires).unwrap_or_default();
            let key = (row.workflow.clone(), row.offer.backfill, row.offer.kind.clone(), requires);
            if seen.insert(key.clone()) {
                groups.push((key, tables.group_of(row)));
            }
        }
        groups.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(groups.into_iter().map(|(_, group)| group).collect())
    }

    async fn first_offers(
        &self,
        tenant: TenantId,
        queue: &str,
        groups: &[OfferGroup],
        limit: u32,
        now: Instant,
    ) -> Result<Vec<Candidate>> {
        let (tables, mut found) = (self.shared.tables(), Vec::new());
        for OfferGroup { demand, backfill, weight } in groups {
            let own = tables.offers_in(tenant, queue).filter(|(_, row)| {
                row.is_free(now) && row.demand() == *demand && row.offer.backfill == *backfill
            });
            let mut own: Vec<Candidate> = own
                .map(|(key, row)| Candidate {
                    key: *key,
                    attempt: row.offer.attempt,
                    rank: row.offer.rank,
                    backfill: *backfill,
                    weight: *weight,
                })
                .collect();
            own.sort_by_key(|candidate| (candidate.rank, candidate.key));
            found.extend(own.into_iter().take(limit as usize));
        }
        Ok(found)
    }

    async fn reserve_offers(
        &self,
        candidates: &[Candidate],
        limit: u32,
        now: Instant,
        until: Instant,
    ) -> Result<Vec<OfferedTask>> {
        let mut tables = self.shared.tables();
        let mut reserved = Vec::new();
        for candidate in candidates {
            let row = tables.offers.get_mut(&candidate.key);
            let free = row.filter(|row| row.offer.attempt == candidate.attempt && row.is_free(now));
            if let Some(row) = free.filter(|_| reserved.len() < limit as usize) {
                row.reserved_until = Some(until);
                let row = row.clone();
                reserved.extend(tables.offered(candidate.key, &row));
            }
        }
        Ok(reserved)
    }

    async fn unreserve_offers(&self, attempts: &[(TaskKey, u32)]) -> Result<()> {
        let mut tables = self.shared.tables();
        for (key, attempt) in attempts {
            let row = tables.offers.get_mut(key).filter(|row| row.offer.attempt == *attempt);
            row.into_iter().for_each(|row| row.reserved_until = None);
        }
        Ok(())
    }

    async fn listen_for_offers(&self) -> Result<Box<dyn OfferFeed>> {
        Ok(Box::new(Listener(self.shared.tables().new_offers.0.subscribe())))
    }
}

struct Listener(broadcast::Receiver<NewOffer>);

#[async_trait]
impl OfferFeed for Listener {
    async fn next(&mut self) -> Result<Option<NewOffer>> {
        match self.0.recv().await {
            Ok(offer) => Ok(Some(offer)),
            Err(RecvError::Lagged(_)) => Ok(None),
            Err(RecvError::Closed) => Err(Error::Unavailable(sqlx::Error::PoolClosed)),
        }
    }
}

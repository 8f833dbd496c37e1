//! Offers: dispatched tasks of remote queues, and the notification that makes them known to every process.

use async_trait::async_trait;
use model::{
    BackfillId, Candidate, Changes, Demand, Instant, Labels, NewOffer, Offer, OfferGroup, RunId, TaskKey,
    TenantId, VersionId,
};
use sqlx::postgres::{PgListener, PgNotification, PgRow};
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use super::Postgres;
use super::rows::{self, column, int, json};
use super::saves::gather;
use crate::{Error, OfferFeed, OfferedTask, Offers, Result, normal};

/// The channel of the notifications, which `upsert_offers.sql` sends.
const CHANNEL: &str = "offers_made";

#[async_trait]
impl Offers for Postgres {
    async fn offer_groups(&self, tenant: TenantId, queue: &str) -> Result<Vec<OfferGroup>> {
        let found = sqlx::query(include_str!("../../queries/list_offer_groups.sql"))
            .bind(tenant.0)
            .bind(normal::text(queue))
            .fetch_all(&self.pool)
            .await?;
        found.iter().map(group).collect()
    }

    async fn first_offers(
        &self,
        tenant: TenantId,
        queue: &str,
        groups: &[OfferGroup],
        limit: u32,
        now: Instant,
    ) -> Result<Vec<Candidate>> {
        let found = sqlx::query(include_str!("../../queries/read_first_offers.sql"))
            .bind(tenant.0)
            .bind(normal::text(queue))
            .bind(column(groups, |group| group.demand.workflow.clone()))
            .bind(column(groups, |group| stored(group.backfill)))
            .bind(column(groups, |group| group.demand.kind.clone()))
            .bind(column(groups, |group| json(&group.demand.requires)))
            .bind(now)
            .bind(i64::from(limit))
            .fetch_all(&self.pool)
            .await?;
        found.iter().map(|row| candidate(row, groups)).collect()
    }

    async fn reserve_offers(
        &self,
        candidates: &[Candidate],
        limit: u32,
        now: Instant,
        until: Instant,
    ) -> Result<Vec<OfferedTask>> {
        let found = sqlx::query(include_str!("../../queries/reserve_offers.sql"))
            .bind(column(candidates, |candidate| candidate.key.run.0))
            .bind(column(candidates, |candidate| int(candidate.key.task.0)))
            .bind(column(candidates, |candidate| int(candidate.attempt)))
            .bind(now)
            .bind(until)
            .bind(i64::from(limit))
            .fetch_all(&self.pool)
            .await?;
        found.iter().map(offered).collect()
    }

    async fn unreserve_offers(&self, attempts: &[(TaskKey, u32)]) -> Result<()> {
        sqlx::query(
            "update offers set reserved_until = null
               from unnest($1::uuid[], $2::int[], $3::int[]) as given (run, idx, attempt)
              where offers.run = given.run and offers.idx = given.idx and offers.attempt = given.attempt",
        )
        .bind(column(attempts, |(key, _)| key.run.0))
        .bind(column(attempts, |(key, _)| int(key.task.0)))
        .bind(column(attempts, |(_, attempt)| int(*attempt)))
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    async fn listen_for_offers(&self) -> Result<Box<dyn OfferFeed>> {
        let mut listener = PgListener::connect_with(&self.pool).await?;
        listener.listen(CHANNEL).await?;
        Ok(Box::new(Listener(listener)))
    }
}

/// One connection, however many workers wait.
struct Listener(PgListener);

#[async_trait]
impl OfferFeed for Listener {
    async fn next(&mut self) -> Result<Option<NewOffer>> {
        // None once the connection is lost; the driver opens another one.
        let notification = self.0.try_recv().await?;
        notification.as_ref().map(new_offer).transpose()
    }
}

fn new_offer(notification: &PgNotification) -> Result<NewOffer> {
    let unreadable = |error: serde_json::Error| Error::Unreadable { what: "offer", why: error.to_string() };
    let (tenant, queue, workflow, kind, requires): (i32, String, String, String, String) =
        serde_json::from_str(notification.payload()).map_err(unreadable)?;
    let requires = serde_json::from_str(&requires).map_err(unreadable)?;
    Ok(NewOffer { tenant: TenantId(tenant), queue, demand: Demand { workflow, kind, requires } })
}

/// Writes the offers of dispatched tasks, and deletes those of tasks that are dispatched no longer.
pub(super) async fn write(connection: &mut PgConnection, changes: &[Changes]) -> Result<()> {
    withdraw(connection, changes).await?;
    let mut rows: Vec<(&Changes, &Offer)> =
        changes.iter().flat_map(|each| each.offers.iter().map(move |offer| (each, offer))).collect();
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_by_key(|(each, offer)| (each.run.id, offer.task));
    sqlx::query(include_str!("../../queries/upsert_offers.sql"))
        .bind(column(&rows, |(each, _)| each.run.id.0))
        .bind(column(&rows, |(_, offer)| int(offer.task.0)))
        .bind(column(&rows, |(_, offer)| int(offer.attempt)))
        .bind(column(&rows, |(each, _)| each.run.tenant.0))
        .bind(column(&rows, |(_, offer)| normal::text(&offer.queue).into_owned()))
        .bind(column(&rows, |(each, _)| normal::text(&each.run.workflow).into_owned()))
        .bind(column(&rows, |(_, offer)| normal::text(&offer.kind).into_owned()))
        .bind(column(&rows, |(_, offer)| json(&offer.requires)))
        .bind(column(&rows, |(_, offer)| stored(offer.backfill)))
        .bind(column(&rows, |(_, offer)| offer.rank))
        .execute(connection)
        .await?;
    Ok(())
}

async fn withdraw(connection: &mut PgConnection, changes: &[Changes]) -> Result<()> {
    let mut rows = gather(changes, |each| each.withdrawn_offers.iter().copied());
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_unstable();
    sqlx::query(
        "delete from offers using unnest($1::uuid[], $2::int[]) as given (run, idx)
          where offers.run = given.run and offers.idx = given.idx",
    )
    .bind(column(&rows, |(run, _)| run.0))
    .bind(column(&rows, |(_, task)| int(task.0)))
    .execute(connection)
    .await?;
    Ok(())
}

/// A backfill as the column holds it: nil for a live task.
fn stored(backfill: Option<BackfillId>) -> Uuid {
    backfill.map_or(Uuid::nil(), |backfill| backfill.0)
}

fn group(row: &PgRow) -> Result<OfferGroup> {
    let requires: &str = row.try_get("requires")?;
    let unreadable = |error: serde_json::Error| Error::Unreadable { what: "offer", why: error.to_string() };
    let requires: Labels = serde_json::from_str(requires).map_err(unreadable)?;
    let backfill: Uuid = row.try_get("backfill")?;
    let weight: Option<i32> = row.try_get("weight")?;
    Ok(OfferGroup {
        demand: Demand { workflow: row.try_get("workflow")?, kind: row.try_get("kind")?, requires },
        backfill: (!backfill.is_nil()).then_some(BackfillId(backfill)),
        weight: weight.map(i32::unsigned_abs),
    })
}

fn candidate(row: &PgRow, groups: &[OfferGroup]) -> Result<Candidate> {
    let group = &groups[row.try_get::<i64, _>("place")? as usize - 1];
    Ok(Candidate {
        key: key(row)?,
        attempt: rows::number(row, "attempt")?,
        rank: row.try_get("rank")?,
        backfill: group.backfill,
        weight: group.weight,
    })
}

fn offered(row: &PgRow) -> Result<OfferedTask> {
    Ok(OfferedTask {
        key: key(row)?,
        attempt: rows::number(row, "attempt")?,
        workflow: row.try_get("workflow")?,
        version: VersionId(row.try_get("version")?),
        child: rows::child(row)?,
    })
}

fn key(row: &PgRow) -> Result<TaskKey> {
    Ok(TaskKey { run: RunId(row.try_get("run")?), task: model::TaskIndex(rows::number(row, "idx")?) })
}

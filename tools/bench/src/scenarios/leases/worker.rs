//! A worker that does nothing with its tasks: it leases and completes them over the real API.

use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::Result;
use api::execution::{CompleteBody, LeaseBody, LeaseView, LeasedView, StepView};
use ebb::client::Client;
use reqwest::header::HeaderMap;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::workflows::LEASED_QUEUE;

/// The longest wait that the server accepts.
pub(super) const MAX_WAIT_SECONDS: u32 = 55;

/// How long a lease of the load waits: at the end, it waits in vain.
const WAIT_SECONDS: u32 = 1;

/// How long requests took, in milliseconds.
#[derive(Default)]
pub(super) struct Timings {
    /// Leases that brought tasks.
    pub(super) leases: Vec<f64>,
    pub(super) reports: Vec<f64>,
    /// When the last report was confirmed.
    pub(super) last_report: Option<Instant>,
}

impl Timings {
    pub(super) fn and(mut self, other: Self) -> Self {
        self.leases.extend(other.leases);
        self.reports.extend(other.reports);
        self.last_report = self.last_report.max(other.last_report);
        self
    }

    fn add_report(&mut self, (took, at): (f64, Instant)) {
        self.reports.push(took);
        self.last_report = self.last_report.max(Some(at));
    }
}

pub(super) async fn lease(
    client: &Client,
    worker: &str,
    limit: usize,
    wait_seconds: u32,
) -> Result<LeaseView> {
    let body = LeaseBody {
        worker: worker.to_owned(),
        queue: LEASED_QUEUE.to_owned(),
        limit: Some(limit as u32),
        wait_seconds: Some(wait_seconds),
        ..LeaseBody::default()
    };
    Ok(client.post(&["execution", "lease"], HeaderMap::new(), &body).await?)
}

pub(super) async fn complete(client: &Client, worker: &str, leased: &LeasedView) -> Result<()> {
    let (run, attempt) = (leased.run.to_string(), leased.attempt.to_string());
    let body = CompleteBody { worker: worker.to_owned(), output: Value::Null };
    let path = ["execution", &run, &leased.task, &attempt, "complete"];
    let _: StepView = client.post(&path, HeaderMap::new(), &body).await?;
    Ok(())
}

/// Leases and completes tasks until all workers together have leased as many as were `left`. Like `ebb worker`, it leases as
/// many at a time as it has free slots.
pub(super) async fn run(
    client: Arc<Client>,
    name: String,
    slots: usize,
    left: Arc<AtomicUsize>,
) -> Result<Timings> {
    let (slots, name): (_, Arc<str>) = (Arc::new(Semaphore::new(slots)), name.into());
    let (mut timings, mut reports) = (Timings::default(), JoinSet::new());
    while left.load(Ordering::Relaxed) > 0 {
        let first = slots.clone().acquire_owned().await?;
        let more = iter::from_fn(|| slots.clone().try_acquire_owned().ok());
        let free: Vec<_> = iter::once(first).chain(more).collect();
        let started = Instant::now();
        let leased = lease(&client, &name, free.len(), WAIT_SECONDS).await?.items;
        if !leased.is_empty() {
            timings.leases.push(milliseconds_since(started));
            left.fetch_sub(leased.len(), Ordering::Relaxed);
        }
        for (leased, slot) in leased.into_iter().zip(free) {
            let (client, name) = (client.clone(), name.clone());
            reports.spawn(async move {
                let started = Instant::now();
                complete(&client, &name, &leased).await?;
                drop(slot);
                anyhow::Ok((milliseconds_since(started), Instant::now()))
            });
        }
        while let Some(report) = reports.try_join_next() {
            timings.add_report(report??);
        }
    }
    while let Some(report) = reports.join_next().await {
        timings.add_report(report??);
    }
    Ok(timings)
}

fn milliseconds_since(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1e3
}

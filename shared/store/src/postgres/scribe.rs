//! Writing the audit log: deeds that come while others are written are written together, in one statement.

use std::sync::{Arc, Mutex, PoisonError};

use sqlx::PgPool;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Semaphore, oneshot};

use super::rows::{self, column};
use crate::{Deed, Result};

/// A deed that waits to be written, and whom to tell.
type Waiting = (Deed, oneshot::Sender<()>);

/// Whoever brings a deed waits for a turn, and writes all that are there by then. Idle, it waits for nothing.
#[derive(Clone, Debug)]
pub(super) struct Scribe {
    waiting: Arc<Mutex<Vec<Waiting>>>,
    turn: Arc<Semaphore>,
}

impl Default for Scribe {
    fn default() -> Self {
        Self { waiting: Arc::default(), turn: Arc::new(Semaphore::new(1)) }
    }
}

impl Scribe {
    /// Writes a deed, perhaps with others.
    pub(super) async fn note(&self, pool: &PgPool, deed: Deed) -> Result<()> {
        let (told, mut heard) = oneshot::channel();
        self.list().push((deed.clone(), told));
        let turn = self.turn.clone().acquire_owned().await.expect("turns never end");
        let batch = match heard.try_recv() {
            Ok(()) => return Ok(()),
            Err(TryRecvError::Closed) => Vec::new(),
            Err(TryRecvError::Empty) => std::mem::take(&mut *self.list()),
        };
        let pool = pool.clone();
        // Whoever goes away meanwhile leaves nobody in doubt.
        let written = tokio::spawn(async move {
            let _turn = turn;
            if batch.len() > 1 && write(&pool, batch.iter().map(|(deed, _)| deed)).await.is_ok() {
                for (_, told) in batch {
                    // Who has gone away need not be told.
                    let _ = told.send(());
                }
                return Ok(());
            }
            // With others it could not be written: what is wrong with it, each hears alone.
            drop(batch);
            write(&pool, std::iter::once(&deed)).await
        });
        written.await.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()))
    }

    fn list(&self) -> std::sync::MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn write(pool: &PgPool, deeds: impl Iterator<Item = &Deed>) -> Result<()> {
    let deeds: Vec<&Deed> = deeds.collect();
    sqlx::query(include_str!("../../queries/insert_deeds.sql"))
        .bind(column(&deeds, |deed| deed.tenant.0))
        .bind(column(&deeds, |deed| deed.at))
        .bind(column(&deeds, |deed| deed.actor.clone()))
        .bind(column(&deeds, |deed| deed.origin.clone()))
        .bind(column(&deeds, |deed| deed.forwarded.clone()))
        .bind(column(&deeds, |deed| deed.agent.clone()))
        .bind(column(&deeds, |deed| deed.action.clone()))
        .bind(column(&deeds, |deed| deed.target.clone()))
        .bind(column(&deeds, |deed| deed.key.clone()))
        .bind(column(&deeds, |deed| i32::from(deed.status)))
        .bind(column(&deeds, |deed| deed.before.as_ref().map(rows::json)))
        .bind(column(&deeds, |deed| deed.after.as_ref().map(rows::json)))
        .execute(pool)
        .await?;
    Ok(())
}

//! Writing the audit log: entries that arrive while others are being written are written together, in one statement.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use sqlx::PgPool;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Semaphore, oneshot};

use crate::{AuditEntry, Result};

/// An entry to write, and its sender to notify.
type Pending = (AuditEntry, oneshot::Sender<()>);

/// Each sender waits for its turn and writes everything that is pending by then. An idle writer delays nothing.
pub(crate) struct Writer {
    pending: Mutex<Vec<Pending>>,
    turn: Arc<Semaphore>,
}

impl Default for Writer {
    fn default() -> Self {
        Self { pending: Mutex::default(), turn: Arc::new(Semaphore::new(1)) }
    }
}

impl Writer {
    /// Writes an entry, perhaps together with others.
    pub(crate) async fn write(&self, pool: &PgPool, entry: AuditEntry) -> Result<()> {
        let (notify, mut written) = oneshot::channel();
        self.pending().push((entry.clone(), notify));
        let turn = self.turn.clone().acquire_owned().await.expect("the semaphore is never closed");
        let batch = match written.try_recv() {
            Ok(()) => return Ok(()),
            Err(TryRecvError::Closed) => Vec::new(),
            Err(TryRecvError::Empty) => std::mem::take(&mut *self.pending()),
        };
        let pool = pool.clone();
        // In a task of its own: a sender that goes away must not leave the others without a result.
        let written = tokio::spawn(async move {
            let _turn = turn;
            if batch.len() > 1 && insert(&pool, batch.iter().map(|(entry, _)| entry)).await.is_ok() {
                for (_, notify) in batch {
                    // The sender may have gone away.
                    let _ = notify.send(());
                }
                return Ok(());
            }
            // The batch failed: dropping it makes each sender write its own entry and get its own error.
            drop(batch);
            insert(&pool, std::iter::once(&entry)).await
        });
        written.await.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()))
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Vec<Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn insert(pool: &PgPool, entries: impl Iterator<Item = &AuditEntry>) -> Result<()> {
    let entries: Vec<&AuditEntry> = entries.collect();
    let text = |value: &Option<Value>| value.as_ref().map(Value::to_string);
    sqlx::query(include_str!("../../queries/insert_audit_entries.sql"))
        .bind(column(&entries, |entry| entry.tenant.0))
        .bind(column(&entries, |entry| entry.at))
        .bind(column(&entries, |entry| entry.actor.clone()))
        .bind(column(&entries, |entry| entry.origin.clone()))
        .bind(column(&entries, |entry| entry.forwarded.clone()))
        .bind(column(&entries, |entry| entry.agent.clone()))
        .bind(column(&entries, |entry| entry.action.clone()))
        .bind(column(&entries, |entry| entry.target.clone()))
        .bind(column(&entries, |entry| entry.key.clone()))
        .bind(column(&entries, |entry| i32::from(entry.status)))
        .bind(column(&entries, |entry| text(&entry.before)))
        .bind(column(&entries, |entry| text(&entry.after)))
        .execute(pool)
        .await?;
    Ok(())
}

/// One column of many entries, to be unnested.
fn column<C>(entries: &[&AuditEntry], value: impl Fn(&AuditEntry) -> C) -> Vec<C> {
    entries.iter().map(|entry| value(entry)).collect()
}

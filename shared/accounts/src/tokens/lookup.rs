//! Looking up service tokens: those that arrive while others are being looked up are looked up together, in one statement. However
//! many tokens strangers invent, they use one connection.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use auth::service_token::Hash;
use sqlx::PgPool;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Semaphore, oneshot};

use super::{TokenRecord, read};
use crate::{Error, Result};

/// A token to look up, and who waits for it.
type Pending = (Hash, oneshot::Sender<Result<Option<TokenRecord>>>);

/// Each sender waits for its turn and looks up everything that is pending by then. If nobody else asks, nothing is delayed.
pub(crate) struct Lookup {
    pending: Mutex<Vec<Pending>>,
    turn: Arc<Semaphore>,
}

impl Default for Lookup {
    fn default() -> Self {
        Self { pending: Mutex::default(), turn: Arc::new(Semaphore::new(1)) }
    }
}

impl Lookup {
    /// The token with a hash, if there is one.
    pub(crate) async fn find(&self, pool: &PgPool, hash: Hash) -> Result<Option<TokenRecord>> {
        let (notify, mut found) = oneshot::channel();
        self.pending().push((hash, notify));
        let turn = self.turn.clone().acquire_owned().await.expect("the semaphore is never closed");
        match found.try_recv() {
            Ok(found) => return found,
            Err(TryRecvError::Closed) => return Err(failed("another lookup was interrupted")),
            Err(TryRecvError::Empty) => {}
        }
        let (batch, pool) = (std::mem::take(&mut *self.pending()), pool.clone());
        // In a task of its own: a sender that goes away must not leave the others without a result.
        tokio::spawn(async move {
            let _turn = turn;
            let found = select(&pool, batch.iter().map(|(hash, _)| *hash).collect()).await;
            for (hash, notify) in batch {
                let of_one = match &found {
                    Ok(records) => Ok(records.get(&hash).cloned()),
                    Err(error) => Err(failed(&error.to_string())),
                };
                // The sender may have gone away.
                let _ = notify.send(of_one);
            }
        });
        found.await.unwrap_or_else(|_| Err(failed("the lookup was interrupted")))
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Vec<Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lookup of many failed: each of them may be tried again.
fn failed(why: &str) -> Error {
    Error::Unavailable(sqlx::Error::Io(io::Error::other(why)))
}

async fn select(pool: &PgPool, hashes: Vec<Hash>) -> Result<BTreeMap<Hash, TokenRecord>> {
    let found = sqlx::query(
        "select service_tokens.*, tenants.name as tenant_name
           from service_tokens left join tenants on tenants.id = tenant where hash = any ($1)",
    )
    .bind(hashes.iter().map(<[u8; 32]>::as_slice).collect::<Vec<_>>())
    .fetch_all(pool)
    .await?;
    let record = |row| read(row).map(|record| (record.hash, record));
    found.iter().map(record).collect()
}

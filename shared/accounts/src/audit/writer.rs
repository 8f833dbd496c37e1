//! Writing the audit log: entries that arrive while others are being written are written together, in one statement.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use serde_json::Value;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{PgPool, Postgres};
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

type Bound = Query<'static, Postgres, PgArguments>;

/// A column of the table: its name, the type in which it is bound, what that is cast to, and its values.
struct Column {
    name: &'static str,
    kind: &'static str,
    cast: &'static str,
    bind: fn(Bound, &[&AuditEntry]) -> Bound,
}

macro_rules! columns {
    ($($name:literal $kind:literal $($cast:literal)? = |$entry:ident| $value:expr;)*) => {
        &[$(Column {
            name: $name,
            kind: $kind,
            cast: concat!($($cast)?),
            bind: |query, entries| query.bind(entries.iter().map(|$entry| $value).collect::<Vec<_>>()),
        }),*]
    };
}

/// The columns of an entry, named once: the statement, and the order in which they are bound, follow.
const COLUMNS: &[Column] = columns! {
    "tenant" "int" = |entry| entry.tenant.0;
    "at" "timestamptz" = |entry| entry.at;
    "actor" "text" = |entry| entry.actor.clone();
    "origin" "text" = |entry| entry.origin.clone();
    "forwarded" "text" = |entry| entry.forwarded.clone();
    "agent" "text" = |entry| entry.agent.clone();
    "action" "text" = |entry| entry.action.clone();
    "target" "text" = |entry| entry.target.clone();
    "key" "text" = |entry| entry.key.clone();
    "status" "int" = |entry| i32::from(entry.status);
    "before" "text" "::json" = |entry| entry.before.as_ref().map(Value::to_string);
    "after" "text" "::json" = |entry| entry.after.as_ref().map(Value::to_string);
};

/// Appends entries, in the order in which they were sent.
static INSERT: LazyLock<String> = LazyLock::new(|| {
    let list =
        |part: fn((usize, &Column)) -> String| (1..).zip(COLUMNS).map(part).collect::<Vec<_>>().join(", ");
    let names = list(|(_, column)| column.name.to_owned());
    let values = list(|(_, column)| format!("{}{}", column.name, column.cast));
    let parameters = list(|(number, column)| format!("${number}::{}[]", column.kind));
    format!(
        "insert into audit_entries ({names}) select {values}
           from unnest({parameters}) with ordinality as given ({names}, place)
          order by place"
    )
});

async fn insert(pool: &PgPool, entries: impl Iterator<Item = &AuditEntry>) -> Result<()> {
    let entries: Vec<&AuditEntry> = entries.collect();
    let insert = sqlx::query(INSERT.as_str());
    COLUMNS.iter().fold(insert, |insert, column| (column.bind)(insert, &entries)).execute(pool).await?;
    Ok(())
}

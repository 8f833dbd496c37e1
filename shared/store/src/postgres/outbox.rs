//! Messages that do not follow from rows. All of one transaction lie in one row: it is written and deleted whole, since
//! rows that are only written to be deleted are the dearest ones.

use async_trait::async_trait;
use model::{Changes, Instant, Message};
use serde::Deserialize;
use serde_json::{Value, json};
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{PgConnection, Row};

use super::{Postgres, rows};
use crate::{Outbox, Result, Unsent, normal};

#[async_trait]
impl Outbox for Postgres {
    async fn unsent(&self, before: Instant, limit: u32) -> Result<Vec<Unsent>> {
        let found = sqlx::query("select id, body from outbox where created_at <= $1 order by id limit $2")
            .bind(before)
            .bind(i64::from(limit))
            .fetch_all(&self.pool)
            .await?;
        let found: Vec<Option<Unsent>> = found.iter().map(row).collect::<Result<_>>()?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn sent(&self, ids: &[i64]) -> Result<()> {
        // Deletes rows. Nobody waits for the disk: a row that comes back after a crash is only published once more.
        if !ids.is_empty() {
            let delete = "with hasty as materialized (select set_config('synchronous_commit', 'off', true))
                          delete from outbox using hasty where id = any($1)";
            sqlx::query(delete).bind(ids).execute(&self.pool).await?;
        }
        Ok(())
    }
}

/// The kind of a row that holds a list of messages.
const LIST: &str = "messages";

/// The messages that a transaction publishes once it is committed.
#[derive(Default)]
pub(super) struct PendingMessages {
    decided_at: Option<Instant>,
    messages: Vec<Message>,
}

/// A message in a row's list.
#[derive(Deserialize)]
struct Listed {
    kind: String,
    data: Value,
}

impl PendingMessages {
    pub(super) fn add(&mut self, changes: &[Changes]) {
        for each in changes.iter().filter(|each| !each.outbox.is_empty()) {
            let decided_at = normal::decided_at(each);
            self.decided_at = Some(self.decided_at.map_or(decided_at, |at| at.min(decided_at)));
            self.messages.extend(each.outbox.iter().cloned());
        }
    }

    /// Writes the messages as one row, and returns it.
    pub(super) async fn write(&mut self, connection: &mut PgConnection) -> Result<Option<Unsent>> {
        let Some(decided_at) = self.decided_at.take() else { return Ok(None) };
        let messages = std::mem::take(&mut self.messages);
        let listed = |message: &Message| json!({"kind": message.kind(), "data": message.data()});
        let list: Vec<Value> = messages.iter().map(listed).collect();
        let insert =
            "insert into outbox (created_at, kind, body) values ($1, $2, $3::text::json) returning id";
        let insert = sqlx::query_scalar(insert).bind(decided_at).bind(LIST).bind(rows::json(&list));
        Ok(Some(Unsent { id: insert.fetch_one(connection).await?, messages }))
    }
}

/// The messages of a row. A row that only a newer version can read is left to it: it must not hold up the others.
fn row(row: &PgRow) -> Result<Option<Unsent>> {
    let id: i64 = row.try_get("id")?;
    let Json(list) = row.try_get::<Json<Value>, _>("body")?;
    match decode(list) {
        Ok(messages) => Ok(Some(Unsent { id, messages })),
        Err(error) => {
            tracing::error!(outbox.id = id, "Outbox row {id} stays unsent: {error}");
            Ok(None)
        }
    }
}

fn decode(list: Value) -> std::result::Result<Vec<Message>, Box<dyn std::error::Error>> {
    let list: Vec<Listed> = serde_json::from_value(list)?;
    list.into_iter().map(|listed| Ok(Message::decode(&listed.kind, listed.data)?)).collect()
}

//! Sessions that were ended before they expired. A session itself lives in a sealed cookie.

use auth::service_token::Hash;
use model::Instant;

use crate::{Accounts, CACHE_TTL, Result};

impl Accounts {
    /// Ends the session of that hash, which would expire at `until`. Sessions that have expired by now are forgotten.
    pub async fn end_session(&self, hash: &Hash, until: Instant, now: Instant) -> Result<()> {
        sqlx::query("delete from ended_sessions where until <= $1").bind(now).execute(self.pool()).await?;
        sqlx::query(
            "insert into ended_sessions (hash, until) values ($1, $2)
             on conflict (hash) do update set until = greatest(ended_sessions.until, excluded.until)",
        )
        .bind(hash.as_slice())
        .bind(until)
        .execute(self.pool())
        .await?;
        self.0.ended_sessions.put(*hash, true, now, CACHE_TTL);
        Ok(())
    }

    /// Whether the session of that hash was ended, remembered for a few seconds.
    pub async fn session_ended(&self, hash: &Hash, now: Instant) -> Result<bool> {
        if let Some(known) = self.0.ended_sessions.get(hash, now) {
            return Ok(known);
        }
        let ended = sqlx::query("select 1 from ended_sessions where hash = $1").bind(hash.as_slice());
        let ended = ended.fetch_optional(self.pool()).await?.is_some();
        self.0.ended_sessions.put(*hash, ended, now, CACHE_TTL);
        Ok(ended)
    }
}

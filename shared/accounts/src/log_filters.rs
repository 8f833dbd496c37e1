//! Log filters that operators set for a function, for a while. Its instances follow them.

use model::Instant;
use sqlx::Row;

use crate::{Accounts, Result};

/// A log filter of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogFilter {
    /// The function whose instances follow it.
    pub function: String,
    /// The filter, in the syntax of `RUST_LOG`.
    pub filter: String,
    /// From then on the configured filter applies again.
    pub until: Instant,
    /// The actor who set it.
    pub set_by: String,
}

impl Accounts {
    /// Sets the log filter of a function. Filters that have expired are deleted.
    pub async fn set_log_filter(&self, filter: &LogFilter, now: Instant) -> Result<()> {
        sqlx::query("delete from log_filters where until <= $1").bind(now).execute(self.pool()).await?;
        sqlx::query(
            "insert into log_filters (function, filter, until, set_by) values ($1, $2, $3, $4)
             on conflict (function) do update
                set filter = excluded.filter, until = excluded.until, set_by = excluded.set_by",
        )
        .bind(&filter.function)
        .bind(&filter.filter)
        .bind(filter.until)
        .bind(&filter.set_by)
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// Lets the configured filter of a function apply again.
    pub async fn reset_log_filter(&self, function: &str) -> Result<()> {
        let delete = sqlx::query("delete from log_filters where function = $1").bind(function);
        delete.execute(self.pool()).await?;
        Ok(())
    }

    /// The filter of a function, if one is set.
    pub async fn log_filter(&self, function: &str, now: Instant) -> Result<Option<String>> {
        let select = "select filter from log_filters where function = $1 and until > $2";
        let found = sqlx::query_scalar(select).bind(function).bind(now);
        Ok(found.fetch_optional(self.pool()).await?)
    }

    /// The filters that are set, by function.
    pub async fn log_filters(&self, now: Instant) -> Result<Vec<LogFilter>> {
        let select =
            "select function, filter, until, set_by from log_filters where until > $1 order by function";
        let rows = sqlx::query(select).bind(now).fetch_all(self.pool()).await?;
        let filters = rows.iter().map(|row| {
            Ok(LogFilter {
                function: row.try_get("function")?,
                filter: row.try_get("filter")?,
                until: row.try_get("until")?,
                set_by: row.try_get("set_by")?,
            })
        });
        filters.collect::<sqlx::Result<_>>().map_err(Into::into)
    }
}

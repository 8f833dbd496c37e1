//! The partitions of events and logs: made ahead, dropped whole once nobody needs what lies in them.

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta};
use model::Instant;
use sqlx::{AssertSqlSafe, PgPool, Row};

use super::beginning::begin;
use crate::Result;

/// Each partitioned table, and how many days of runs a partition of it holds.
const TABLES: [(&str, i64); 2] = [("events", 28), ("logs", 7)];

/// The number of partitions that are created before they are needed.
const PARTITIONS_AHEAD: i64 = 3;

/// Dropping must not make others wait for a slow reader: it is tried again another day.
const LOCK_TIMEOUT: &str = "set local lock_timeout = '2s'";

/// One partition: the runs created in a span of days.
struct Partition {
    table: &'static str,
    from: NaiveDate,
    days: i64,
}

impl Partition {
    /// The one with an instant in it. Spans are counted from the epoch, so everybody counts alike.
    fn with(table: &'static str, days: i64, instant: Instant) -> Self {
        let epoch = DateTime::UNIX_EPOCH.date_naive();
        let passed = (instant.date_naive() - epoch).num_days().div_euclid(days);
        Self { table, from: epoch + TimeDelta::days(passed * days), days }
    }

    fn named(table: &'static str, days: i64, name: &str) -> Option<Self> {
        let date = name.strip_prefix(table)?.strip_prefix('_')?;
        Some(Self { table, from: NaiveDate::parse_from_str(date, "%Y%m%d").ok()?, days })
    }

    fn name(&self) -> String {
        format!("{}_{}", self.table, self.from.format("%Y%m%d"))
    }

    fn span(&self) -> (Instant, Instant) {
        let midnight = |date: NaiveDate| date.and_time(NaiveTime::MIN).and_utc();
        (midnight(self.from), midnight(self.from + TimeDelta::days(self.days)))
    }
}

pub(super) async fn turn(pool: &PgPool, now: Instant, before: Instant) -> Result<()> {
    for (table, days) in TABLES {
        // From the next one on: rows of the present one may lie among all others already.
        for ahead in 1..=PARTITIONS_AHEAD {
            make(pool, &Partition::with(table, days, now + TimeDelta::days(days * ahead))).await?;
        }
        for partition in list(pool, table, days).await? {
            if !is_needed(pool, &partition, before).await? {
                drop_whole(pool, &partition).await?;
            }
        }
    }
    Ok(())
}

async fn make(pool: &PgPool, partition: &Partition) -> Result<()> {
    let (from, to) = partition.span();
    let statement = format!(
        "create table if not exists {} partition of {} for values from ('{}') to ('{}')",
        partition.name(),
        partition.table,
        from.to_rfc3339(),
        to.to_rfc3339()
    );
    let mut transaction = begin(pool).await?;
    sqlx::query(LOCK_TIMEOUT).execute(&mut *transaction).await?;
    // Two that make it at once: the second finds it made, or is refused and finds it the next day.
    sqlx::query(AssertSqlSafe(statement)).execute(&mut *transaction).await?;
    Ok(transaction.commit().await?)
}

async fn list(pool: &PgPool, table: &'static str, days: i64) -> Result<Vec<Partition>> {
    let found = sqlx::query(
        "select relname::text as name from pg_inherits join pg_class on pg_class.oid = inhrelid
          where inhparent = $1::text::regclass order by relname",
    )
    .bind(table)
    .fetch_all(pool)
    .await?;
    let names: Vec<String> = found.iter().map(|row| row.try_get("name")).collect::<sqlx::Result<_>>()?;
    Ok(names.iter().filter_map(|name| Partition::named(table, days, name)).collect())
}

/// Whether a run that was created in its days still has what lies in it: until it ended long enough ago, for logs; while
/// it is there at all, for events.
async fn is_needed(pool: &PgPool, partition: &Partition, before: Instant) -> Result<bool> {
    let (from, to) = partition.span();
    if to > before {
        return Ok(true);
    }
    let row = sqlx::query(include_str!("../../queries/needs_partition.sql"))
        .bind(from)
        .bind(to)
        .bind(before)
        .bind(partition.table == "events")
        .fetch_one(pool)
        .await?;
    Ok(row.try_get("needed")?)
}

async fn drop_whole(pool: &PgPool, partition: &Partition) -> Result<()> {
    let mut transaction = begin(pool).await?;
    sqlx::query(LOCK_TIMEOUT).execute(&mut *transaction).await?;
    let statement = format!("drop table if exists {}", partition.name());
    sqlx::query(AssertSqlSafe(statement)).execute(&mut *transaction).await?;
    transaction.commit().await?;
    tracing::info!("Dropped {}: its rows expired", partition.name());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_known_by_its_name_and_spans_follow_each_other() {
        let instant = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let one = Partition::with("logs", 7, instant);
        let next = Partition::with("logs", 7, instant + TimeDelta::days(7));
        assert!(one.span().0 <= instant && instant < one.span().1);
        assert_eq!(one.span().1, next.span().0);
        assert_eq!(Partition::named("logs", 7, &one.name()).unwrap().span(), one.span());
        assert!(Partition::named("logs", 7, "logs_other").is_none());
    }
}

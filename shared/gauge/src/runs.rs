//! How runs fared.

use chrono::{DateTime, Utc};

use crate::{Gauge, Result};

impl Gauge {
    /// How many runs have not ended.
    pub async fn unfinished(&self) -> Result<i64> {
        let select = "/* gauge */ select count(*) from runs where finished_at is null";
        Ok(sqlx::query_scalar(select).fetch_one(&self.pool).await?)
    }

    /// How many tasks ended from one instant up to another.
    pub async fn tasks_ended(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> Result<i64> {
        let select = "/* gauge */ select count(*) from tasks where finished_at >= $1 and finished_at < $2";
        Ok(sqlx::query_scalar(select).bind(from).bind(to).fetch_one(&self.pool).await?)
    }

    /// How many runs ended in another way than by success.
    pub async fn unsuccessful(&self) -> Result<i64> {
        let select =
            "/* gauge */ select count(*) from runs where finished_at is not null and state <> 'succeeded'";
        Ok(sqlx::query_scalar(select).fetch_one(&self.pool).await?)
    }

    /// How long each run took from its creation to its end, in milliseconds.
    pub async fn run_times(&self) -> Result<Vec<f64>> {
        let select = "
            /* gauge */ select (extract(epoch from finished_at - created_at) * 1000)::float8
              from runs where finished_at is not null";
        Ok(sqlx::query_scalar(select).fetch_all(&self.pool).await?)
    }

    /// From the end of each task of a chain to the start of the next, and to the end of the next, in milliseconds.
    pub async fn steps(&self) -> Result<Vec<(f64, f64)>> {
        let select = "
            /* gauge */ select (extract(epoch from next.started_at - this.finished_at) * 1000)::float8,
                               (extract(epoch from next.finished_at - this.finished_at) * 1000)::float8
              from tasks this join tasks next on next.run = this.run and next.idx = this.idx + 1";
        Ok(sqlx::query_as(select).fetch_all(&self.pool).await?)
    }
}

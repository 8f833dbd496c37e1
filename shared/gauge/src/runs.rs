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

/// Timers, and what became of the tasks that slept.
impl Gauge {
    /// Lets all timers be due at one instant. Answers how many there are.
    pub async fn bring_timers_forward(&self, due: DateTime<Utc>) -> Result<i64> {
        let update = sqlx::query("/* gauge */ update timers set wake_at = $1").bind(due);
        Ok(update.execute(&self.pool).await?.rows_affected() as i64)
    }

    /// How many tasks of runs that were created before woke before an instant, and when the last one woke.
    pub async fn woken(&self, due: DateTime<Utc>) -> Result<(i64, DateTime<Utc>)> {
        let select = "
            /* gauge */ select count(*) filter (where tasks.finished_at < $1), max(tasks.finished_at)
              from tasks join runs on runs.id = tasks.run where runs.workflow = 'sleepers'";
        Ok(sqlx::query_as(select).bind(due).fetch_one(&self.pool).await?)
    }
}

/// Tenants that share places.
impl Gauge {
    /// Makes a tenant that has the workflows of the first one.
    #[expect(clippy::disallowed_methods, reason = "a measurement is not given up on the way")]
    pub async fn add_tenant(&self, tenant: i32, name: &str) -> Result<()> {
        let mut transaction = self.pool.begin().await?;
        let insert = "insert into tenants (id, name, created_at) values ($1, $2, now())";
        sqlx::query(insert).bind(tenant).bind(name).execute(&mut *transaction).await?;
        for statement in [
            "insert into workflows (tenant, name, created_at, updated_at)
             select $1, name, created_at, updated_at from workflows where tenant = 1",
            "insert into versions (tenant, workflow, number, hash, definition, source, created_at, created_by)
             select $1, workflow, number, hash, definition, source, created_at, created_by
               from versions where tenant = 1",
            "update workflows set active_version = versions.id from versions
              where versions.tenant = $1 and workflows.tenant = $1 and versions.workflow = workflows.name",
        ] {
            sqlx::query(statement).bind(tenant).execute(&mut *transaction).await?;
        }
        Ok(transaction.commit().await?)
    }

    /// How many tasks of others began between the creation of a tenant's only run and the start of its task; none while
    /// that has not ended.
    pub async fn begun_before(&self, tenant: i32) -> Result<Option<i64>> {
        let select = "
            /* gauge */ select (select count(*) from tasks other
                                 where other.tenant <> $1
                                   and other.started_at between runs.created_at and tasks.started_at)
              from runs join tasks on tasks.run = runs.id
             where runs.tenant = $1 and runs.finished_at is not null";
        Ok(sqlx::query_scalar(select).bind(tenant).fetch_optional(&self.pool).await?)
    }
}

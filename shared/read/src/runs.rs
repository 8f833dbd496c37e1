//! Runs: summaries for callers who follow them, and the way to everything else about one.

use auth::{Denied, Permission};
use model::{Instant, RunId, RunState, Task, VersionId};
use sqlx::Row;
use sqlx::postgres::PgRow;
use store::{RunFilter, RunRecord, rows};

use crate::{Reader, Result, RunReader};

/// A run in a list or a chart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunSummary {
    /// The run.
    pub id: RunId,
    /// The workflow's name.
    pub workflow: String,
    /// The version that it follows.
    pub version: VersionId,
    /// Its state.
    pub state: RunState,
    /// When it was created.
    pub created_at: Instant,
    /// When its first task began.
    pub started_at: Option<Instant>,
    /// When it ended.
    pub finished_at: Option<Instant>,
}

impl Reader {
    /// A run as those see it who may follow it.
    pub async fn run_summary(&self, id: RunId) -> Result<RunRecord> {
        self.caller.check_some(Permission::Follow)?;
        let found = self.store.run(self.caller.tenant, id).await?;
        let found = found.filter(|record| self.may(Permission::Follow, &record.run.workflow));
        Ok(found.ok_or_else(|| Denied::NotFound(format!("run {id}")))?)
    }

    /// A run with everything in it.
    pub async fn run(&self, id: RunId) -> Result<RunReader> {
        let record = self.run_summary(id).await?;
        self.check(Permission::Read, &record.run.workflow, &format!("run {id}"))?;
        Ok(RunReader { reader: self.clone(), record })
    }

    /// A run whose attempts the caller carries out.
    pub async fn run_for_worker(&self, id: RunId) -> Result<Option<RunReader>> {
        let found = self.store.run(self.caller.tenant, id).await?;
        let found = found.filter(|record| self.may(Permission::Work, &record.run.workflow));
        Ok(found.map(|record| RunReader { reader: self.clone(), record }))
    }

    /// The runs that pass a filter and that the caller may read, in order. A page may have fewer than its limit.
    pub async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunReader>> {
        let found = self.store.runs(self.caller.tenant, filter).await?;
        let readable = found.into_iter().filter(|record| self.may(Permission::Read, &record.run.workflow));
        Ok(readable.map(|record| RunReader { reader: self.clone(), record }).collect())
    }

    /// The tasks of the definitions of these runs by run and index, without outputs and children: one statement,
    /// however many children there are.
    pub async fn outlines(&self, runs: &[RunReader]) -> Result<Vec<(RunId, Task)>> {
        self.outline(&runs.iter().map(|run| run.record.run.id).collect::<Vec<_>>()).await
    }

    /// When the runs that the caller may follow were created, and their states, newest first: since an instant, out of
    /// at most `limit` of the tenant.
    pub async fn pulse(&self, since: Instant, limit: u32) -> Result<Vec<(Instant, RunState)>> {
        self.caller.check_some(Permission::Follow)?;
        let found = sqlx::query(
            "select created_at, state, workflow from runs where tenant = $1 and created_at >= $2
              order by created_at desc, id desc limit $3",
        )
        .bind(self.caller.tenant.0)
        .bind(since)
        .bind(i64::from(limit))
        .fetch_all(&mut *self.connection().await?)
        .await?;
        let mut pulse = Vec::new();
        for row in &found {
            if self.may(Permission::Follow, row.try_get("workflow")?) {
                pulse.push((row.try_get("created_at")?, rows::run_state(row)?));
            }
        }
        Ok(pulse)
    }

    /// The last runs of each of these workflows, at most `each`: by workflow, newest first. Workflows that the caller
    /// may not follow have none.
    pub async fn last_runs(&self, workflows: &[String], each: u32) -> Result<Vec<RunSummary>> {
        let followed = workflows.iter().filter(|name| self.may(Permission::Follow, name));
        let found = sqlx::query(include_str!("../queries/list_last_runs.sql"))
            .bind(self.caller.tenant.0)
            .bind(followed.map(|name| store::storable(name).into_owned()).collect::<Vec<_>>())
            .bind(i64::from(each))
            .fetch_all(&mut *self.connection().await?)
            .await?;
        found.iter().map(summary).collect()
    }

    /// The states of the tasks in runs of a workflow, as [`outlines`](Self::outlines) has them.
    pub async fn outlines_of(&self, workflow: &str, runs: &[RunSummary]) -> Result<Vec<(RunId, Task)>> {
        self.check(Permission::Read, workflow, &format!("workflow `{workflow}`"))?;
        let ids: Vec<RunId> = runs.iter().filter(|run| run.workflow == workflow).map(|run| run.id).collect();
        self.outline(&ids).await
    }

    pub(crate) async fn outline(&self, runs: &[RunId]) -> Result<Vec<(RunId, Task)>> {
        let found = sqlx::query(include_str!("../queries/read_outline.sql"))
            .bind(runs.iter().map(|run| run.0).collect::<Vec<_>>())
            .fetch_all(&mut *self.connection().await?)
            .await?;
        Ok(found.iter().map(rows::task).collect::<store::Result<_>>()?)
    }
}

fn summary(row: &PgRow) -> Result<RunSummary> {
    Ok(RunSummary {
        id: RunId(row.try_get("id")?),
        workflow: row.try_get("workflow")?,
        version: VersionId(row.try_get("version")?),
        state: rows::run_state(row)?,
        created_at: row.try_get("created_at")?,
        started_at: row.try_get("started_at")?,
        finished_at: row.try_get("finished_at")?,
    })
}

//! Runs: summaries for callers who follow them, and the way to everything else about one.

mod filter;
mod picking;

use std::collections::BTreeSet;

use auth::{Denied, Permission};
use futures::TryStreamExt;
use model::{Instant, Run, RunId, RunState, Task, TaskIndex, TaskKey, TaskState, VersionId};
use sqlx::Row;
use sqlx::postgres::PgRow;
use store::{ConcurrencyMember, ListedRun, RunRecord, rows, select};

use crate::{Listing, Reader, Result, RunReader};

pub use filter::{RunCursor, RunFilter, RunSort};
pub(crate) use picking::all as statements;

/// How many rows are examined for a page at most, whether they pass the filter or not.
const MAX_EXAMINED: u32 = 1_000;

/// The error of a failed run, for callers who may not read the run.
const HIDDEN_ERROR: &str = "the run failed; callers with permission to read it see why";

/// A run in a list or a chart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunSummary {
    /// The id of the run.
    pub id: RunId,
    /// The name of its workflow.
    pub workflow: String,
    /// The version that it follows.
    pub version: VersionId,
    /// The current state of the run.
    pub state: RunState,
    /// When it was created.
    pub created_at: Instant,
    /// When its first task began.
    pub started_at: Option<Instant>,
    /// When it ended; none until then.
    pub finished_at: Option<Instant>,
}

impl Reader {
    /// A run with everything in it.
    pub async fn run(&self, id: RunId) -> Result<RunReader> {
        let record = self.runs().summary(id).await?;
        self.check(Permission::Read, &record.run.workflow, &format!("run {id}"))?;
        Ok(RunReader { reader: self.clone(), record })
    }
}

/// The runs that a caller may follow or read.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    pub(crate) reader: &'a Reader,
}

impl Runs<'_> {
    /// The row of a run that the caller may follow.
    pub async fn summary(&self, id: RunId) -> Result<RunRecord> {
        self.reader.caller.check_some(Permission::Follow)?;
        let found = self.found(id, Permission::Follow).await?;
        Ok(found.ok_or_else(|| Denied::NotFound(format!("run {id}")))?)
    }

    async fn found(&self, id: RunId, permission: Permission) -> Result<Option<RunRecord>> {
        let found =
            select::run(&mut *self.reader.connection().await?, self.reader.tenant(), &[id]).await?.pop();
        let found = found.filter(|record| self.reader.may(permission, &record.run.workflow));
        Ok(found.map(|record| self.redacted(record)))
    }

    /// The row of a run as the caller may see it. An error repeats what a task wrote, so callers who may not read the run
    /// see only that it failed. Every row that a reader returns is redacted; one that came from a start is redacted here.
    pub fn redacted(&self, mut record: RunRecord) -> RunRecord {
        if !self.reader.may(Permission::Read, &record.run.workflow) {
            record.run.error = record.run.error.map(|_| HIDDEN_ERROR.to_owned());
        }
        record
    }

    /// A run whose attempts the caller executes.
    pub async fn for_worker(&self, id: RunId) -> Result<Option<RunReader>> {
        let found = self.found(id, Permission::Work).await?;
        Ok(found.map(|record| RunReader { reader: self.reader.clone(), record }))
    }

    /// The runs that pass a filter and for whose workflows the caller has a permission, in order, without long inputs.
    pub async fn list(
        &self,
        permission: Permission,
        filter: &RunFilter,
    ) -> Result<Listing<ListedRun, RunCursor>> {
        self.reader.caller.check_some(permission)?;
        let errors = self.reader.caller.check_filter(Permission::Read, filter.workflow.as_deref()).is_ok();
        let mut connection = self.reader.connection().await?;
        let horizon = match filter.goes_beyond_its_index() {
            true => picking::horizon(&mut connection, self.reader.tenant(), filter, MAX_EXAMINED).await?,
            false => None,
        };
        let wanted = RunFilter {
            until: filter.until.or(horizon),
            limit: filter.limit.saturating_add(1),
            ..filter.clone()
        };
        let found = picking::runs(&mut connection, self.reader.tenant(), &wanted, errors).await?;
        let position = |ListedRun { record, .. }: &ListedRun| {
            let position = filter.sort.position(&record.run);
            position.unwrap_or((record.run.created_at, record.run.id))
        };
        let mut page = Listing::bounded(found, filter.limit, position);
        page.next = page.next.or(horizon);
        let mut page = page.only(|listed| self.reader.may(permission, &listed.record.run.workflow));
        let redacted = |listed: ListedRun| ListedRun { record: self.redacted(listed.record), ..listed };
        page.items = page.items.into_iter().map(redacted).collect();
        Ok(page)
    }

    /// The runs that pass a filter and that the caller may read, in order: none for a caller who may read no workflow. A
    /// page may have fewer than its limit.
    pub async fn readable(&self, filter: &RunFilter) -> Result<Vec<ListedRun>> {
        if self.reader.caller.check_some(Permission::Read).is_err() {
            return Ok(Vec::new());
        }
        Ok(self.list(Permission::Read, filter).await?.items)
    }

    /// The unfinished runs of the concurrency group that a run waits for, oldest first, at most `limit`; none for a run
    /// that does not wait.
    pub async fn concurrency_group(&self, run: &Run, limit: u32) -> Result<Vec<ConcurrencyMember>> {
        let Some(group) = run.concurrency_group.as_deref().filter(|_| run.waiting) else {
            return Ok(Vec::new());
        };
        self.reader.check(Permission::Follow, &run.workflow, &format!("run {}", run.id))?;
        let mut connection = self.reader.connection().await?;
        let members = select::concurrency_group(
            &mut *connection,
            self.reader.tenant(),
            &run.workflow,
            group,
            Some(limit),
        );
        Ok(members.await?)
    }

    /// The first `limit` of the tasks with these indices that sleep, in those of these runs that the caller may read: by run
    /// and index, with since when.
    pub async fn sleeping(
        &self,
        runs: &[ListedRun],
        tasks: &BTreeSet<TaskIndex>,
        limit: u32,
    ) -> Result<Vec<(TaskKey, Instant)>> {
        let readable = runs.iter().map(|listed| &listed.record.run);
        let readable = readable.filter(|run| self.reader.may(Permission::Read, &run.workflow));
        let found = sqlx::query(
            "select run, idx, since from tasks
              where run = any($1) and idx = any($2) and state = $3 order by run, idx limit $4",
        )
        .bind(readable.map(|run| run.id.0).collect::<Vec<_>>())
        .bind(tasks.iter().map(|task| rows::int(task.0)).collect::<Vec<_>>())
        .bind(TaskState::Sleeping.name())
        .bind(i64::from(limit))
        .fetch_all(&mut *self.reader.connection().await?)
        .await?;
        let sleeping = |row: &PgRow| {
            let task = TaskIndex(rows::number(row, "idx")?);
            Ok((TaskKey { run: RunId(row.try_get("run")?), task }, row.try_get("since")?))
        };
        found.iter().map(sleeping).collect()
    }

    /// When the runs that the caller may follow were created, and their states, newest first: since an instant, out of
    /// at most `limit` of the tenant.
    pub async fn pulse(&self, since: Instant, limit: u32) -> Result<Vec<(Instant, RunState)>> {
        self.reader.caller.check_some(Permission::Follow)?;
        let found = sqlx::query(
            "select created_at, state, workflow from runs where tenant = $1 and created_at >= $2
              order by created_at desc, id desc limit $3",
        )
        .bind(self.reader.caller.tenant.0)
        .bind(since)
        .bind(i64::from(limit))
        .fetch_all(&mut *self.reader.connection().await?)
        .await?;
        let mut pulse = Vec::new();
        for row in &found {
            if self.reader.may(Permission::Follow, row.try_get("workflow")?) {
                pulse.push((row.try_get("created_at")?, rows::run_state(row)?));
            }
        }
        Ok(pulse)
    }

    /// The last runs of each of these workflows, at most `each`: by workflow, newest first. Workflows that the caller
    /// may not follow have none.
    pub async fn last(&self, workflows: &[String], each: u32) -> Result<Vec<RunSummary>> {
        let followed = workflows.iter().filter(|name| self.reader.may(Permission::Follow, name));
        let found = sqlx::query(include_str!("../queries/list_last_runs.sql"))
            .bind(self.reader.caller.tenant.0)
            .bind(followed.map(|name| store::storable(name).into_owned()).collect::<Vec<_>>())
            .bind(i64::from(each))
            .fetch_all(&mut *self.reader.connection().await?)
            .await?;
        found.iter().map(summary).collect()
    }

    /// The first tasks of the definition in runs of a workflow, at most `each` of a run, without failures, outputs and
    /// children.
    pub async fn outlines_of(
        &self,
        workflow: &str,
        runs: &[RunSummary],
        each: u32,
    ) -> Result<Vec<(RunId, Task)>> {
        self.reader.check(Permission::Read, workflow, &format!("workflow `{workflow}`"))?;
        let ids: Vec<RunId> = runs.iter().filter(|run| run.workflow == workflow).map(|run| run.id).collect();
        self.outline(&ids, Some(each)).await
    }

    pub(crate) async fn outline(&self, runs: &[RunId], each: Option<u32>) -> Result<Vec<(RunId, Task)>> {
        let mut connection = self.reader.connection().await?;
        let mut found = sqlx::query(include_str!("../queries/read_outline.sql"))
            .bind(runs.iter().map(|run| run.0).collect::<Vec<_>>())
            .bind(each.map(rows::int))
            .fetch(&mut *connection);
        let mut tasks = Vec::new();
        while let Some(row) = found.try_next().await? {
            tasks.push(rows::task(&row)?);
        }
        Ok(tasks)
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

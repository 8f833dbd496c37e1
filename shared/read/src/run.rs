//! Everything about one run.

use std::collections::BTreeMap;

use model::{AttemptRecord, Event, Failure, Progress, RunId, ServedQueues, Task, TaskIndex, TaskKey};
use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{PgConnection, Row};
use store::{
    Bounded, ListedTask, LogLine, MAX_PAGE_BYTES, RunRecord, SlotWait, TaskRecord, bounded, rows, select,
};

use crate::{ChangeFeed, Error, Listing, Reader, Result};

/// What is read at once of outputs ends with the row that exceeds this, in bytes.
const MAX_READ_BYTES: usize = 4 * 1024 * 1024;

/// The beginning of an output that is long, in bytes.
const MAX_PREVIEW_BYTES: i32 = 1024;

/// A run that the caller may read: tasks, outputs, events and logs.
#[derive(Clone, Debug)]
pub struct RunReader {
    pub(crate) reader: Reader,
    pub(crate) record: RunRecord,
}

impl RunReader {
    /// The run's own row.
    pub fn record(&self) -> &RunRecord {
        &self.record
    }

    fn id(&self) -> RunId {
        self.record.run.id
    }

    fn key(&self, task: TaskIndex) -> TaskKey {
        TaskKey { run: self.id(), task }
    }

    /// Another run, such as a child or the owner of a shared task, if the caller may read it.
    pub async fn other(&self, id: RunId) -> Result<Option<RunReader>> {
        match self.reader.run(id).await {
            Err(Error::Denied(_)) => Ok(None),
            found => found.map(Some),
        }
    }

    /// The change feed, to follow this run.
    pub fn change_feed(&self) -> ChangeFeed {
        ChangeFeed::new(&self.reader)
    }

    /// The tasks of its definition, without failures, outputs and children.
    pub async fn outline(&self) -> Result<Vec<Task>> {
        let found = self.reader.runs().outline(&[self.id()], None).await?;
        Ok(found.into_iter().map(|(_, task)| task).collect())
    }

    /// The failures of these tasks, of those that have one, without details and the ends of long messages. Of very many, the
    /// first.
    pub async fn failures(&self, tasks: &[TaskIndex]) -> Result<BTreeMap<TaskIndex, Failure>> {
        let mut connection = self.reader.connection().await?;
        let found = sqlx::query(include_str!("../queries/read_failures.sql"))
            .bind(self.id().0)
            .bind(indices(tasks))
            .fetch(&mut *connection);
        let failure = |row: &PgRow| {
            Ok((TaskIndex(rows::number(row, "idx")?), row.try_get::<Json<Failure>, _>("failure")?.0))
        };
        bounded::rows(found, MAX_PAGE_BYTES).await?.items.iter().map(failure).collect()
    }

    /// Tasks in index order, after the given one, without long outputs: those of its definition, or the children of one of
    /// them.
    pub async fn tasks(
        &self,
        children_of: Option<TaskIndex>,
        after: Option<TaskIndex>,
        limit: u32,
    ) -> Result<Listing<ListedTask, TaskIndex>> {
        let (mut connection, rows) = (self.reader.connection().await?, limit.saturating_add(1));
        let found = select::listed_tasks(&mut *connection, self.id(), children_of, after, rows).await?;
        Ok(Listing::bounded(found, limit, |listed| listed.record.task.index))
    }

    /// One task: of its definition, or a child of one of them.
    pub async fn task(&self, child_of: Option<TaskIndex>, index: TaskIndex) -> Result<Option<TaskRecord>> {
        self.read_task(&mut *self.reader.connection().await?, child_of, index).await
    }

    /// The child of a fan-out at a position, from 0.
    pub async fn child(&self, fan_out: TaskIndex, position: usize) -> Result<Option<TaskRecord>> {
        let mut connection = self.reader.connection().await?;
        let fan = self.read_task(&mut connection, None, fan_out).await?.and_then(|found| found.task.fan);
        match fan.and_then(|fan| fan.children().nth(position)) {
            Some(child) => self.read_task(&mut connection, Some(fan_out), child).await,
            None => Ok(None),
        }
    }

    async fn read_task(
        &self,
        connection: &mut PgConnection,
        child_of: Option<TaskIndex>,
        index: TaskIndex,
    ) -> Result<Option<TaskRecord>> {
        let before = index.0.checked_sub(1).map(TaskIndex);
        let found = select::tasks(connection, self.id(), child_of, before, 1).await?;
        Ok(found.into_iter().find(|found| found.task.index == index))
    }

    /// The item of one child of a fan-out.
    pub async fn item(&self, child: TaskIndex) -> Result<Option<Value>> {
        Ok(select::item(&mut *self.reader.connection().await?, self.key(child)).await?)
    }

    /// The outputs of these tasks, of those that have one. None if they are too large together for one who looks at them.
    pub async fn outputs(&self, tasks: &[TaskIndex]) -> Result<Option<BTreeMap<TaskIndex, Value>>> {
        let found = self.read_outputs(tasks, i32::MAX).await?;
        if found.cut {
            return Ok(None);
        }
        let output = |row: &PgRow| {
            Ok((TaskIndex(rows::number(row, "idx")?), row.try_get::<Json<Value>, _>("output")?.0))
        };
        found.items.iter().map(output).collect::<Result<_>>().map(Some)
    }

    /// The same with only the beginning of each output that is long, as text. Of very many, the first.
    pub async fn output_previews(&self, tasks: &[TaskIndex]) -> Result<BTreeMap<TaskIndex, Value>> {
        let found = self.read_outputs(tasks, MAX_PREVIEW_BYTES).await?;
        let output = |row: &PgRow| {
            let value = match row.try_get::<Option<Json<Value>>, _>("output")? {
                Some(Json(value)) => value,
                None => Value::String(row.try_get::<String, _>("head")? + "…"),
            };
            Ok((TaskIndex(rows::number(row, "idx")?), value))
        };
        found.items.iter().map(output).collect()
    }

    async fn read_outputs(&self, tasks: &[TaskIndex], max_each: i32) -> Result<Bounded<PgRow>> {
        let mut connection = self.reader.connection().await?;
        let found = sqlx::query(
            "select idx, case when octet_length(output::text) <= $3 then output end as output,
                    case when octet_length(output::text) > $3 then left(output::text, $3) end as head
               from outputs where run = $1 and idx = any($2) order by idx",
        )
        .bind(self.id().0)
        .bind(indices(tasks))
        .bind(max_each)
        .fetch(&mut *connection);
        Ok(bounded::rows(found, MAX_READ_BYTES).await?)
    }

    /// The attempts of a task that are over and come after one, oldest first.
    pub async fn attempts(
        &self,
        task: TaskIndex,
        after: u32,
        limit: u32,
    ) -> Result<Listing<AttemptRecord, u32>> {
        let (mut connection, rows) = (self.reader.connection().await?, limit.saturating_add(1));
        let found = select::attempts(&mut *connection, self.key(task), after, rows, MAX_PAGE_BYTES).await?;
        Ok(Listing::bounded(found, limit, |attempt| attempt.attempt))
    }

    /// Events with a number of `from` or higher, oldest first, with their numbers.
    pub async fn events(&self, from: i64, limit: u32) -> Result<Listing<(i64, Event), i64>> {
        let (mut connection, rows) = (self.reader.connection().await?, limit.saturating_add(1));
        let found = select::events(&mut *connection, self.id(), from, rows, MAX_PAGE_BYTES).await?;
        Ok(Listing::bounded(found, limit, |(number, _)| *number))
    }

    /// The same without those about children of fan-outs, except one child.
    pub async fn own_events(
        &self,
        with: Option<TaskIndex>,
        from: i64,
        limit: u32,
    ) -> Result<Listing<(i64, Event), i64>> {
        let mut connection = self.reader.connection().await?;
        let found = sqlx::query(include_str!("../queries/read_own_events.sql"))
            .bind(self.id().0)
            .bind(from)
            .bind(with.map(|task| rows::int(task.0)))
            .bind(i64::from(limit) + 1)
            .fetch(&mut *connection);
        let event = |row: PgRow| Ok((row.try_get("number")?, row.try_get::<Json<_>, _>("content")?.0));
        let found: Bounded<(i64, Event)> = bounded::rows(found, MAX_PAGE_BYTES).await?.try_map(event)?;
        Ok(Listing::bounded(found, limit, |(number, _)| *number))
    }

    /// Lines of an attempt's log with a number of `from` or higher, oldest first, with their numbers.
    pub async fn log(
        &self,
        task: TaskIndex,
        attempt: u32,
        from: u32,
        limit: u32,
    ) -> Result<Listing<(u32, LogLine), u32>> {
        let (mut connection, rows) = (self.reader.connection().await?, limit.saturating_add(1));
        let found =
            select::log(&mut *connection, self.key(task), attempt, from, rows, MAX_PAGE_BYTES).await?;
        Ok(Listing::bounded(found, limit, |(number, _)| *number))
    }

    /// The position of a task in a wait queue, if it is in one.
    pub async fn slot_wait(&self, task: TaskIndex) -> Result<Option<SlotWait>> {
        Ok(select::slot_wait(&mut *self.reader.connection().await?, self.key(task)).await?)
    }

    /// The queues that workers of its tenant serve, and what these can run.
    pub async fn served_queues(&self) -> Result<ServedQueues> {
        Ok(select::served_queues(&mut *self.reader.connection().await?).await?)
    }

    /// The last checkpoint of a task, with the attempt that wrote it.
    pub async fn checkpoint(&self, task: TaskIndex) -> Result<Option<(u32, Value)>> {
        let found = sqlx::query("select attempt, data from checkpoints where run = $1 and idx = $2")
            .bind(self.id().0)
            .bind(rows::int(task.0))
            .fetch_optional(&mut *self.reader.connection().await?)
            .await?;
        let Some(row) = found else { return Ok(None) };
        Ok(Some((rows::number(&row, "attempt")?, row.try_get::<Json<_>, _>("data")?.0)))
    }

    /// What the current attempts at these tasks reported about how far they have come, with the newest value of each metric;
    /// before it, of the earlier attempts, the phase that the current one continues from. Of very much, the first.
    pub async fn progress(&self, tasks: &[TaskIndex]) -> Result<BTreeMap<TaskIndex, Vec<Progress>>> {
        let mut connection = self.reader.connection().await?;
        let found = sqlx::query(include_str!("../queries/read_current_progress.sql"))
            .bind(self.id().0)
            .bind(indices(tasks))
            .fetch(&mut *connection);
        let mut progress = BTreeMap::<_, Vec<Progress>>::new();
        for row in bounded::rows(found, MAX_PAGE_BYTES).await?.items {
            progress.entry(TaskIndex(rows::number(&row, "idx")?)).or_default().push(rows::progress(&row)?);
        }
        Ok(progress)
    }

    /// What the attempts at one task reported, with all values of their metrics, oldest attempt first. Of very much, the
    /// latest attempts.
    pub async fn progress_of_attempts(&self, task: TaskIndex) -> Result<Vec<Progress>> {
        let mut connection = self.reader.connection().await?;
        let found = sqlx::query(
            "select attempt, at, fraction, message, phase, metrics from progress
              where run = $1 and idx = $2 order by attempt desc",
        )
        .bind(self.id().0)
        .bind(rows::int(task.0))
        .fetch(&mut *connection);
        let found = bounded::rows(found, MAX_PAGE_BYTES).await?.items;
        Ok(found.iter().rev().map(rows::progress).collect::<store::Result<_>>()?)
    }
}

fn indices(tasks: &[TaskIndex]) -> Vec<i32> {
    tasks.iter().map(|task| rows::int(task.0)).collect()
}

//! Everything about one run.

use std::collections::BTreeMap;

use model::{AttemptRecord, Event, RunId, Task, TaskIndex, TaskKey};
use serde_json::Value;
use sqlx::Row;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use store::{
    Bounded, ListedTask, LogLine, MAX_PAGE_BYTES, RunRecord, SlotWait, TaskRecord, bounded, rows, select,
};

use crate::{ChangeFeed, Error, Listing, Reader, Result};

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

    /// The tasks of its definition, without outputs and children.
    pub async fn outline(&self) -> Result<Vec<Task>> {
        let found = self.reader.runs().outline(&[self.id()]).await?;
        Ok(found.into_iter().map(|(_, task)| task).collect())
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
        let before = index.0.checked_sub(1).map(TaskIndex);
        let mut connection = self.reader.connection().await?;
        let found = select::tasks(&mut *connection, self.id(), child_of, before, 1).await?;
        Ok(found.into_iter().find(|found| found.task.index == index))
    }

    /// The item of one child of a fan-out.
    pub async fn item(&self, child: TaskIndex) -> Result<Option<Value>> {
        Ok(select::item(&mut *self.reader.connection().await?, self.key(child)).await?)
    }

    /// The outputs of these tasks, of those that have one.
    pub async fn outputs(&self, tasks: &[TaskIndex]) -> Result<BTreeMap<TaskIndex, Value>> {
        Ok(select::outputs(&mut *self.reader.connection().await?, self.id(), tasks).await?)
    }

    /// The attempts of a task that are over, oldest first.
    pub async fn attempts(&self, task: TaskIndex) -> Result<Vec<AttemptRecord>> {
        Ok(select::attempts(&mut *self.reader.connection().await?, self.key(task)).await?)
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
}

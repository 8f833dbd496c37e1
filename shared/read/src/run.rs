//! Everything about one run.

use std::collections::BTreeMap;

use model::{AttemptRecord, Event, RunId, Task, TaskIndex, TaskKey};
use serde_json::Value;
use sqlx::Row;
use sqlx::types::Json;
use store::{LogLine, RunRecord, TaskRecord, rows};

use crate::{Error, Reader, Result};

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

    /// Another run that this one has to do with, if the caller may read it.
    pub async fn other(&self, id: RunId) -> Result<Option<RunReader>> {
        match self.reader.run(id).await {
            Err(Error::Denied(_)) => Ok(None),
            found => found.map(Some),
        }
    }

    /// The tasks of its definition, without outputs and children.
    pub async fn outline(&self) -> Result<Vec<Task>> {
        let found = self.reader.outline(&[self.id()]).await?;
        Ok(found.into_iter().map(|(_, task)| task).collect())
    }

    /// Tasks in index order, after the given one: those of its definition, or the children of one of them.
    pub async fn tasks(
        &self,
        children_of: Option<TaskIndex>,
        after: Option<TaskIndex>,
        limit: u32,
    ) -> Result<Vec<TaskRecord>> {
        Ok(self.reader.store.run_tasks(self.id(), children_of, after, limit).await?)
    }

    /// One task: of its definition, or a child of one of them.
    pub async fn task(&self, child_of: Option<TaskIndex>, index: TaskIndex) -> Result<Option<TaskRecord>> {
        let before = index.0.checked_sub(1).map(TaskIndex);
        Ok(self.tasks(child_of, before, 1).await?.pop().filter(|found| found.task.index == index))
    }

    /// The item that a child of a fan-out is about.
    pub async fn item(&self, child: TaskIndex) -> Result<Option<Value>> {
        let found = sqlx::query("select item from items where run = $1 and idx = $2")
            .bind(self.id().0)
            .bind(rows::int(child.0))
            .fetch_optional(&mut *self.reader.connection().await?)
            .await?;
        Ok(found.map(|row| row.try_get::<Json<_>, _>("item")).transpose()?.map(|Json(item)| item))
    }

    /// The outputs of these tasks, of those that have one.
    pub async fn outputs(&self, tasks: &[TaskIndex]) -> Result<BTreeMap<TaskIndex, Value>> {
        let found = sqlx::query("select idx, output from outputs where run = $1 and idx = any($2)")
            .bind(self.id().0)
            .bind(tasks.iter().map(|task| rows::int(task.0)).collect::<Vec<_>>())
            .fetch_all(&mut *self.reader.connection().await?)
            .await?;
        let mut outputs = BTreeMap::new();
        for row in &found {
            outputs.insert(TaskIndex(rows::number(row, "idx")?), row.try_get::<Json<_>, _>("output")?.0);
        }
        Ok(outputs)
    }

    /// The attempts of a task that are over, oldest first.
    pub async fn attempts(&self, task: TaskIndex) -> Result<Vec<AttemptRecord>> {
        Ok(self.reader.store.attempts(self.key(task)).await?)
    }

    /// Events with a number of `from` or higher, oldest first, with their numbers.
    pub async fn events(&self, from: i64, limit: u32) -> Result<Vec<(i64, Event)>> {
        Ok(self.reader.store.events(self.id(), from, limit).await?)
    }

    /// The same without those about children of fan-outs, except one child.
    pub async fn own_events(
        &self,
        with: Option<TaskIndex>,
        from: i64,
        limit: u32,
    ) -> Result<Vec<(i64, Event)>> {
        Ok(self.reader.store.own_events(self.id(), with, from, limit).await?)
    }

    /// Lines of an attempt's log with a number of `from` or higher, oldest first, with their numbers.
    pub async fn log(
        &self,
        task: TaskIndex,
        attempt: u32,
        from: u32,
        limit: u32,
    ) -> Result<Vec<(u32, LogLine)>> {
        Ok(self.reader.store.log(self.key(task), attempt, from, limit).await?)
    }
}

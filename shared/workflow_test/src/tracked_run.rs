//! One run of a test: the run under test, or one that a task started.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::Graph;
use model::message::TaskDispatched;
use model::{Child, Event, EventKind, Instant, RunId, TaskIndex, TaskKey, TenantId, VersionId};
use runtime::{Job, Result, Runtime};
use serde_json::{Map, Value};

/// A run, and what was observed of it.
pub(crate) struct TrackedRun {
    pub(crate) run: RunId,
    pub(crate) graph: Arc<Graph>,
    tenant: TenantId,
    version: VersionId,
    /// Precedes the names of its tasks: `report/` for the run that `report` started.
    path: String,
    /// How many of its events were read.
    seen: i64,
    /// The positions of children of fan-outs.
    positions: BTreeMap<TaskIndex, Child>,
    /// When each task started.
    pub(crate) started: BTreeMap<TaskIndex, Instant>,
    /// The config of each task's latest attempt, rendered.
    pub(crate) configs: BTreeMap<TaskIndex, Value>,
}

impl TrackedRun {
    /// Tracks a run, if it exists. `path` precedes the names of its tasks.
    pub(crate) async fn find(
        runtime: &Runtime,
        tenant: TenantId,
        run: RunId,
        path: String,
    ) -> Result<Option<Self>> {
        let Some(record) = runtime.store().run(tenant, run).await? else { return Ok(None) };
        let version = record.run.version;
        let Some(graph) = runtime.graph(version).await? else { return Ok(None) };
        let (positions, started, configs) = Default::default();
        Ok(Some(Self { run, graph, tenant, version, path, seen: 0, positions, started, configs }))
    }

    /// The name of a task with an event, as written in test files.
    pub(crate) fn name(&self, task: TaskIndex) -> String {
        self.name_at(task, self.positions.get(&task).copied())
    }

    /// The name of a task, which may be a child of a fan-out, as written in test files.
    pub(crate) fn name_at(&self, task: TaskIndex, child: Option<Child>) -> String {
        format!("{}{}", self.path, self.graph.name_at(task, child))
    }

    /// Reads new events. Returns the tasks that started, in order.
    pub(crate) async fn observe(&mut self, runtime: &Runtime) -> Result<Vec<TaskKey>> {
        let mut new = Vec::new();
        for (_, event) in runtime.store().events(self.run, self.seen, u32::MAX).await? {
            self.seen += 1;
            let Some(task) = event.task else { continue };
            self.positions.extend(event.child.map(|child| (task, child)));
            if is_start(&event) && !self.started.contains_key(&task) {
                self.started.insert(task, event.at);
                new.push(TaskKey { run: self.run, task });
            }
            self.record_config(task, &event, runtime).await?;
        }
        Ok(new)
    }

    /// Records the config of engine tasks, of which no attempt is ever dispatched.
    async fn record_config(&mut self, task: TaskIndex, event: &Event, runtime: &Runtime) -> Result<()> {
        let is_start =
            matches!(event.kind, EventKind::TaskSleeping | EventKind::TaskWaiting | EventKind::TaskSucceeded);
        if !is_start || self.configs.contains_key(&task) {
            return Ok(());
        }
        let work = TaskDispatched {
            key: TaskKey { run: self.run, task },
            tenant: self.tenant,
            attempt: event.attempt,
            version: self.version,
            queue: String::new(),
            child: event.child,
            give_up_at: None,
        };
        if let Job::Ready(brief) = runtime.job(&work, &self.graph, Map::new()).await? {
            self.configs.insert(task, brief.config);
        }
        Ok(())
    }
}

/// Whether this event starts a task that had not started.
fn is_start(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::TaskDispatched
            | EventKind::TaskSleeping
            | EventKind::TaskWaiting
            | EventKind::TaskFannedOut
            | EventKind::TaskSucceeded
            | EventKind::TaskFailed
    )
}

//! One run of a play: the run under test, or one that a task started.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::Graph;
use model::message::TaskDispatched;
use model::{Child, Event, EventKind, Instant, RunId, TaskIndex, TaskKey, TenantId, VersionId};
use runtime::{Job, Result, Runtime};
use serde_json::{Map, Value};

/// One run of a play, and what was seen of it.
pub(crate) struct Role {
    pub(crate) run: RunId,
    pub(crate) graph: Arc<Graph>,
    tenant: TenantId,
    version: VersionId,
    /// What stands before the names of its tasks: `report/` for the run that `report` started.
    path: String,
    /// How many of its events were seen.
    seen: i64,
    /// The places of children of fan-outs.
    places: BTreeMap<TaskIndex, Child>,
    /// When each task began.
    pub(crate) began: BTreeMap<TaskIndex, Instant>,
    /// The config of each task's latest attempt, rendered.
    pub(crate) configs: BTreeMap<TaskIndex, Value>,
}

impl Role {
    /// The role of a run that exists, if it does. `path` stands before the names of its tasks.
    pub(crate) async fn of(
        runtime: &Runtime,
        tenant: TenantId,
        run: RunId,
        path: String,
    ) -> Result<Option<Self>> {
        let Some(record) = runtime.store().run(tenant, run).await? else { return Ok(None) };
        let version = record.run.version;
        let Some(graph) = runtime.graph(version).await? else { return Ok(None) };
        let (places, began, configs) = Default::default();
        Ok(Some(Self { run, graph, tenant, version, path, seen: 0, places, began, configs }))
    }

    /// The name of a task that something happened to, as test files have it.
    pub(crate) fn name(&self, task: TaskIndex) -> String {
        self.name_at(task, self.places.get(&task).copied())
    }

    /// The name of a task, which may be a child of a fan-out, as test files have it.
    pub(crate) fn name_at(&self, task: TaskIndex, child: Option<Child>) -> String {
        format!("{}{}", self.path, self.graph.name_at(task, child))
    }

    /// Reads what happened since the last time. Answers which tasks began, in the order in which they did.
    pub(crate) async fn observe(&mut self, runtime: &Runtime) -> Result<Vec<TaskKey>> {
        let mut new = Vec::new();
        for (_, event) in runtime.store().events(self.run, self.seen, u32::MAX).await? {
            self.seen += 1;
            let Some(task) = event.task else { continue };
            self.places.extend(event.child.map(|child| (task, child)));
            if is_beginning(&event) && !self.began.contains_key(&task) {
                self.began.insert(task, event.at);
                new.push(TaskKey { run: self.run, task });
            }
            self.keep_config(task, &event, runtime).await?;
        }
        Ok(new)
    }

    /// Keeps the config that inside tasks began with: no attempt at them is ever dispatched.
    async fn keep_config(&mut self, task: TaskIndex, event: &Event, runtime: &Runtime) -> Result<()> {
        let begins =
            matches!(event.kind, EventKind::TaskSleeping | EventKind::TaskWaiting | EventKind::TaskSucceeded);
        if !begins || self.configs.contains_key(&task) {
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

/// Whether a task has begun with this event, if it had not before.
fn is_beginning(event: &Event) -> bool {
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

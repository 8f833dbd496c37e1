//! Runs that depend on each other: a run that a task waits for, a task that several runs share.
//!
//! **A child run.** The task sleeps, and the outbox requests a run whose id is derived from the task and its attempt.
//! Trigger creates it, unless the task has stopped waiting: it checks under the parent's lock, so a cancellation is either
//! seen or finds the run. The end of the child settles a report: failures propagate up, cancellation and timeouts down.
//!
//! **A shared task.** The first run that reaches a global task asks for the share of its name and rendered settings, and
//! becomes its owner; the task takes its usual way in the owner's run. Other runs find the share taken and sleep until the
//! owner ends. If the owner's run is cancelled, they ask again, and the first of them becomes the owner.

use engine::Command;
use futures::future::join_all;
use model::message::{ChildFinished, SharedFinished, TaskResult};
use model::{Failure, RunState, TaskIndex, TaskState};
use serde_json::{Map, Value, json};
use tracing::error;

use crate::fan_in::OUTPUT_LIMIT;
use crate::{Error, Result, Runtime, Settled};

/// The most waiting tasks that are notified in one transaction.
const MAX_NOTIFIED: u32 = 100;

/// Starts the runs that tasks ask for, and notifies tasks that wait for the runs or tasks of others.
#[derive(Clone, Copy)]
pub struct ChildRuns<'r> {
    pub(crate) runtime: &'r Runtime,
}

impl Runtime {
    /// Runs that tasks start, and runs and tasks that tasks of other runs wait for.
    pub fn child_runs(&self) -> ChildRuns<'_> {
        ChildRuns { runtime: self }
    }
}

impl ChildRuns<'_> {
    /// Reports to the task that waits for a run how it ended.
    pub async fn ended(self, finished: &ChildFinished) -> Result<Settled> {
        let child = finished.child;
        let result = match finished.state {
            RunState::Succeeded => match delivery(self.runtime, finished).await {
                Ok(delivery) if delivery.to_string().len() <= OUTPUT_LIMIT => TaskResult::Succeeded(delivery),
                Err(error) if !matches!(error, Error::Store(store::Error::TooLarge)) => return Err(error),
                _ => TaskResult::Failed(Failure::permanent(format!(
                    "the outputs of run {child} are more than {OUTPUT_LIMIT} bytes of JSON (1 MiB): store them elsewhere \
                     and pass a reference"
                ))),
            },
            RunState::Failed => {
                let message = finished.error.as_deref().unwrap_or("no reason given");
                TaskResult::Failed(Failure::transient(format!("run {child} failed: {message}")))
            }
            state => TaskResult::Failed(Failure::permanent(format!("run {child} was {}", state.name()))),
        };
        let (task, attempt, started_at) =
            (finished.parent.key.task, finished.parent.attempt, self.runtime.clock.now());
        let report = Command::Report { task, attempt, worker: None, started_at, result };
        self.runtime.settle(finished.parent.key.run, report).await
    }

    /// Notifies every task that waits for a shared task how it ended. If the run that executed it gave it up, one of the
    /// others executes it.
    pub async fn shared_ended(self, finished: &SharedFinished) -> Result<()> {
        let result = match (finished.state, &finished.failure) {
            (TaskState::Succeeded, _) => {
                let mut outputs =
                    self.runtime.store.outputs(finished.owner.run, &[finished.owner.task]).await?;
                let output = outputs.remove(&finished.owner.task).unwrap_or(Value::Null);
                Some(TaskResult::Succeeded(output))
            }
            (TaskState::Failed, Some(failure)) => {
                let message = format!("shared with run {}: {}", finished.owner.run, failure.message);
                // It was tried as often as it may be, for all of them.
                Some(TaskResult::Failed(Failure { message, ..Failure::permanent("") }))
            }
            _ => None,
        };
        loop {
            let waiters = self.runtime.store.waiters(finished.owner, MAX_NOTIFIED).await?;
            // Each on its own, so that one that fails does not delay the others; they share transactions all the same.
            let notified = join_all(waiters.iter().map(|(key, attempt)| {
                self.runtime.settle(key.run, word(self.runtime, key.task, *attempt, &result))
            }));
            let mut applied = false;
            for settled in notified.await {
                match settled {
                    Ok(settled) => applied |= settled == Settled::Applied,
                    Err(error) if error.is_passing() => return Err(error),
                    Err(error) => error!("A task that waits for a shared task cannot be notified: {error}"),
                }
            }
            if !applied {
                return Ok(());
            }
        }
    }
}

/// The output of a run: those of the tasks that nothing depends on.
async fn delivery(runtime: &Runtime, finished: &ChildFinished) -> Result<Value> {
    let mut outputs = Map::new();
    if let Some(graph) = runtime.graph(finished.version).await? {
        let last: Vec<TaskIndex> =
            graph.indices().filter(|task| graph.dependants(*task).is_empty()).collect();
        for (task, output) in runtime.store.outputs(finished.child, &last).await? {
            outputs.insert(graph.spec(task).name.clone(), output);
        }
    }
    Ok(json!({"run_id": finished.child, "outputs": outputs}))
}

fn word(runtime: &Runtime, task: TaskIndex, attempt: u32, result: &Option<TaskResult>) -> Command {
    match result.clone() {
        Some(result) => {
            Command::Report { task, attempt, worker: None, started_at: runtime.clock.now(), result }
        }
        None => Command::Rejoin { task, attempt },
    }
}

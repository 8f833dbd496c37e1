//! Runs that tasks of other runs start.

use engine::Command;
use model::message::{ChildFinished, TaskResult};
use model::{Failure, Parent, Run, TaskState};
use store::Transaction;

use crate::{ChildRuns, Error, Result, Runtime, StartRun};

impl ChildRuns<'_> {
    /// Creates the run that a task asks for. If it cannot be created, a task that waits for it fails.
    pub async fn start(self, request: StartRun, parent: Parent) -> Result<()> {
        let (runtime, tenant, id) = (self.runtime, request.tenant, request.id);
        if let Some(record) = runtime.store.run(tenant, id).await? {
            return report_again(runtime, record.run).await;
        }
        let failure = match runtime.start(request).await {
            Ok(_) | Err(Error::Unwanted) => return Ok(()),
            // To wait for room would be to wait for oneself: the task, too, is of an unfinished run.
            Err(error) if error.is_quota() && parent.waits => {
                Failure::transient(format!("the run could not be started: {error}"))
            }
            Err(error) if !error.is_hopeless() || !parent.waits => return Err(error),
            Err(error) => Failure::permanent(format!("the run could not be started: {error}")),
        };
        let (task, attempt, started_at) = (parent.key.task, parent.attempt, runtime.clock.now());
        let result = TaskResult::Failed(failure);
        let report = Command::Report { task, attempt, worker: None, started_at, result };
        runtime.settle(parent.key.run, report).await.map(|_| ())
    }
}

/// Reports the end of a run once more to its parent, which asks for it and so missed its end.
async fn report_again(runtime: &Runtime, run: Run) -> Result<()> {
    match run.parent.filter(|parent| parent.waits && run.state.is_final()) {
        Some(parent) => {
            let Run { id: child, version, state, error, .. } = run;
            let finished = ChildFinished { parent, child, version, state, error };
            runtime.child_runs().ended(&finished).await.map(|_| ())
        }
        None => Ok(()),
    }
}

/// A task that was to wait for the run may have been cancelled meanwhile; its run stays locked, so that it cannot
/// be cancelled between this check and the commit.
pub(super) async fn check_wanted(unit: &mut dyn Transaction, parent: Option<Parent>) -> Result<()> {
    let Some(parent) = parent.filter(|parent| parent.waits) else { return Ok(()) };
    unit.lock(&[parent.key.run]).await?;
    let tasks = unit.tasks(&[parent.key]).await?;
    let waits = tasks.iter().any(|(_, task)| {
        task.index == parent.key.task && task.attempt == parent.attempt && task.state == TaskState::Sleeping
    });
    if waits { Ok(()) } else { Err(Error::Unwanted) }
}

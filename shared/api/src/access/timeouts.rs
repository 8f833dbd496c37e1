//! The queues of the installation, and timeouts that their services cannot honour.

use std::sync::Arc;

use axum::http::StatusCode;
use host::Problem;
use model::{Execution, Queues, TaskSpec, Workflow};

use super::Access;
use crate::error::listed;

impl Access {
    /// Sets the queues of the installation.
    pub fn with_queues(self, queues: Queues) -> Self {
        let inner = Arc::into_inner(self.0).expect("nothing else has it yet");
        Self(super::Inner { queues, ..inner }.into())
    }

    /// The queues of the installation.
    pub(crate) fn queues(&self) -> &Queues {
        &self.0.queues
    }

    /// Rejects workflows whose tasks state a timeout longer than their queue allows. A task that states none is not rejected:
    /// the queue's limit applies instead.
    pub(crate) fn check_timeouts<'a>(
        &self,
        workflows: impl Iterator<Item = &'a Workflow>,
    ) -> Result<(), Problem> {
        let problems: Vec<String> = workflows
            .flat_map(|workflow| workflow.tasks.iter().map(move |task| (&workflow.name, task)))
            .filter_map(|(workflow, task)| self.problem_with(workflow, &task.name, task))
            .collect();
        if problems.is_empty() {
            return Ok(());
        }
        Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_definition", listed(&problems)))
    }

    fn problem_with(&self, workflow: &str, name: &str, task: &TaskSpec) -> Option<String> {
        if let Some(fan_out) = &task.fan_out {
            return self.problem_with(workflow, name, &fan_out.task);
        }
        if task.kind.execution() == Execution::Engine || task.leased {
            return None;
        }
        too_long(workflow, name, task, self.0.queues.attempt_seconds(&task.queue)?)
    }
}

/// Why a queue that ends attempts after `limit` seconds cannot run a task.
fn too_long(workflow: &str, name: &str, task: &TaskSpec, limit: u32) -> Option<String> {
    let (queue, seconds) = (&task.queue, task.timeout_seconds);
    (task.timeout_is_explicit && seconds > limit).then(|| {
        format!(
            "task `{name}` of `{workflow}` has timeout_seconds {seconds}, but queue `{queue}` ends attempts after {limit} s: \
             use at most {limit}, let a sensor or `wait_for_signal` wait for work that runs elsewhere, or name a queue of the \
             kind `pool`, whose workers take as long as they need"
        )
    })
}

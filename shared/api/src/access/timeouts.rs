//! Timeouts that a queue's services cannot honour.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::StatusCode;
use host::Problem;
use model::{Execution, TaskSpec, Workflow, is_remote};

use super::Access;

impl Access {
    /// Sets the maximum duration of an attempt on each of these queues, in seconds.
    pub fn with_attempt_seconds(self, attempt_seconds: BTreeMap<String, u32>) -> Self {
        let inner = Arc::into_inner(self.0).expect("nothing else has it yet");
        Self(super::Inner { attempt_seconds, ..inner }.into())
    }

    /// Rejects workflows that state a timeout longer than its queue allows. A task that states none is not rejected: the
    /// queue's limit applies instead.
    pub(crate) fn check_timeouts<'a>(
        &self,
        workflows: impl Iterator<Item = &'a Workflow>,
    ) -> Result<(), Problem> {
        let problems: Vec<String> = workflows
            .flat_map(|workflow| workflow.tasks.iter().map(move |task| (&workflow.name, task)))
            .filter_map(|(workflow, task)| self.too_long(workflow, &task.name, task))
            .collect();
        if problems.is_empty() {
            return Ok(());
        }
        Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_definition", problems.join("; ")))
    }

    fn too_long(&self, workflow: &str, name: &str, task: &TaskSpec) -> Option<String> {
        if let Some(fan_out) = &task.fan_out {
            return self.too_long(workflow, name, &fan_out.task);
        }
        let (queue, seconds) = (&task.queue, task.timeout_seconds);
        let limit = *self.0.attempt_seconds.get(queue).filter(|_| !is_remote(queue))?;
        let is_explicit = task.timeout_is_explicit;
        (task.kind.execution() != Execution::Engine && is_explicit && seconds > limit).then(|| {
            format!(
                "task `{name}` of `{workflow}` has timeout_seconds {seconds}, but queue `{queue}` ends attempts after {limit} s: \
                 use at most {limit}, let a sensor or `wait_for_signal` wait for work that runs elsewhere, or use a queue \
                 `remote-…` with workers of your own"
            )
        })
    }
}

//! Stands in for the task types that run code of users, where that is switched off.

use async_trait::async_trait;
use serde_json::Value;

use model::{Failure, TaskKind};

use super::{TaskRunner, Unfinished};
use crate::job::{Context, Job};

/// Fails every attempt of a task type.
pub(super) struct Denied(pub(super) TaskKind);

#[async_trait]
impl TaskRunner for Denied {
    fn kind(&self) -> TaskKind {
        self.0.clone()
    }

    async fn run(&self, job: &Job, _: &Context) -> Result<Value, Unfinished> {
        let message = format!(
            "this service runs no code of users, so it refuses `{}` tasks: give the task a queue of the kind `pool` that an \
             `ebb worker` serves, or allow them here with EBB_USER_CODE=allow",
            job.kind
        );
        Err(Failure::permanent(message).into())
    }
}

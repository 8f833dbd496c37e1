//! Task types for wiring and tests: they do nothing outside the worker.

use async_trait::async_trait;
use language::config;
use serde_json::Value;
use uuid::Uuid;

use model::{Failure, TaskKind};

use super::{Performer, Unfinished};
use crate::job::{Context, Job};

/// Does nothing and returns null.
pub(super) struct Noop;

#[async_trait]
impl Performer for Noop {
    fn kind(&self) -> TaskKind {
        TaskKind::Noop
    }

    async fn perform(&self, _: &Job, _: &Context) -> Result<Value, Unfinished> {
        Ok(Value::Null)
    }
}

/// Returns its rendered config.
pub(super) struct Echo;

#[async_trait]
impl Performer for Echo {
    fn kind(&self) -> TaskKind {
        TaskKind::Echo
    }

    async fn perform(&self, job: &Job, _: &Context) -> Result<Value, Unfinished> {
        Ok(job.config.clone())
    }
}

/// Always fails.
pub(super) struct Fail;

#[async_trait]
impl Performer for Fail {
    fn kind(&self) -> TaskKind {
        TaskKind::Fail
    }

    async fn perform(&self, job: &Job, _: &Context) -> Result<Value, Unfinished> {
        let config::Fail { message, class } = super::config(job)?;
        Err(Failure::new(class, message.0).into())
    }
}

/// Fails now and then.
pub(super) struct Flaky;

#[async_trait]
impl Performer for Flaky {
    fn kind(&self) -> TaskKind {
        TaskKind::Flaky
    }

    async fn perform(&self, job: &Job, _: &Context) -> Result<Value, Unfinished> {
        let config::Flaky { probability, seed } = super::config(job)?;
        if draw(job, seed) < probability {
            let message = format!("failed by chance, at a probability of {probability}");
            return Err(Failure::transient(message).into());
        }
        Ok(Value::Null)
    }
}

/// A number from 0 up to 1: the same for the same seed, task and attempt. Without a seed, the run is
/// the seed.
fn draw(job: &Job, seed: Option<u64>) -> f64 {
    let origin = seed.map_or(job.key.run.0, |seed| Uuid::from_u64_pair(0, seed));
    let name = format!("{} {}", job.key.task.0, job.attempt);
    // The upper 48 bits are all hash; below them the id's version is written.
    let (upper, _) = Uuid::new_v5(&origin, name.as_bytes()).as_u64_pair();
    (upper >> 16) as f64 / (1_u64 << 48) as f64
}

//! Task types for wiring and tests: `noop`, `echo`, `fail` and `flaky`. They have no side effects.

use async_trait::async_trait;
use language::config;
use serde_json::Value;
use uuid::Uuid;

use model::{Failure, TaskKind};

use super::{TaskRunner, Unfinished};
use crate::job::{Context, Job};

/// Does nothing and returns null.
pub(super) struct Noop;

#[async_trait]
impl TaskRunner for Noop {
    fn kind(&self) -> TaskKind {
        TaskKind::Noop
    }

    async fn run(&self, _: &Job, _: &Context) -> Result<Value, Unfinished> {
        Ok(Value::Null)
    }
}

/// Returns its rendered config.
pub(super) struct Echo;

#[async_trait]
impl TaskRunner for Echo {
    fn kind(&self) -> TaskKind {
        TaskKind::Echo
    }

    async fn run(&self, job: &Job, _: &Context) -> Result<Value, Unfinished> {
        Ok(job.config.clone())
    }
}

/// Always fails, with the configured message.
pub(super) struct Fail;

#[async_trait]
impl TaskRunner for Fail {
    fn kind(&self) -> TaskKind {
        TaskKind::Fail
    }

    async fn run(&self, job: &Job, _: &Context) -> Result<Value, Unfinished> {
        let config::Fail { message, class } = super::config(job)?;
        Err(Failure::new(class, message.0).into())
    }
}

/// Fails with the configured probability.
pub(super) struct Flaky;

#[async_trait]
impl TaskRunner for Flaky {
    fn kind(&self) -> TaskKind {
        TaskKind::Flaky
    }

    async fn run(&self, job: &Job, _: &Context) -> Result<Value, Unfinished> {
        let config::Flaky { probability, seed } = super::config(job)?;
        if draw(job, seed) < probability {
            let message = format!("failed by chance, at a probability of {probability}");
            return Err(Failure::transient(message).into());
        }
        Ok(Value::Null)
    }
}

/// A number from 0 up to 1: the same for the same seed, task and attempt. The default seed is the run's id.
fn draw(job: &Job, seed: Option<u64>) -> f64 {
    let origin = seed.map_or(job.run.0, |seed| Uuid::from_u64_pair(0, seed));
    let name = format!("{} {}", job.task, job.attempt);
    // The upper 48 bits are hash; the bits below contain the id's version.
    let (upper, _) = Uuid::new_v5(&origin, name.as_bytes()).as_u64_pair();
    (upper >> 16) as f64 / (1_u64 << 48) as f64
}

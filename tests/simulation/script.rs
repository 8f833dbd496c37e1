//! Work that a worker claims: how long it takes and how it ends is written in the task, by attempt.

use async_trait::async_trait;
use chrono::TimeDelta;
use execute::task_runners::Unfinished;
use execute::{Context, Job, TaskRunner};
use model::{Failure, TaskKind};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

/// The settings of scripted work; where a seed is given, failures follow from it, the task's name and the attempt.
pub(crate) fn config(seed: u64, failures: f64) -> Value {
    json!({"command": "true", "env": {"SEED": seed.to_string(), "FAILURES": failures.to_string()}})
}

/// Stands in for `bash`.
pub(crate) struct Script;

#[async_trait]
impl TaskRunner for Script {
    fn kind(&self) -> TaskKind {
        TaskKind::Bash
    }

    async fn run(&self, job: &Job, context: &Context) -> Result<Value, Unfinished> {
        let read = |name: &str| job.config["env"][name].as_str().unwrap_or("0").to_owned();
        let name: u64 = job.task.bytes().fold(7, |hash, byte| hash.wrapping_mul(31) + u64::from(byte));
        let seed = read("SEED").parse::<u64>().unwrap() ^ (u64::from(job.attempt) << 40) ^ (name << 8);
        let failures: f64 = read("FAILURES").parse().unwrap();
        let mut rng = StdRng::seed_from_u64(seed);
        let (chance, takes) = (rng.random_range(0.0..1.0), rng.random_range(0..100_000));
        // Some failures hang: they are stopped when they time out.
        let hangs = chance < failures * 0.2;
        let clock = &context.clock;
        let end = clock.now() + if hangs { TimeDelta::days(1) } else { TimeDelta::milliseconds(takes) };
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => Err(Unfinished::Stopped),
            () = clock.wait_until(end) => match chance {
                chance if chance < failures * 0.4 => Err(Failure::permanent("no").into()),
                chance if chance < failures => Err(Failure::transient("not yet").into()),
                _ => Ok(json!({"took": takes})),
            },
        }
    }
}

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

/// The settings of work that succeeds and takes this long.
pub(crate) fn lasting(takes: TimeDelta) -> Value {
    json!({"command": "true", "env": {"TAKES": takes.num_milliseconds().to_string()}})
}

/// What an attempt at scripted work does.
pub(crate) struct Scripted {
    pub(crate) takes: TimeDelta,
    /// Whether it goes on until it is stopped.
    pub(crate) hangs: bool,
    pub(crate) result: Result<Value, Failure>,
}

/// What an attempt at a task with these settings does.
pub(crate) fn scripted(config: &Value, task: &str, attempt: u32) -> Scripted {
    let read = |name: &str| config["env"][name].as_str().unwrap_or("0").to_owned();
    let name: u64 = task.bytes().fold(7, |hash, byte| hash.wrapping_mul(31) + u64::from(byte));
    let seed = read("SEED").parse::<u64>().unwrap() ^ (u64::from(attempt) << 40) ^ (name << 8);
    let failures: f64 = read("FAILURES").parse().unwrap();
    let mut rng = StdRng::seed_from_u64(seed);
    let (chance, drawn) = (rng.random_range(0.0..1.0), rng.random_range(0..100_000));
    let takes = match read("TAKES").parse::<i64>().unwrap() {
        0 => drawn,
        fixed => fixed,
    };
    let result = match chance {
        chance if chance < failures * 0.4 => Err(Failure::permanent("no")),
        chance if chance < failures => Err(Failure::transient("not yet")),
        _ => Ok(json!({"took": takes})),
    };
    // Some failures hang: they are stopped when they time out.
    Scripted { takes: TimeDelta::milliseconds(takes), hangs: chance < failures * 0.2, result }
}

/// Stands in for `bash`.
pub(crate) struct Script;

#[async_trait]
impl TaskRunner for Script {
    fn kind(&self) -> TaskKind {
        TaskKind::Bash
    }

    async fn run(&self, job: &Job, context: &Context) -> Result<Value, Unfinished> {
        let Scripted { takes, hangs, result } = scripted(&job.config, &job.task, job.attempt);
        let clock = &context.clock;
        let end = clock.now() + if hangs { TimeDelta::days(1) } else { takes };
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => Err(Unfinished::Stopped),
            () = clock.wait_until(end) => result.map_err(Unfinished::from),
        }
    }
}

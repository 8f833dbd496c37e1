//! The task runners, one for each task type, and what applies to all of them: the timeout of attempts, the size limit of
//! outputs, and the redaction of secrets.

mod builtin;
mod http;
mod output;
mod programs;

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::Value;

use model::{ErrorClass, Failure, TaskKind};

use crate::job::{Context, Job};
use crate::log::{Level, Stream};

pub(crate) use http::{Breakers, Http, Redact};
pub(crate) use output::{MAX_OUTPUT_BYTES, too_large};

/// The maximum duration of an attempt, even if its timeout is longer.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Runs attempts at tasks of one type.
#[async_trait]
pub trait TaskRunner: Send + Sync {
    /// The type of its tasks.
    fn kind(&self) -> TaskKind;

    /// Runs one attempt and returns its output. After a crash it may run again for the same attempt. It must return soon
    /// after `context.cancel` is cancelled: with [`Unfinished::Stopped`], if it is not done.
    async fn run(&self, job: &Job, context: &Context) -> Result<Value, Unfinished>;
}

/// The task runners of a worker, one for each task type that is not an engine task.
pub struct TaskRunners(BTreeMap<TaskKind, Box<dyn TaskRunner>>);

impl TaskRunners {
    /// The runners of all built-in task types.
    pub fn standard() -> Self {
        let runners = TaskKind::ALL.iter().filter_map(|kind| standard(*kind));
        Self(runners.map(|runner| (runner.kind(), runner)).collect())
    }

    /// Applies an egress policy to `http` tasks.
    pub(crate) fn with_egress_policy(self, egress: host::EgressPolicy) -> Self {
        self.with(http::Http::with_egress_policy(egress))
    }

    /// Replaces the runner of a task type.
    pub fn with(mut self, runner: impl TaskRunner + 'static) -> Self {
        self.0.insert(runner.kind(), Box::new(runner));
        self
    }

    /// Runs one attempt to its end: its output, or why there is none.
    pub async fn run(&self, job: &Job, context: &Context) -> Result<Value, Unfinished> {
        let result = match self.0.get(&job.kind) {
            Some(runner) => run_with_timeout(runner.as_ref(), job, context)
                .await
                .and_then(|output| Ok(output::check(output)?)),
            None => {
                Err(Failure::permanent(format!("workers do not run engine tasks such as `{}`", job.kind))
                    .into())
            }
        };
        match result {
            // Outputs are stored and shown.
            Ok(output) => Ok(context.log.redacted_value(output)),
            Err(Unfinished::Stopped) => {
                context.log.line(Stream::System, Level::Error, STOPPED).await;
                Err(Unfinished::Stopped)
            }
            Err(Unfinished::Failed(failure)) => {
                let message = context.log.redacted(&failure.message);
                context.log.line(Stream::System, Level::Error, &message).await;
                Err(Failure { message, ..failure }.into())
            }
        }
    }
}

/// The runner of a task type; engine tasks have none.
fn standard(kind: TaskKind) -> Option<Box<dyn TaskRunner>> {
    Some(match kind {
        TaskKind::Noop => Box::new(builtin::Noop),
        TaskKind::Echo => Box::new(builtin::Echo),
        TaskKind::Fail => Box::new(builtin::Fail),
        TaskKind::Flaky => Box::new(builtin::Flaky),
        TaskKind::Http => Box::new(http::Http::default()),
        TaskKind::Bash => Box::new(programs::Bash),
        TaskKind::Python => Box::new(programs::Python),
        TaskKind::Sleep
        | TaskKind::Switch
        | TaskKind::Transform
        | TaskKind::WaitForSignal
        | TaskKind::Approval
        | TaskKind::FanOut
        | TaskKind::FanIn
        | TaskKind::Workflow
        | TaskKind::Sensor => return None,
    })
}

/// Runs the attempt, and cancels it at its timeout. It may then stop gracefully, but its result no longer counts.
async fn run_with_timeout(
    runner: &dyn TaskRunner,
    job: &Job,
    context: &Context,
) -> Result<Value, Unfinished> {
    let timeout = job.timeout.min(MAX_TIMEOUT);
    let bounded = Context { cancel: context.cancel.child_token(), ..context.clone() };
    let mut work = pin!(runner.run(job, &bounded));
    tokio::select! {
        biased;
        result = &mut work => result,
        () = context.wait(timeout) => {
            bounded.cancel.cancel();
            let _ = work.await;
            let seconds = timeout.as_secs_f64();
            let message = format!("the attempt took longer than its timeout_seconds of {seconds}");
            Err(Failure::new(ErrorClass::Timeout, message).into())
        }
    }
}

/// Why an attempt has no output.
#[derive(Clone, PartialEq, Debug)]
pub enum Unfinished {
    /// The worker cancelled it, so it can be handed back.
    Stopped,
    /// The task failed with this error.
    Failed(Failure),
}

const STOPPED: &str = "the attempt was stopped before it was done";

impl From<Failure> for Unfinished {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// The failure to report, if a stopped attempt is not handed back.
impl From<Unfinished> for Failure {
    fn from(unfinished: Unfinished) -> Self {
        match unfinished {
            Unfinished::Stopped => Self::new(ErrorClass::Killed, STOPPED),
            Unfinished::Failed(failure) => failure,
        }
    }
}

/// The job's config, parsed for its task type.
fn config<T: DeserializeOwned>(job: &Job) -> Result<T, Failure> {
    language::config::read(job.kind, job.config.clone())
        .map_err(|error| Failure::permanent(error.to_string()))
}

#[cfg(test)]
pub(crate) mod tests;

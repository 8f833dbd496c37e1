//! The task runners, one for each task type, and what applies to all of them: the timeout of attempts, the size limit of
//! outputs, and the redaction of secrets.

mod builtin;
mod exec;
mod http;
mod output;
mod programs;
mod user_code;

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::Value;

use model::{ErrorClass, Failure, TaskKind};

use crate::job::{Context, Job};
use crate::log::{Level, Stream};

pub use exec::Exec;
pub use http::{Breakers, SharedBreakers};
pub(crate) use http::{Http, Redact};
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
    /// The runners of all built-in task types but engine tasks.
    pub fn standard() -> Self {
        let runners: [Box<dyn TaskRunner>; 7] = [
            Box::new(builtin::Noop),
            Box::new(builtin::Echo),
            Box::new(builtin::Fail),
            Box::new(builtin::Flaky),
            Box::new(http::Http::default()),
            Box::new(programs::Bash),
            Box::new(programs::Python),
        ];
        Self(runners.into_iter().map(|runner| (runner.kind(), runner)).collect())
    }

    /// The task types that it runs.
    pub fn kinds(&self) -> impl Iterator<Item = TaskKind> {
        self.0.keys().cloned()
    }

    /// Applies an egress policy to `http` tasks.
    pub(crate) fn with_egress_policy(self, egress: host::EgressPolicy) -> Self {
        self.with(http::Http::with_egress_policy(egress))
    }

    /// Refuses the task types that run code of users.
    pub(crate) fn without_user_code(self) -> Self {
        let kinds = TaskKind::ALL.iter().filter(|kind| kind.runs_user_code());
        kinds.fold(self, |runners, kind| runners.with(user_code::Denied(kind.clone())))
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
            None => Err(Failure::permanent(not_run(&job.kind)).into()),
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
                let detail = failure.detail.map(|detail| context.log.redacted_value(detail));
                Err(Failure { message, detail, ..failure }.into())
            }
        }
    }
}

/// Why there is no runner for a task type.
fn not_run(kind: &TaskKind) -> String {
    match kind {
        TaskKind::Custom(name) => {
            format!(
                "there is no program for tasks of type `{name}` here: name one with `--exec {name}=PROGRAM`"
            )
        }
        engine_task => format!("workers do not run engine tasks such as `{engine_task}`"),
    }
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
    language::config::read(&job.kind, job.config.clone())
        .map_err(|error| Failure::permanent(error.to_string()))
}

#[cfg(test)]
pub(crate) mod tests;

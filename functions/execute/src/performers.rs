//! What performs attempts at each task type, and what holds for all of them: the attempt's time-out,
//! the limit of its output, and failures whose messages show no secret.

mod http;
mod output;
mod programs;
mod wiring;

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::Value;

use model::{ErrorClass, Failure, TaskKind};

use crate::job::{Context, Job};
use crate::log::{Level, Log, Stream};

pub(crate) use http::{Breakers, Http, Hush};
pub(crate) use output::{MAX_OUTPUT_BYTES, too_large};

/// No attempt takes longer, whatever its time-out says.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Performs attempts at tasks of one type.
#[async_trait]
pub trait Performer: Send + Sync {
    /// The type of the tasks that it performs.
    fn kind(&self) -> TaskKind;

    /// Performs one attempt and returns its output. It may be performed again for the same attempt
    /// after a crash, and must return soon after `context.cancel` is cancelled: with [`Unfinished::Stopped`], if it is
    /// not done.
    async fn perform(&self, job: &Job, context: &Context) -> Result<Value, Unfinished>;
}

/// The performers of this worker, one for each task type that is not an engine task.
pub struct Performers(BTreeMap<TaskKind, Box<dyn Performer>>);

impl Performers {
    /// Performers for all the task types that come with Ebbflow.
    pub fn standard() -> Self {
        let performers = TaskKind::ALL.iter().filter_map(|kind| standard(*kind));
        Self(performers.map(|performer| (performer.kind(), performer)).collect())
    }

    /// The same, with requests that go only where they may.
    pub(crate) fn limited_to(self, outgoing: host::Outgoing) -> Self {
        self.with(http::Http::limited_to(outgoing))
    }

    /// The same with another performer, which replaces the one of the same type.
    pub fn with(mut self, performer: impl Performer + 'static) -> Self {
        self.0.insert(performer.kind(), Box::new(performer));
        self
    }

    /// Performs one attempt to its end: its output, or why there is none.
    pub async fn perform(&self, job: &Job, context: &Context) -> Result<Value, Unfinished> {
        let result = match self.0.get(&job.kind) {
            Some(performer) => {
                in_time(performer.as_ref(), job, context).await.and_then(|output| Ok(output::check(output)?))
            }
            None => {
                Err(Failure::permanent(format!("no worker performs engine tasks such as `{}`", job.kind))
                    .into())
            }
        };
        match result {
            Ok(output) => Ok(masked(output, &context.log)),
            Err(Unfinished::Stopped) => {
                context.log.line(Stream::System, Level::Error, STOPPED).await;
                Err(Unfinished::Stopped)
            }
            Err(Unfinished::Failed(failure)) => {
                let message = context.log.clean(&failure.message);
                context.log.line(Stream::System, Level::Error, &message).await;
                Err(Failure { message, ..failure }.into())
            }
        }
    }
}

/// The performer of a task type; engine tasks have none.
fn standard(kind: TaskKind) -> Option<Box<dyn Performer>> {
    Some(match kind {
        TaskKind::Noop => Box::new(wiring::Noop),
        TaskKind::Echo => Box::new(wiring::Echo),
        TaskKind::Fail => Box::new(wiring::Fail),
        TaskKind::Flaky => Box::new(wiring::Flaky),
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

/// The output with the secrets masked that a task may have put into it: outputs are stored and shown.
fn masked(output: Value, log: &Log) -> Value {
    match output {
        _ if !log.has_secrets() => output,
        Value::String(text) => Value::String(log.clean(&text)),
        Value::Array(items) => items.into_iter().map(|item| masked(item, log)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (log.clean(&name), masked(value, log))).collect()
        }
        Value::Number(number) if log.clean(&number.to_string()) != number.to_string() => "***".into(),
        other => other,
    }
}

/// Performs the attempt, but tells it to stop when its time is up. It then has the chance to end in
/// good order; whatever it still returns, it was too late.
async fn in_time(performer: &dyn Performer, job: &Job, context: &Context) -> Result<Value, Unfinished> {
    let limit = job.timeout.min(MAX_TIMEOUT);
    let bounded = Context { cancel: context.cancel.child_token(), ..context.clone() };
    let mut work = pin!(performer.perform(job, &bounded));
    tokio::select! {
        biased;
        result = &mut work => result,
        () = context.pass(limit) => {
            bounded.cancel.cancel();
            let _ = work.await;
            let seconds = limit.as_secs_f64();
            let message = format!("the attempt took longer than its timeout_seconds of {seconds}");
            Err(Failure::new(ErrorClass::Timeout, message).into())
        }
    }
}

/// Why an attempt has no output.
#[derive(Clone, PartialEq, Debug)]
pub enum Unfinished {
    /// The worker cancelled it. That says nothing about the work, so it can be handed back.
    Stopped,
    /// The work failed.
    Failed(Failure),
}

const STOPPED: &str = "the attempt was told to stop before it was done";

impl From<Failure> for Unfinished {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// What is reported of a stopped attempt that is not handed back.
impl From<Unfinished> for Failure {
    fn from(unfinished: Unfinished) -> Self {
        match unfinished {
            Unfinished::Stopped => Self::new(ErrorClass::Killed, STOPPED),
            Unfinished::Failed(failure) => failure,
        }
    }
}

/// The job's config as its type wants it.
fn config<T: DeserializeOwned>(job: &Job) -> Result<T, Failure> {
    language::config::read(job.kind, job.config.clone())
        .map_err(|error| Failure::permanent(error.to_string()))
}

#[cfg(test)]
pub(crate) mod tests;

//! The task types that a worker performs, and what holds for all of them: the attempt's time-out,
//! the limit of its output, and a failure in words that show no secret.
//!
//! `sleep` is not among them: it is a timer, and never reaches a worker.

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

use model::{ErrorClass, Failure};

use crate::job::{Context, Job};
use crate::log::{Level, Log, Stream};

pub(crate) use http::{Breakers, Http, Hush};
pub(crate) use output::{OUTPUT_LIMIT, too_large};

/// No attempt takes longer, whatever its time-out says.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// One type of task.
#[async_trait]
pub trait TaskKind: Send + Sync {
    /// The name that workflows use.
    fn name(&self) -> &'static str;

    /// Performs one attempt and returns its output. It may be performed again for the same attempt
    /// after a crash, and must return soon after `context.cancel` is cancelled: with [`Unfinished::Stopped`], if it is
    /// not done.
    async fn start(&self, job: &Job, context: &Context) -> Result<Value, Unfinished>;
}

/// The task types that this worker knows.
pub struct Kinds(BTreeMap<&'static str, Box<dyn TaskKind>>);

impl Kinds {
    /// All the task types that come with Ebbflow.
    pub fn standard() -> Self {
        let kinds: [Box<dyn TaskKind>; 7] = [
            Box::new(wiring::Noop),
            Box::new(wiring::Echo),
            Box::new(wiring::Fail),
            Box::new(wiring::Flaky),
            Box::new(http::Http::default()),
            Box::new(programs::Bash),
            Box::new(programs::Python),
        ];
        Self(kinds.into_iter().map(|kind| (kind.name(), kind)).collect())
    }

    /// The same, with requests that go only where they may.
    pub(crate) fn limited_to(self, outgoing: host::Outgoing) -> Self {
        self.with(http::Http::limited_to(outgoing))
    }

    /// The same with one more type; it takes the place of another of its name.
    pub fn with(mut self, kind: impl TaskKind + 'static) -> Self {
        self.0.insert(kind.name(), Box::new(kind));
        self
    }

    /// Performs one attempt to its end: its output, or why there is none.
    pub async fn perform(&self, job: &Job, context: &Context) -> Result<Value, Unfinished> {
        let result = match self.0.get(job.kind.as_str()) {
            Some(kind) => {
                in_time(kind.as_ref(), job, context).await.and_then(|output| Ok(output::check(output)?))
            }
            None => Err(self.unknown(&job.kind).into()),
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

    fn unknown(&self, kind: &str) -> Failure {
        let known = self.0.keys().copied().collect::<Vec<_>>().join(", ");
        Failure::permanent(format!("this worker has no task type `{kind}`; it has {known}"))
    }
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
async fn in_time(kind: &dyn TaskKind, job: &Job, context: &Context) -> Result<Value, Unfinished> {
    let limit = job.timeout.min(LONGEST);
    let bounded = Context { cancel: context.cancel.child_token(), ..context.clone() };
    let mut work = pin!(kind.start(job, &bounded));
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
    let kind =
        language::kinds::kind(&job.kind).expect("a type that is performed here is one of the language");
    language::config::read(kind, job.config.clone()).map_err(|error| Failure::permanent(error.to_string()))
}

#[cfg(test)]
pub(crate) mod tests;

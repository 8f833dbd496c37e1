//! The lease protocol over HTTP, as one worker speaks it.

use std::fmt;
use std::sync::Arc;

use api::execution::{
    BreakerStep, CheckpointBody, CompleteBody, DoneBody, FailBody, GoodbyeBody, HeartbeatBody, HeartbeatView,
    HostBreakersBody, HostBreakersView, LeaseBody, LeaseView, LeasedView, LogBody, ProgressBody, ReleaseBody,
    StepView, UsageView,
};
use async_trait::async_trait;
use execute::{AttemptSink, SinkError};
use model::{Done, Failure, Instant, ProgressReport, RunId};
use reqwest::header::HeaderMap;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use store::LogLine;

use crate::client::{self, Client};

/// The status of a request that is too large.
const TOO_LARGE: u16 = 413;

/// The maximum size of the lines in one request, in bytes; the server accepts a mebibyte of JSON.
const MAX_LOG_BYTES: usize = 256 * 1024;

/// Names an attempt to the server.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct AttemptId {
    pub(super) run: RunId,
    pub(super) task: String,
    pub(super) attempt: u32,
}

impl From<&LeasedView> for AttemptId {
    fn from(leased: &LeasedView) -> Self {
        Self { run: leased.run, task: leased.task.clone(), attempt: leased.attempt }
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attempt {} of `{}` of run {}", self.attempt, self.task, self.run)
    }
}

/// Why the server did not accept something.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// The attempt is no longer this worker's.
    #[error("{0}")]
    Lost(String),
    /// A retry may succeed: the server is down or busy, or the token must be renewed.
    #[error("{0}")]
    Later(String),
    /// No retry can succeed.
    #[error("{0}")]
    Never(String),
}

impl From<client::Error> for Refusal {
    fn from(error: client::Error) -> Self {
        let text = error.to_string();
        match error {
            client::Error::Rejected { code, .. } if code == "attempt_lost" => Self::Lost(text),
            client::Error::Rejected { status: 404, .. } => Self::Lost(text),
            client::Error::Rejected { status: 400 | 409 | TOO_LARGE | 422, .. } => Self::Never(text),
            _ => Self::Later(text),
        }
    }
}

/// How an attempt ended.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Report {
    /// It succeeded, with this output.
    Complete(Value),
    /// It failed, for this reason.
    Fail(Failure),
    /// It was stopped before it was done, and another worker may take it.
    Release { reason: String, begun: bool },
}

/// The server, as this worker talks to it.
#[derive(Clone)]
pub(super) struct Protocol {
    client: Arc<Client>,
    /// The name of the worker.
    worker: String,
}

impl Protocol {
    pub(super) fn new(client: Client, worker: String) -> Self {
        Self { client: Arc::new(client), worker }
    }

    /// The name of the worker.
    pub(super) fn worker(&self) -> &str {
        &self.worker
    }

    pub(super) async fn lease(&self, body: &LeaseBody) -> client::Result<LeaseView> {
        self.post(&["lease"], body).await
    }

    pub(super) async fn heartbeat(&self, usage: Option<UsageView>) -> client::Result<HeartbeatView> {
        self.post(&["heartbeat"], &HeartbeatBody { worker: self.worker.clone(), usage }).await
    }

    pub(super) async fn goodbye(&self) -> client::Result<StepView> {
        self.post(&["goodbye"], &GoodbyeBody { worker: self.worker.clone() }).await
    }

    /// Asks about breakers of hosts, or reports what this worker found out about one.
    pub(super) async fn breakers(
        &self,
        step: BreakerStep,
        hosts: Vec<String>,
        message: Option<String>,
    ) -> client::Result<HostBreakersView> {
        let worker = self.worker.clone();
        self.post(&["breakers"], &HostBreakersBody { worker, step, hosts, message }).await
    }

    /// Reports how an attempt ended. Repeating a report changes nothing.
    pub(super) async fn report(&self, id: &AttemptId, report: &Report) -> Result<(), Refusal> {
        let worker = self.worker.clone();
        match report {
            Report::Complete(output) => {
                self.post_report(id, "complete", &CompleteBody { worker, output: output.clone() }).await
            }
            Report::Fail(failure) => self.post_report(id, "fail", &fail_body(worker, failure)).await,
            Report::Release { reason, begun } => {
                self.post_report(
                    id,
                    "release",
                    &ReleaseBody { worker, reason: Some(reason.clone()), begun: *begun },
                )
                .await
            }
        }
    }

    async fn post_report(&self, id: &AttemptId, what: &str, body: &impl Serialize) -> Result<(), Refusal> {
        let (run, attempt) = (id.run.to_string(), id.attempt.to_string());
        let _: StepView = self.post(&[&run, &id.task, &attempt, what], body).await?;
        Ok(())
    }

    async fn post<T: DeserializeOwned>(&self, path: &[&str], body: &impl Serialize) -> client::Result<T> {
        let path: Vec<&str> = ["execution"].into_iter().chain(path.iter().copied()).collect();
        self.client.post(&path, HeaderMap::new(), body).await
    }
}

fn fail_body(worker: String, failure: &Failure) -> FailBody {
    FailBody {
        worker,
        message: failure.message.clone(),
        class: failure.class.into(),
        exit_code: failure.exit_code,
        signal: failure.signal,
        detail: failure.detail.clone(),
        retry_after_seconds: failure.retry_after_seconds,
    }
}

/// Sends the records of one attempt to the server.
pub(super) struct ServerSink {
    pub(super) protocol: Protocol,
    pub(super) id: AttemptId,
}

impl ServerSink {
    async fn send(&self, what: &str, body: &impl Serialize) -> Result<(), SinkError> {
        self.protocol.post_report(&self.id, what, body).await.map_err(|refusal| match refusal {
            Refusal::Later(why) => SinkError::Unavailable(why),
            Refusal::Lost(why) | Refusal::Never(why) => SinkError::Refused(why),
        })
    }
}

#[async_trait]
impl AttemptSink for ServerSink {
    async fn append_log(&self, first: u32, lines: &[LogLine]) -> Result<(), SinkError> {
        for (first, lines) in requests(first, lines) {
            let worker = self.protocol.worker.clone();
            let lines = lines.iter().cloned().map(Into::into).collect();
            self.send("log", &LogBody { worker, first, lines }).await?;
        }
        Ok(())
    }

    async fn save_checkpoint(&self, _: Instant, data: &Value) -> Result<(), SinkError> {
        let worker = self.protocol.worker.clone();
        self.send("checkpoint", &CheckpointBody { worker, checkpoint: data.clone() }).await
    }

    async fn report_progress(&self, report: &ProgressReport) -> Result<(), SinkError> {
        let progress = report.done.clone().map(|Done { fraction, message }| DoneBody { fraction, message });
        let (worker, metrics) = (self.protocol.worker.clone(), report.metrics.clone());
        if progress.is_none() && metrics.is_empty() {
            // The server reads the phase out of the checkpoint.
            return Ok(());
        }
        self.send("progress", &ProgressBody { worker, progress, metrics }).await
    }
}

/// Divides lines into requests that the server accepts, in the same way each time.
fn requests(mut first: u32, mut lines: &[LogLine]) -> Vec<(u32, &[LogLine])> {
    let mut found = Vec::new();
    while !lines.is_empty() {
        let mut bytes = 0;
        let fitting = lines.iter().take_while(|line| {
            bytes += line.line.len();
            bytes <= MAX_LOG_BYTES
        });
        let count = fitting.count().max(1);
        let (request, rest) = lines.split_at(count);
        found.push((first, request));
        first += count as u32;
        lines = rest;
    }
    found
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    #[test]
    fn long_lines_are_sent_in_several_requests_and_keep_their_numbers() {
        let line = |length: usize| LogLine {
            at: DateTime::UNIX_EPOCH,
            stream: "stdout".into(),
            level: "info".into(),
            line: "x".repeat(length),
        };
        let lines = [line(3), line(MAX_LOG_BYTES), line(1), line(MAX_LOG_BYTES + 1), line(2), line(2)];
        let sent: Vec<(u32, usize)> =
            requests(10, &lines).into_iter().map(|(first, lines)| (first, lines.len())).collect();
        assert_eq!(sent, [(10, 1), (11, 1), (12, 1), (13, 1), (14, 2)]);
    }

    #[test]
    fn only_a_lost_attempt_or_a_request_that_cannot_succeed_ends_the_retries() {
        let rejected = |status, code: &str| {
            let (code, message) = (code.to_owned(), "no".to_owned());
            Refusal::from(client::Error::Rejected { status, code, message, details: Value::Null })
        };
        let no = || "no".to_owned();
        assert_eq!(rejected(409, "attempt_lost"), Refusal::Lost(no()));
        assert_eq!(rejected(404, "not_found"), Refusal::Lost(no()));
        assert_eq!(rejected(422, "bad_lines"), Refusal::Never(no()));
        for status in [401, 403, 429, 500, 503] {
            assert_eq!(rejected(status, "later"), Refusal::Later(no()), "{status}");
        }
        let away = client::Error::Unreachable { url: "http://x".into(), why: "refused".into() };
        assert!(matches!(Refusal::from(away), Refusal::Later(_)));
    }
}

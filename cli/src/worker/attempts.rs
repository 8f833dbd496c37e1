//! From a leased attempt to its report.

use std::sync::Arc;
use std::time::Duration;

use api::execution::LeasedView;
use execute::{Job, Log, StopSignals, Unfinished};
use model::{Failure, TaskKind, TenantId};
use serde_json::Value;
use tracing::{info, warn};

use super::protocol::{AttemptId, Refusal, Report, ServerSink};
use super::{FIRST_PAUSE, Worker, longer};

impl Worker {
    /// Runs an attempt, and reports its result.
    pub(super) async fn attempt(&self, leased: LeasedView, signals: StopSignals) {
        let id = AttemptId::from(&leased);
        info!("Began {id}");
        let result = match job(leased.clone()) {
            Ok(job) => self.run(job, &id, leased.secrets, signals).await,
            Err(failure) => Err(failure.into()),
        };
        let report = match (result, self.held.hand_back_reason()) {
            (Ok(output), _) => Some(Report::Complete(output)),
            (Err(Unfinished::Failed(failure)), _) => Some(Report::Fail(failure)),
            (Err(Unfinished::Stopped), Some(reason)) if !self.held.is_lost(&id) => {
                Some(Report::Release { reason, begun: true })
            }
            // The server took it away.
            (Err(Unfinished::Stopped), _) => None,
        };
        match report {
            Some(report) => self.deliver(&id, report).await,
            None => info!("Stopped {id}"),
        }
        self.held.remove(&id);
    }

    async fn run(
        &self,
        job: Job,
        id: &AttemptId,
        secrets: Vec<String>,
        signals: StopSignals,
    ) -> Result<Value, Unfinished> {
        let sink = ServerSink { protocol: self.protocol.clone(), id: id.clone() };
        let log = Log::open(Arc::new(sink), self.clock.clone(), &job);
        log.redact(secrets.into_iter().chain([self.token.clone()]));
        self.runner.run(job, log, signals, self.breakers.clone()).await
    }

    /// Reports until the server has it or refuses it, or the worker can wait no longer.
    async fn deliver(&self, id: &AttemptId, mut report: Report) {
        let mut pause = FIRST_PAUSE;
        let abandoned = self.shutdown.abandoned();
        while let Some(reported) = abandoned.run_until_cancelled(self.protocol.report(id, &report)).await {
            match reported {
                Ok(()) => return info!("{} {id}", describe(&report)),
                Err(Refusal::Lost(why)) => return warn!("The result of {id} came too late: {why}"),
                Err(Refusal::Never(why)) => match report {
                    // An output can be refused, a failure that says so cannot.
                    Report::Complete(_) => {
                        report = Report::Fail(Failure::permanent(format!("the output was refused: {why}")));
                    }
                    _ => return warn!("The server refuses the result of {id}: {why}"),
                },
                Err(Refusal::Later(why)) => {
                    warn!("Cannot report the result of {id} yet: {why}");
                    abandoned.run_until_cancelled(self.wait(pause)).await;
                    pause = longer(pause);
                }
            }
        }
    }
}

fn describe(report: &Report) -> &'static str {
    match report {
        Report::Complete(_) => "Completed",
        Report::Fail(_) => "Reported the failure of",
        Report::Release { .. } => "Handed back",
    }
}

/// The attempt as the runner takes it.
fn job(leased: LeasedView) -> Result<Job, Failure> {
    let kind = TaskKind::named(&leased.kind).ok_or_else(|| {
        let version = env!("CARGO_PKG_VERSION");
        Failure::permanent(format!(
            "this worker, of version {version}, does not know the type `{}`",
            leased.kind
        ))
    })?;
    let mut document = leased.input;
    if let (Value::Object(document), Some(checkpoint)) = (&mut document, leased.checkpoint) {
        document.insert("checkpoint".into(), checkpoint);
    }
    Ok(Job {
        // A worker serves one tenant, and knows it by name only.
        tenant: TenantId::DEFAULT,
        run: leased.run,
        attempt: leased.attempt,
        workflow: leased.workflow,
        task: leased.task,
        kind,
        config: leased.config,
        document,
        timeout: Duration::from_secs(leased.timeout_seconds.into()),
        resources: leased.resources,
        network: leased.network,
    })
}

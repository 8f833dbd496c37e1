//! From a work message to a settled attempt: render, claim, run, report.

use std::sync::{Arc, PoisonError, RwLock};

use chrono::TimeDelta;
use engine::{Command, Graph};
use host::Verdict;
use host::secrets::Redactor;
use host::storage::{Access, Storage};
use model::message::{TaskDispatched, TaskReported, TaskResult};
use model::{Failure, Instant, Message, TaskSpec, TenantName, WorkerId};
use runtime::{Brief, Runtime, Settled};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tracing::{Instrument, Span, warn};

use crate::limit::timeout_for;
use crate::runner::{Runner, StopSignals};
use crate::sensors::SensorClients;
use crate::sink::StoreSink;
use crate::task_runners::{Http, Unfinished};
use crate::{Job, Log, Worker};

/// How often a report is tried, over about twelve seconds, before it is published as a message.
const MAX_REPORT_TRIES: u32 = 7;

/// The maximum number of inline tasks that run in sequence before the next one is published as a message.
const MAX_INLINE_TASKS: u32 = 50;

/// The maximum number of side-effecting attempts one instance runs concurrently. Further ones wait before they are claimed.
const MAX_CONCURRENT_ATTEMPTS: usize = 64;

/// Claims attempts, has them run and reports their results.
pub struct Executor {
    pub(crate) runtime: Arc<Runtime>,
    worker: RwLock<Arc<Worker>>,
    pub(crate) runner: Runner,
    permits: Semaphore,
    pub(crate) clients: SensorClients,
}

impl Executor {
    /// An executor whose attempts run in this runner.
    pub fn new(runtime: Arc<Runtime>, worker: Arc<Worker>, runner: Runner) -> Self {
        let egress = runner.egress.clone();
        let http = Http::with_egress_policy(egress.clone());
        let clients = SensorClients { egress, http, storage: Storage::new(Access::Read, None) };
        let (worker, permits) = (RwLock::new(worker), Semaphore::new(MAX_CONCURRENT_ATTEMPTS));
        Self { runtime, worker, runner, permits, clients }
    }

    /// Lists objects on another server with the API of Google Cloud Storage.
    pub fn with_storage(mut self, endpoint: Option<String>) -> Self {
        self.clients.storage = Storage::new(Access::Read, endpoint);
        self
    }

    /// The worker that claims attempts.
    pub fn worker(&self) -> Arc<Worker> {
        self.worker.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the worker that claims attempts.
    pub fn replace_worker(&self, worker: Arc<Worker>) {
        *self.worker.write().unwrap_or_else(PoisonError::into_inner) = worker;
    }

    /// Runs one attempt and settles it, then continues with inline tasks that it releases. Does nothing for an attempt that
    /// was settled or claimed before.
    pub async fn execute(self: &Arc<Self>, work: &TaskDispatched) -> runtime::Result<Verdict> {
        let Settlement { verdict, next } = self.attempt(work).await?;
        if let Some(next) = next {
            // In a separate task: the work is in no other message, so a caller that hangs up must not end it.
            let executor = self.clone();
            let inline = async move { executor.continue_inline(next).await };
            let _ = tokio::spawn(inline.in_current_span()).await;
        }
        Ok(verdict)
    }

    /// Runs a released inline task, and those that it releases in turn.
    async fn continue_inline(self: &Arc<Self>, mut work: TaskDispatched) {
        for _ in 0..MAX_INLINE_TASKS {
            match self.attempt(&work).await {
                Ok(Settlement { verdict: Verdict::Done, next: Some(next) }) => work = next,
                Ok(Settlement { verdict: Verdict::Done, next: None }) => return,
                // As a message it is retried, or dead-lettered with the reason.
                Ok(_) | Err(_) => break,
            }
        }
        self.runtime.publish_work(work).await;
    }

    async fn attempt(self: &Arc<Self>, work: &TaskDispatched) -> runtime::Result<Settlement> {
        let Some(graph) = self.runtime.graph(work.version).await? else {
            return Ok(Verdict::Reject(format!("there is no version {}", work.version.0)).into());
        };
        if !graph.has(work.key.task, work.child) {
            let (version, task) = (work.version.0, work.key.task.0);
            return Ok(Verdict::Reject(format!("version {version} has no task {task}")).into());
        }
        label_span(work, &graph);
        let tenant = self.runtime.tenants().name(work.tenant).await?;
        let named = runtime::secrets_of(spec(&graph, work));
        let secrets = match self.runner.secrets.of(&tenant).resolve(named).await {
            Ok(secrets) => secrets,
            Err(failure) => return self.report(work, None, self.runtime.clock().now(), Err(failure)).await,
        };
        match self.runtime.job(work, &graph, secrets.clone()).await? {
            runtime::Job::Gone => Ok(Verdict::Reject(format!("there is no run {}", work.key.run)).into()),
            runtime::Job::Broken(failure) => {
                let failure = Redactor::of(&secrets).failure(failure);
                self.report(work, None, self.runtime.clock().now(), Err(failure)).await
            }
            runtime::Job::Ready(brief) if spec(&graph, work).kind.is_inline() => {
                // Without side effects, so running it twice is harmless: a claim would only cost a commit.
                let prepared = Prepared { tenant, brief, secrets };
                let (started_at, result) =
                    self.run_task(work, &graph, prepared, StopSignals::default()).await;
                self.report(work, None, started_at, result.map_err(Failure::from)).await
            }
            runtime::Job::Ready(brief) => {
                // In a separate task, so that a caller that hangs up does not end a claimed attempt.
                let prepared = Prepared { tenant, brief, secrets };
                let (executor, work) = (self.clone(), work.clone());
                let attempt = async move { executor.execute_with_claim(&work, &graph, prepared).await };
                let panicked = |panic| Ok(Verdict::Reject(format!("the attempt panicked: {panic}")).into());
                tokio::spawn(attempt.in_current_span()).await.unwrap_or_else(panicked)
            }
        }
    }

    async fn execute_with_claim(
        &self,
        work: &TaskDispatched,
        graph: &Graph,
        prepared: Prepared,
    ) -> runtime::Result<Settlement> {
        let _permit = self.permits.acquire().await.expect("it is never closed");
        let worker = self.worker();
        if !worker.register().await? {
            return Ok(Verdict::Retry(worker.shutdown_reason().unwrap_or_default().to_owned()).into());
        }
        let settlement = self.claim_and_run(&worker, work, graph, prepared).await;
        worker.release().await;
        settlement
    }

    async fn claim_and_run(
        &self,
        worker: &Worker,
        work: &TaskDispatched,
        graph: &Graph,
        prepared: Prepared,
    ) -> runtime::Result<Settlement> {
        // Reserved before the claim: a heartbeat hands back attempts that are ours in the store but unknown here.
        let signals = match worker.claims.reserve(work.key, work.attempt) {
            Ok(signals) => signals,
            Err(verdict) => return Ok(verdict.into()),
        };
        let claim = Command::Claim { task: work.key.task, attempt: work.attempt, worker: worker.id() };
        let settlement = match self.runtime.settle(work.key.run, claim).await {
            Ok(Settled::Applied) => {
                worker.claims.confirm(work.key, work.attempt);
                let (started_at, result) = self.run_task(work, graph, prepared, signals).await;
                match (worker.claims.hand_back_reason(), result) {
                    (Some(reason), Err(Unfinished::Stopped)) => {
                        Ok(self.hand_back(work, worker.id(), reason).await.into())
                    }
                    (_, result) => {
                        let result = result.map_err(Failure::from);
                        self.report(work, Some(worker.id()), started_at, result).await
                    }
                }
            }
            Ok(Settled::Stale) => Ok(Verdict::Done.into()),
            Ok(Settled::NoSuchRun) => Ok(Verdict::Reject(format!("there is no run {}", work.key.run)).into()),
            Err(error) => Err(error),
        };
        worker.claims.remove(work.key, work.attempt);
        settlement
    }

    async fn run_task(
        &self,
        work: &TaskDispatched,
        graph: &Graph,
        prepared: Prepared,
        signals: StopSignals,
    ) -> (Instant, Result<Value, Unfinished>) {
        let clock = self.runtime.clock();
        let started_at = clock.now();
        let (spec, Prepared { tenant, brief, secrets }) = (spec(graph, work), prepared);
        let job = Job {
            tenant: brief.tenant,
            run: work.key.run,
            attempt: work.attempt,
            workflow: graph.workflow().name.clone(),
            task: graph.name_at(work.key.task, work.child),
            kind: spec.kind.clone(),
            config: brief.config,
            document: brief.document,
            timeout: timeout_for(spec, work, started_at),
            resources: spec.resources,
            network: spec.network,
        };
        let store = self.runtime.store().clone();
        let sink = StoreSink { store, key: work.key, attempt: work.attempt };
        let log = Log::open(Arc::new(sink), clock.clone(), &job);
        log.redact(secrets.values().filter_map(Value::as_str).map(str::to_owned));
        if !spec.kind.is_inline() {
            // A side-effecting task may encounter any secret of its tenant, not only those it refers to.
            log.redact(self.runner.secrets.of(&tenant).all().await);
        }
        let breakers = self.worker().breakers.clone();
        (started_at, self.runner.run(job, log, signals, breakers).await)
    }

    /// Settles the attempt in this process. A report that is too late changes nothing. The work is done, so while the store
    /// is unavailable the report is retried, and finally sent to evaluate as a message.
    async fn report(
        &self,
        work: &TaskDispatched,
        worker: Option<WorkerId>,
        started_at: Instant,
        result: Result<Value, Failure>,
    ) -> runtime::Result<Settlement> {
        let (task, attempt) = (work.key.task, work.attempt);
        let result = result.map_or_else(TaskResult::Failed, TaskResult::Succeeded);
        let report = Command::Report { task, attempt, worker, started_at, result: result.clone() };
        if let Some(settlement) = self.settle_with_retries(work, report).await {
            return Ok(settlement);
        }
        let report = TaskReported { key: work.key, attempt, worker, started_at, result };
        self.runtime.bus().publish(&[Message::TaskReported(report)]).await.map_err(runtime::Error::Bus)?;
        Ok(Verdict::Done.into())
    }

    /// Hands back an attempt that was stopped. If that cannot be recorded, the sweep finds the attempt once this worker is
    /// gone.
    async fn hand_back(&self, work: &TaskDispatched, worker: WorkerId, reason: String) -> Verdict {
        let Some(hand_back) = self.hand_back_command(work, worker, reason).await else {
            return Verdict::Done;
        };
        let settlement = self.settle_with_retries(work, hand_back).await;
        settlement.map_or(Verdict::Done, |settlement| settlement.verdict)
    }

    /// The command that hands back an attempt, with retries while the store is unavailable.
    async fn hand_back_command(
        &self,
        work: &TaskDispatched,
        worker: WorkerId,
        reason: String,
    ) -> Option<Command> {
        for tries in 0..MAX_REPORT_TRIES {
            match self.runtime.workers().hand_back(work.key, work.attempt, worker, reason.clone()).await {
                Ok(command) => return Some(command),
                Err(error) => self.back_off(tries, &error).await,
            }
        }
        None
    }

    /// Settles the result of an attempt, with retries while the store is unavailable. Returns none if it stays unavailable.
    async fn settle_with_retries(&self, work: &TaskDispatched, command: Command) -> Option<Settlement> {
        for tries in 0..MAX_REPORT_TRIES {
            match self.settle_once(work, command.clone()).await {
                Err(error) => self.back_off(tries, &error).await,
                Ok((Settled::Stale, _)) if tries > 0 => {
                    self.publish_successors(work).await;
                    return Some(Verdict::Done.into());
                }
                Ok((Settled::Applied | Settled::Stale, next)) => {
                    return Some(Settlement { verdict: Verdict::Done, next });
                }
                Ok((Settled::NoSuchRun, _)) => {
                    return Some(Verdict::Reject(format!("there is no run {}", work.key.run)).into());
                }
            }
        }
        None
    }

    /// An earlier try may have been committed although it seemed to fail: then the messages that follow are unpublished.
    async fn publish_successors(&self, work: &TaskDispatched) {
        let recheck = Command::Recheck { claim_timeout: TimeDelta::zero(), served: None };
        if let Err(error) = self.runtime.settle(work.key.run, recheck).await {
            warn!("The sweep must continue run {}: {error}", work.key.run);
        }
    }

    /// Settles a command, and takes over a released inline task unless this worker shuts down.
    async fn settle_once(
        &self,
        work: &TaskDispatched,
        command: Command,
    ) -> runtime::Result<(Settled, Option<TaskDispatched>)> {
        if self.worker().shutdown_reason().is_some() {
            return Ok((self.runtime.settle(work.key.run, command).await?, None));
        }
        self.runtime.settle_and_go_on(work.key.run, command, &work.queue).await
    }

    async fn back_off(&self, tries: u32, error: &runtime::Error) {
        warn!("Cannot report a finished attempt yet: {error}");
        let clock = self.runtime.clock();
        clock.wait_until(clock.now() + TimeDelta::milliseconds(100 << tries)).await;
    }
}

/// The verdict on a delivery, and the inline task that it released.
struct Settlement {
    verdict: Verdict,
    next: Option<TaskDispatched>,
}

impl From<Verdict> for Settlement {
    fn from(verdict: Verdict) -> Self {
        Self { verdict, next: None }
    }
}

/// An attempt's brief, the secrets in it, and the tenant that they belong to.
struct Prepared {
    tenant: TenantName,
    brief: Brief,
    secrets: Map<String, Value>,
}

fn spec<'g>(graph: &'g Graph, work: &TaskDispatched) -> &'g TaskSpec {
    graph.spec_at(work.key.task, work.child)
}

/// Labels the log lines of this request with its attempt.
fn label_span(work: &TaskDispatched, graph: &Graph) {
    let task = graph.name_at(work.key.task, work.child);
    let span = Span::current();
    span.record("tenant", work.tenant.0).record("workflow", &*graph.workflow().name);
    span.record("task", task).record("attempt", work.attempt);
}

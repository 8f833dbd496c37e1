//! From a work message to a settled attempt: render, claim, run, report.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use chrono::TimeDelta;
use engine::{Command, Graph};
use futures::FutureExt;
use host::secrets::Redactor;
use host::storage::{Access, Storage};
use host::{EgressPolicy, Secrets, Verdict};
use metrics::{counter, histogram};
use model::message::{TaskDispatched, TaskReported, TaskResult};
use model::{ErrorClass, Failure, Instant, Message, TaskKind, TaskSpec, WorkerId};
use runtime::{Brief, Runtime, Settled};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tracing::{Instrument, Span, warn};

use crate::limit::{AttemptLimit, timeout_for};
use crate::process::Containment;
use crate::sensors::SensorClients;
use crate::task_runners::{Http, Unfinished};
use crate::worker::StopSignals;
use crate::{Context, Job, Log, TaskRunners, Worker};

/// How often a report is tried, over about twelve seconds, before it is published as a message.
const MAX_REPORT_TRIES: u32 = 7;

/// The maximum number of inline tasks that run in sequence before the next one is published as a message.
const MAX_INLINE_TASKS: u32 = 50;

/// The maximum number of side-effecting attempts one instance runs concurrently. Further ones wait before they are claimed.
const MAX_CONCURRENT_ATTEMPTS: usize = 64;

/// Claims attempts, runs them and reports their results.
pub struct Executor {
    pub(crate) runtime: Arc<Runtime>,
    worker: RwLock<Arc<Worker>>,
    pub(crate) task_runners: TaskRunners,
    scripts: PathBuf,
    pub(crate) scratch: PathBuf,
    pub(crate) secrets: Secrets,
    permits: Semaphore,
    pub(crate) clients: SensorClients,
    limit: AttemptLimit,
    containment: Option<Containment>,
}

impl Executor {
    /// An executor of the built-in task types. Script paths are relative to `scripts`.
    pub fn new(runtime: Arc<Runtime>, worker: Arc<Worker>, scripts: impl Into<PathBuf>) -> Self {
        let secrets = Secrets::default();
        let (worker, scratch) = (RwLock::new(worker), std::env::temp_dir());
        let (scripts, permits) = (scripts.into(), Semaphore::new(MAX_CONCURRENT_ATTEMPTS));
        let storage = Storage::new(Access::Read, None);
        let clients = SensorClients { egress: EgressPolicy::default(), http: Http::default(), storage };
        Self {
            runtime,
            worker,
            task_runners: TaskRunners::standard(),
            scripts,
            scratch,
            secrets,
            permits,
            clients,
            limit: AttemptLimit::default(),
            containment: None,
        }
    }

    /// Contains the programs of tasks.
    pub fn with_containment(self, containment: Option<Containment>) -> Self {
        Self { containment, ..self }
    }

    /// Ends attempts that take longer.
    pub fn with_attempt_limit(self, longest: Option<Duration>) -> Self {
        Self { limit: AttemptLimit(longest), ..self }
    }

    /// Resolves secrets from these sources.
    pub fn with_secrets(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// Resolves secrets from the files of a folder, too.
    pub fn with_secrets_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.secrets = self.secrets.with_folder(folder.into());
        self
    }

    /// Lists objects on another server with the API of Google Cloud Storage.
    pub fn with_storage(mut self, endpoint: Option<String>) -> Self {
        self.clients.storage = Storage::new(Access::Read, endpoint);
        self
    }

    /// Applies an egress policy; the default allows no internal address.
    pub fn with_egress_policy(mut self, egress: EgressPolicy) -> Self {
        self.task_runners = self.task_runners.with_egress_policy(egress.clone());
        self.clients.http = Http::with_egress_policy(egress.clone());
        self.clients.egress = egress;
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

    /// Uses other task runners.
    pub fn with_task_runners(mut self, task_runners: TaskRunners) -> Self {
        self.task_runners = task_runners;
        self
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
        self.runtime.announce(work).await;
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
        let secrets = match self.secrets.resolve(runtime::secrets_of(spec(&graph, work))).await {
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
                let prepared = Prepared { brief, secrets };
                let (started_at, result) =
                    self.run_task(work, &graph, prepared, StopSignals::default()).await;
                self.report(work, None, started_at, result.map_err(Failure::from)).await
            }
            runtime::Job::Ready(brief) => {
                // In a separate task, so that a caller that hangs up does not end a claimed attempt.
                let (executor, work, prepared) = (self.clone(), work.clone(), Prepared { brief, secrets });
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
        let started_at = self.runtime.clock().now();
        let (spec, Prepared { brief, secrets }) = (spec(graph, work), prepared);
        let timeout = timeout_for(spec, work, started_at);
        let job = Job {
            tenant: brief.tenant,
            key: work.key,
            attempt: work.attempt,
            workflow: graph.workflow().name.clone(),
            task: graph.name_at(work.key.task, work.child),
            kind: spec.kind,
            config: brief.config,
            document: brief.document,
            timeout: self.limit.cap(timeout),
            resources: spec.resources,
            network: spec.network,
        };
        let clock = self.runtime.clock().clone();
        let log = Log::open(self.runtime.store().clone(), clock.clone(), work.key, work.attempt);
        log.redact(secrets.values().filter_map(Value::as_str).map(str::to_owned));
        if !spec.kind.is_inline() {
            // A side-effecting task may encounter any secret of this worker, not only those it refers to.
            log.redact(self.secrets.all().await);
        }
        let (scripts, scratch, kill) = (self.scripts.clone(), self.scratch.clone(), signals.kill);
        let breakers = self.worker().breakers.clone();
        let defaults = Context::new(log.clone(), signals.stop, clock);
        let containment = self.containment.clone();
        let context = Context { scripts, scratch, kill, breakers, containment, ..defaults };
        let result = AssertUnwindSafe(self.task_runners.run(&job, &context)).catch_unwind().await;
        let result = result.unwrap_or_else(|_| Err(Failure::transient("the task type panicked").into()));
        let result = result.map_err(|unfinished| self.limit.explain(timeout, unfinished));
        log.finish().await;
        count(job.kind, &result, self.runtime.clock().now() - started_at);
        (started_at, result)
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
        let (task, attempt) = (work.key.task, work.attempt);
        let hand_back = Command::HandBack { task, attempt, worker, reason };
        let settlement = self.settle_with_retries(work, hand_back).await;
        settlement.map_or(Verdict::Done, |settlement| settlement.verdict)
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
        let recheck = Command::Recheck { patience: TimeDelta::zero() };
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

/// An attempt's brief, and the secrets in it.
struct Prepared {
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

fn count(kind: TaskKind, result: &Result<Value, Unfinished>, took: TimeDelta) {
    let outcome = match result {
        Ok(_) => "succeeded",
        Err(Unfinished::Stopped) => ErrorClass::Killed.name(),
        Err(Unfinished::Failed(failure)) => failure.class.name(),
    };
    let labels = [("kind", kind.name()), ("outcome", outcome)];
    counter!("ebbflow_attempts_total", &labels).increment(1);
    histogram!("ebbflow_attempt_seconds", "kind" => kind.name()).record(took.as_seconds_f64());
}

//! From a work message to a settled attempt: render, claim, perform, report.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use chrono::TimeDelta;
use engine::{Command, Graph};
use futures::FutureExt;
use host::secrets::Mask;
use host::storage::{Access, Storage};
use host::{Outgoing, Secrets, Verdict, secrets};
use metrics::{counter, histogram};
use model::message::{TaskDispatched, TaskReported, TaskResult};
use model::{ErrorClass, Failure, Instant, Message, TaskKind, TaskSpec, WorkerId};
use runtime::{Brief, Runtime, Settled};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tracing::{Instrument, Span, warn};

use crate::performers::{Http, Unfinished};
use crate::sensors::SensorClients;
use crate::worker::Halt;
use crate::{Context, Job, Log, Performers, Worker};

/// How often a report is tried, for about twelve seconds in all, before it is left to a message.
const MAX_REPORT_TRIES: u32 = 7;

/// The maximum number of inline tasks that run one after the other before the next one is left to a message.
const MAX_INLINE_TASKS: u32 = 50;

/// The maximum number of side-effecting attempts one instance runs concurrently. Further ones wait before they are claimed.
const MAX_CONCURRENT_ATTEMPTS: usize = 64;

/// Runs attempts.
pub struct Executor {
    pub(crate) runtime: Arc<Runtime>,
    worker: RwLock<Arc<Worker>>,
    pub(crate) performers: Performers,
    scripts: PathBuf,
    pub(crate) scratch: PathBuf,
    pub(crate) secrets: Secrets,
    permits: Semaphore,
    pub(crate) clients: SensorClients,
}

impl Executor {
    /// An executor with the task types that come with Ebbflow; scripts are found from `scripts`.
    pub fn new(runtime: Arc<Runtime>, worker: Arc<Worker>, scripts: impl Into<PathBuf>) -> Self {
        let secrets = Secrets::default();
        let (worker, scratch) = (RwLock::new(worker), std::env::temp_dir());
        let (scripts, permits) = (scripts.into(), Semaphore::new(MAX_CONCURRENT_ATTEMPTS));
        let clients = SensorClients { http: Http::default(), storage: Storage::new(Access::Read, None) };
        Self {
            runtime,
            worker,
            performers: Performers::standard(),
            scripts,
            scratch,
            secrets,
            permits,
            clients,
        }
    }

    /// The same with these secrets.
    pub fn with_secrets(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// The same with secrets from a folder, too, one in each file.
    pub fn with_secrets_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.secrets = self.secrets.or_in(folder.into());
        self
    }

    /// The same with objects on another server that speaks the API of Google Cloud Storage.
    pub fn with_storage(mut self, endpoint: Option<String>) -> Self {
        self.clients.storage = Storage::new(Access::Read, endpoint);
        self
    }

    /// The same with another egress policy; the default allows no internal address.
    pub fn with_outgoing(mut self, outgoing: Outgoing) -> Self {
        self.performers = self.performers.limited_to(outgoing.clone());
        self.clients.http = Http::limited_to(outgoing);
        self
    }

    /// The worker that holds the attempts.
    pub fn worker(&self) -> Arc<Worker> {
        self.worker.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the worker that holds attempts from now on.
    pub fn go_on_as(&self, worker: Arc<Worker>) {
        *self.worker.write().unwrap_or_else(PoisonError::into_inner) = worker;
    }

    /// The same with other performers.
    pub fn with_performers(mut self, performers: Performers) -> Self {
        self.performers = performers;
        self
    }

    /// Carries out one attempt and settles it, and goes on with what may begin through it and takes no time. An attempt
    /// that was settled or taken before is left alone.
    pub async fn carry_out(self: &Arc<Self>, work: &TaskDispatched) -> runtime::Result<Verdict> {
        let Settlement { verdict, next } = self.attempt(work).await?;
        if let Some(next) = next {
            // In a separate task: the work is in no other message, so a caller that hangs up must not end it.
            let executor = self.clone();
            let going_on = async move { executor.go_on(next).await };
            let _ = tokio::spawn(going_on.in_current_span()).await;
        }
        Ok(verdict)
    }

    /// Carries out what was taken over, and what follows from it.
    async fn go_on(self: &Arc<Self>, mut work: TaskDispatched) {
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
            return Ok(Verdict::Hopeless(format!("there is no version {}", work.version.0)).into());
        };
        if !graph.has(work.key.task, work.child) {
            let (version, task) = (work.version.0, work.key.task.0);
            return Ok(Verdict::Hopeless(format!("version {version} has no task {task}")).into());
        }
        say_what_it_is_about(work, &graph);
        let secrets = match self.secrets.resolve(runtime::secrets_of(spec(&graph, work))).await {
            Ok(secrets) => secrets,
            Err(failure) => return self.report(work, None, self.runtime.clock().now(), Err(failure)).await,
        };
        match self.runtime.job(work, &graph, secrets.clone()).await? {
            runtime::Job::Gone => Ok(Verdict::Hopeless(format!("there is no run {}", work.key.run)).into()),
            runtime::Job::Broken(failure) => {
                let failure = Mask::of(&secrets).failure(failure);
                self.report(work, None, self.runtime.clock().now(), Err(failure)).await
            }
            runtime::Job::Ready(brief) if spec(&graph, work).kind.is_inline() => {
                // Without side effects, so running it twice is harmless: a claim would only cost a commit.
                let brief = Briefed { brief, secrets };
                let (started_at, result) = self.perform(work, &graph, brief, Halt::default()).await;
                self.report(work, None, started_at, result.map_err(Failure::from)).await
            }
            runtime::Job::Ready(brief) => {
                // In a separate task, so that a caller that hangs up does not end a claimed attempt.
                let (executor, work, brief) = (self.clone(), work.clone(), Briefed { brief, secrets });
                let attempt = async move { executor.carry_out_claimed(&work, &graph, brief).await };
                let broken = |panic| Ok(Verdict::Hopeless(format!("the attempt broke down: {panic}")).into());
                tokio::spawn(attempt.in_current_span()).await.unwrap_or_else(broken)
            }
        }
    }

    async fn carry_out_claimed(
        &self,
        work: &TaskDispatched,
        graph: &Graph,
        brief: Briefed,
    ) -> runtime::Result<Settlement> {
        let _hand = self.permits.acquire().await.expect("it is never closed");
        let worker = self.worker();
        if !worker.register().await? {
            return Ok(Verdict::Later(worker.closing().unwrap_or_default().to_owned()).into());
        }
        let settlement = self.claim_and_perform(&worker, work, graph, brief).await;
        worker.release().await;
        settlement
    }

    async fn claim_and_perform(
        &self,
        worker: &Worker,
        work: &TaskDispatched,
        graph: &Graph,
        brief: Briefed,
    ) -> runtime::Result<Settlement> {
        // Claim before it is claimed: an attempt that is ours in the store and not held here is handed back.
        let halt = match worker.holds.add(work.key, work.attempt) {
            Ok(halt) => halt,
            Err(verdict) => return Ok(verdict.into()),
        };
        let claim = Command::Claim { task: work.key.task, attempt: work.attempt, worker: worker.id() };
        let settlement = match self.runtime.settle(work.key.run, claim).await {
            Ok(Settled::Applied) => {
                worker.holds.claimed(work.key, work.attempt);
                let (started_at, result) = self.perform(work, graph, brief, halt).await;
                match (worker.holds.handed_back(), result) {
                    (Some(why), Err(Unfinished::Stopped)) => {
                        Ok(self.hand_back(work, worker.id(), why).await.into())
                    }
                    (_, result) => {
                        let result = result.map_err(Failure::from);
                        self.report(work, Some(worker.id()), started_at, result).await
                    }
                }
            }
            Ok(Settled::Stale) => Ok(Verdict::Done.into()),
            Ok(Settled::NoSuchRun) => {
                Ok(Verdict::Hopeless(format!("there is no run {}", work.key.run)).into())
            }
            Err(error) => Err(error),
        };
        worker.holds.let_go(work.key, work.attempt);
        settlement
    }

    async fn perform(
        &self,
        work: &TaskDispatched,
        graph: &Graph,
        brief: Briefed,
        halt: Halt,
    ) -> (Instant, Result<Value, Unfinished>) {
        let started_at = self.runtime.clock().now();
        let (spec, Briefed { brief, secrets }) = (spec(graph, work), brief);
        let job = Job {
            tenant: brief.tenant,
            key: work.key,
            attempt: work.attempt,
            workflow: graph.workflow().name.clone(),
            task: graph.name_at(work.key.task, work.child),
            kind: spec.kind,
            config: brief.config,
            document: brief.document,
            timeout: time_for(spec, work, started_at),
        };
        let clock = self.runtime.clock().clone();
        let log = Log::open(self.runtime.store().clone(), clock.clone(), work.key, work.attempt);
        log.mask(secrets::forms(&secrets));
        if !spec.kind.is_inline() {
            // A side-effecting task may come across any secret of this worker, not only those it names.
            log.mask(self.secrets.known().await);
        }
        let (scripts, scratch, kill) = (self.scripts.clone(), self.scratch.clone(), halt.kill);
        let breakers = self.worker().breakers.clone();
        let usual = Context::new(log.clone(), halt.stop, clock);
        let context = Context { scripts, scratch, kill, breakers, ..usual };
        let performed = AssertUnwindSafe(self.performers.perform(&job, &context)).catch_unwind().await;
        let result = performed.unwrap_or_else(|_| Err(Failure::transient("the task type panicked").into()));
        log.finish().await;
        count(job.kind, &result, self.runtime.clock().now() - started_at);
        (started_at, result)
    }

    /// Settles the attempt in our own transaction. A report that came too late changes nothing. The work is
    /// done, so while the store is away the report is tried again, and at last left to evaluate by message.
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
        if let Some(settlement) = self.settle_in_the_end(work, report).await {
            return Ok(settlement);
        }
        let report = TaskReported { key: work.key, attempt, worker, started_at, result };
        self.runtime.bus().publish(&[Message::TaskReported(report)]).await.map_err(runtime::Error::Bus)?;
        Ok(Verdict::Done.into())
    }

    /// Hands back an attempt that had to be stopped. If that cannot be recorded, the sweep finds it once we are gone.
    async fn hand_back(&self, work: &TaskDispatched, worker: WorkerId, reason: String) -> Verdict {
        let (task, attempt) = (work.key.task, work.attempt);
        let hand_back = Command::HandBack { task, attempt, worker, reason };
        let settlement = self.settle_in_the_end(work, hand_back).await;
        settlement.map_or(Verdict::Done, |settlement| settlement.verdict)
    }

    /// Settles the result of an attempt, retrying while the store is unavailable; none if it stays so.
    async fn settle_in_the_end(&self, work: &TaskDispatched, command: Command) -> Option<Settlement> {
        for tries in 0..MAX_REPORT_TRIES {
            match self.settle_once(work, command.clone()).await {
                Err(error) => self.back_off(tries, &error).await,
                Ok((Settled::Stale, _)) if tries > 0 => {
                    self.follow_up(work).await;
                    return Some(Verdict::Done.into());
                }
                Ok((Settled::Applied | Settled::Stale, next)) => {
                    return Some(Settlement { verdict: Verdict::Done, next });
                }
                Ok((Settled::NoSuchRun, _)) => {
                    return Some(Verdict::Hopeless(format!("there is no run {}", work.key.run)).into());
                }
            }
        }
        None
    }

    /// An earlier try may have been committed without our knowledge: then what follows from it is unpublished.
    async fn follow_up(&self, work: &TaskDispatched) {
        let recheck = Command::Recheck { patience: TimeDelta::zero() };
        if let Err(error) = self.runtime.settle(work.key.run, recheck).await {
            warn!("The next step of run {} waits for the sweep: {error}", work.key.run);
        }
    }

    /// Settles a command, and takes over what follows unless we are about to end.
    async fn settle_once(
        &self,
        work: &TaskDispatched,
        command: Command,
    ) -> runtime::Result<(Settled, Option<TaskDispatched>)> {
        if self.worker().closing().is_some() {
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

/// What became of a delivery, and the work that was taken over with it.
struct Settlement {
    verdict: Verdict,
    next: Option<TaskDispatched>,
}

impl From<Verdict> for Settlement {
    fn from(verdict: Verdict) -> Self {
        Self { verdict, next: None }
    }
}

/// An attempt's brief, and the secrets that are in it.
struct Briefed {
    brief: Brief,
    secrets: Map<String, Value>,
}

fn spec<'g>(graph: &'g Graph, work: &TaskDispatched) -> &'g TaskSpec {
    graph.spec_at(work.key.task, work.child)
}

/// Labels the log lines of this request with its attempt.
fn say_what_it_is_about(work: &TaskDispatched, graph: &Graph) {
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

/// How long the attempt may take: what one may, and no longer than is left for all of them together.
fn time_for(spec: &TaskSpec, work: &TaskDispatched, now: Instant) -> Duration {
    let one = Duration::from_secs(spec.timeout_seconds.into());
    let left = work.give_up_at.map(|end| (end - now).to_std().unwrap_or_default());
    left.map_or(one, |left| one.min(left))
}

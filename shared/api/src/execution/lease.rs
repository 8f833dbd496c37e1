//! Leases: attempts for a worker, at once or as soon as there are any.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use auth::Permission::Work;
use axum::Json;
use axum::extract::State;
use futures::future::join_all;
use host::secrets::Redactor;
use host::{Problem, RequestDeadline};
use model::message::{TaskDispatched, TaskResult};
use model::{Failure, Instant, TaskKey, WorkerCommand, WorkerCommandKind, WorkerId};
use read::Reader;
use runtime::{AttemptName, Command, GivenAttempt, OfferedTask, WaitingWorker};
use serde::Serialize;
use serde_json::Value;
use tracing::{Instrument, warn};

use super::registration::Registration;
use super::{LeaseBody, LeaseView, LeasedView, settle};
use crate::live::Stay;
use crate::{Api, Caller, error, request};

/// Leases dispatched attempts of a queue to a worker. The wait holds no connection, and ends with the client's connection:
/// nothing is leased to a client that has disconnected. Where too many wait, it ends at once, and says when to come back.
pub(crate) async fn post_lease(
    State(api): State<Api>,
    caller: Caller,
    stay: Stay,
    deadline: RequestDeadline,
    request::Json(body): request::Json<LeaseBody>,
) -> Result<Json<LeaseView>, Problem> {
    let registration = Arc::new(Registration::read(&api, &caller, body)?);
    let wait = Duration::from_secs(registration.wait_seconds.into());
    let lease = Lease { api, caller, registration };
    if wait.is_zero() {
        return Ok(Json(lease.view(lease.try_once().await?)));
    }
    // It waits before it tries for the first time: what is offered in between wakes it.
    let wanted = lease.registration.wanted.clone();
    let Some(waiting) = lease.api.app.runtime.workers().leases().wait(wanted).await else {
        let found = lease.try_once().await?;
        let retry_after = (!found.is_something()).then_some(error::RETRY_AFTER);
        return Ok(Json(lease.view(Found { retry_after, ..found })));
    };
    deadline.extend(wait);
    let check = |reader: &Reader| reader.caller().check_some(Work).map_err(read::Error::from);
    let ending = stay.end(lease.api.clone(), lease.caller.clone(), check);
    let until = lease.api.app.now() + wait;
    let found = lease.wait(waiting, until, ending).await?;
    Ok(Json(lease.view(found)))
}

/// A lease ends before the attempt with which it would exceed this, in bytes of JSON.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// How many attempts are prepared at the same time.
const MAX_PREPARED_AT_ONCE: usize = 4;

/// A worker's request for attempts.
#[derive(Clone)]
struct Lease {
    api: Api,
    caller: Caller,
    registration: Arc<Registration>,
}

/// The result of one try to lease.
#[derive(Default)]
struct Found {
    items: Vec<Prepared>,
    command: Option<WorkerCommandKind>,
    /// After how many seconds to ask again, if it found nothing and could not wait.
    retry_after: Option<u64>,
}

/// The data that a worker receives with an attempt.
struct Prepared {
    key: TaskKey,
    view: LeasedView,
}

impl Found {
    fn is_something(&self) -> bool {
        !self.items.is_empty() || self.command.is_some()
    }
}

impl Lease {
    /// Tries until there is something, `until` is reached, or `ending` resolves: the process stops, the platform is about to
    /// end the request, or the caller's permission was revoked.
    async fn wait(
        &self,
        mut waiting: WaitingWorker,
        until: Instant,
        ending: impl Future<Output = ()>,
    ) -> Result<Found, Problem> {
        let clock = self.api.app.runtime.clock();
        let mut ending = std::pin::pin!(ending);
        loop {
            let found = self.try_once().await?;
            waiting.tried();
            if found.is_something() || clock.now() >= until {
                return Ok(found);
            }
            // It is recorded as alive each time that it tries, and was perhaps not woken.
            let due = until.min(clock.now() + self.api.app.runtime.workers().liveness().retry_interval());
            tokio::select! {
                () = waiting.woken() => {}
                () = clock.wait_until(due) => {}
                () = &mut ending => return Ok(Found::default()),
            }
        }
    }

    /// Tries once. It runs to its end even if the client disconnects meanwhile; what it took is then handed back.
    async fn try_once(&self) -> Result<Found, Problem> {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let lease = self.clone();
        let attempt = async move {
            // It may have disconnected before this begins.
            let found = if sender.is_closed() { Ok(Found::default()) } else { lease.take().await };
            if let Err(Ok(abandoned)) = sender.send(found) {
                lease.hand_back(abandoned.items).await;
            }
        };
        tokio::spawn(attempt.in_current_span());
        receiver.await.unwrap_or_else(|_| Err(Problem::internal(&"a lease ended without a result")))
    }

    async fn take(&self) -> Result<Found, Problem> {
        let Registration { worker, facts, wanted, limit, .. } = &*self.registration;
        // Registered before it claims anything: an attempt of an unknown worker counts as lost.
        let workers = self.api.app.runtime.workers();
        let command = workers.check_in(*worker, facts.clone()).await.map_err(error::runtime)?;
        if let Some(WorkerCommand { kind, .. }) = command {
            return Ok(Found { command: Some(kind), ..Found::default() });
        }
        let leases = self.api.app.runtime.workers().leases();
        let (mut items, mut bytes) = (Vec::new(), 0);
        while items.len() < *limit as usize {
            let room = *limit - items.len() as u32;
            let offered = match leases.reserve(wanted, *worker, room).await {
                Ok(offered) if offered.is_empty() => break,
                // What was claimed must reach its worker.
                Err(_) if !items.is_empty() => break,
                reserved => reserved.map_err(error::runtime)?,
            };
            let (prepared, left) = self.prepare_some(offered, &mut bytes).await;
            items.extend(self.claim(prepared).await);
            if !left.is_empty() {
                if let Err(error) = leases.unreserve(wanted, &left).await {
                    warn!("Reservations last until they end by themselves: {error}");
                }
                break;
            }
        }
        Ok(Found { items, ..Found::default() })
    }

    /// Prepares attempts until the lease is full: what it has in `bytes`, and these. At least one always fits. Returns with them
    /// those that do not fit.
    async fn prepare_some(
        &self,
        offered: Vec<OfferedTask>,
        bytes: &mut usize,
    ) -> (Vec<Prepared>, Vec<(TaskKey, u32)>) {
        let (mut offered, mut fit, mut left) = (offered.into_iter(), Vec::new(), Vec::new());
        while left.is_empty() && offered.len() > 0 {
            let next =
                offered.by_ref().take(MAX_PREPARED_AT_ONCE).map(|offered| self.prepare_or_skip(offered));
            for prepared in join_all(next).await.into_iter().flatten() {
                let size = json_size(&prepared.view);
                if *bytes == 0 || *bytes + size <= MAX_BYTES {
                    *bytes += size;
                    fit.push(prepared);
                } else {
                    left.push((prepared.key, prepared.view.attempt));
                }
            }
        }
        left.extend(offered.map(|offered| (offered.key, offered.attempt)));
        (fit, left)
    }

    /// An attempt that meets an error does not hold up the others: its reservation ends by itself.
    async fn prepare_or_skip(&self, offered: OfferedTask) -> Option<Prepared> {
        let (key, attempt) = (offered.key, offered.attempt);
        self.prepare(offered).await.unwrap_or_else(|problem| {
            cannot_be_leased(key, attempt, &format!("{problem:?}"));
            None
        })
    }

    /// The data that the worker receives with an attempt; none if the attempt cannot be executed.
    async fn prepare(&self, offered: OfferedTask) -> Result<Option<Prepared>, Problem> {
        let OfferedTask { key, attempt, workflow, version, child } = offered;
        let runtime = &self.api.app.runtime;
        let graph = runtime.graph(version).await.map_err(error::runtime)?;
        let Some(graph) = graph.filter(|graph| graph.has(key.task, child)) else { return Ok(None) };
        let spec = graph.spec_at(key.task, child);
        let work = TaskDispatched {
            key,
            tenant: self.caller.tenant,
            attempt,
            version,
            queue: spec.queue.clone(),
            child,
            give_up_at: None,
        };
        let tenant = runtime.tenants().name(self.caller.tenant).await.map_err(error::runtime)?;
        let secrets = match self.api.secrets.of(&tenant).resolve(runtime::secrets_of(spec)).await {
            Ok(secrets) => secrets,
            Err(failure) => return self.fail(&work, failure).await,
        };
        let brief = match runtime.job(&work, &graph, secrets.clone()).await.map_err(error::runtime)? {
            runtime::Job::Ready(brief) => brief,
            runtime::Job::Broken(failure) => {
                return self.fail(&work, Redactor::of(&secrets).failure(failure)).await;
            }
            runtime::Job::Gone => return Ok(None),
        };
        let view = LeasedView {
            run: key.run,
            task: graph.name_at(key.task, child),
            attempt,
            tenant: self.caller.tenant_name.clone(),
            workflow,
            kind: spec.kind.to_string(),
            config: brief.config,
            timeout_seconds: spec.timeout_seconds,
            // As the program finds it: only what attempts since the task was last cleared have saved.
            checkpoint: brief.document.get("checkpoint").filter(|saved| !saved.is_null()).cloned(),
            input: brief.document,
            secrets: secrets.values().filter_map(Value::as_str).map(str::to_owned).collect(),
            resources: spec.resources,
            network: spec.network,
        };
        Ok(Some(Prepared { key, view }))
    }

    /// Claims attempts for the worker. Returns those that are its own now: another worker may have been faster.
    async fn claim(&self, prepared: Vec<Prepared>) -> Vec<Prepared> {
        let attempts: Vec<_> = prepared.iter().map(|Prepared { key, view }| (*key, view.attempt)).collect();
        let leases = self.api.app.runtime.workers().leases();
        let (claimed_at, claimed) = (self.api.app.now(), leases.claim(self.worker(), &attempts).await);
        let mut items = Vec::new();
        for (prepared, claimed) in prepared.into_iter().zip(claimed) {
            let Prepared { key, view } = &prepared;
            match claimed {
                Ok(true) => {
                    let given = GivenAttempt { key: *key, workflow: view.workflow.clone(), claimed_at };
                    leases.remember(self.name(view), given);
                    items.push(prepared);
                }
                Ok(false) => {}
                Err(error) => {
                    cannot_be_leased(*key, view.attempt, &error.to_string());
                    // The claim may have been recorded, and nobody would execute it.
                    self.release(*key, view.attempt, "it could not be given to its worker").await;
                }
            }
        }
        items
    }

    /// An attempt as the worker's reports name it.
    fn name(&self, view: &LeasedView) -> AttemptName {
        let LeasedView { run, task, attempt, .. } = view;
        AttemptName { run: *run, task: task.clone(), attempt: *attempt, worker: self.worker() }
    }

    /// Fails an attempt that no worker could execute.
    async fn fail(&self, work: &TaskDispatched, failure: Failure) -> Result<Option<Prepared>, Problem> {
        let report = Command::Report {
            task: work.key.task,
            attempt: work.attempt,
            worker: None,
            started_at: self.api.app.now(),
            result: TaskResult::Failed(failure),
        };
        settle(&self.api, work.key.run, report).await?;
        Ok(None)
    }

    /// Hands back attempts that the client never received. Should that fail, its worker finds them with its next heartbeat,
    /// or loses them.
    async fn hand_back(&self, items: Vec<Prepared>) {
        for Prepared { key, view } in items {
            self.release(key, view.attempt, "its worker disconnected before it received the attempt").await;
        }
    }

    /// Hands back an attempt that its worker never received.
    async fn release(&self, TaskKey { run, task }: TaskKey, attempt: u32, reason: &str) {
        let (worker, reason) = (self.worker(), reason.to_owned());
        let hand_back = Command::HandBack { task, attempt, worker, reason, saved: true };
        if let Err(problem) = settle(&self.api, run, hand_back).await {
            warn!(%run, attempt, "Attempt {attempt} of a task of run {run} was not handed back: {problem:?}");
        }
    }

    fn worker(&self) -> WorkerId {
        self.registration.worker
    }

    fn view(&self, Found { items, command, retry_after }: Found) -> LeaseView {
        let heartbeat_interval = self.api.app.runtime.workers().liveness().heartbeat_interval;
        LeaseView {
            items: items.into_iter().map(|Prepared { view, .. }| view).collect(),
            command: command.map(|kind| kind.name().to_owned()),
            heartbeat_seconds: heartbeat_interval.num_seconds().unsigned_abs() as u32,
            retry_after_seconds: retry_after,
        }
    }
}

/// The length of a value as JSON, which is not kept.
fn json_size(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting never fails.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

fn cannot_be_leased(TaskKey { run, .. }: TaskKey, attempt: u32, why: &str) {
    warn!(%run, attempt, "Attempt {attempt} of a task of run {run} cannot be leased: {why}");
}

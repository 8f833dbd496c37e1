//! `ebb worker`: leases attempts from a server over HTTP and runs them here. It needs neither the database nor the bus.
//!
//! It holds at most as many attempts as it has slots. While it holds any, it sends heartbeats; while it is idle, its waiting
//! lease is its sign of life. A result is reported until the server has it, or says that the attempt is another worker's.
//!
//! Invariants: the programs of tasks cannot read the worker's token; an attempt of which only the server knows is released.

mod attempts;
mod breakers;
mod heartbeats;
mod held;
mod protocol;
mod shutdown;
mod usage;

use std::iter;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::Context;
use api::execution::{LeaseBody, LeaseView, UsageView};
use bus::SystemClock;
use execute::{Breakers, Runner};
use host::config::{Environment, WorkerConfig};
use model::Clock;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tracing::{info, warn};
use uuid::Uuid;

use crate::args::{RunWorker, Shared};
use crate::client::{self, Client, Server};
use held::Held;
use protocol::{AttemptId, Protocol};
use shutdown::{Grace, Shutdown};
use usage::Meter;

/// How long the server keeps a lease waiting for a task.
const WAIT_SECONDS: u32 = 55;

/// Longer than a lease may wait.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(75);

/// The maximum number of attempts in one lease.
const MAX_LEASED: usize = 32;

/// The pauses between tries while the server does not respond.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// How often heartbeats are sent until the server says otherwise, in seconds.
const HEARTBEAT_SECONDS: u32 = 10;

/// Runs a worker until it is asked to stop.
pub async fn run(shared: &Shared, arguments: RunWorker) -> anyhow::Result<ExitCode> {
    let server = Server::find(shared)?;
    keep_token_from_arguments(&server.token)?;
    let environment = Environment::of_process();
    host::init_telemetry(&environment);
    let config = WorkerConfig::from_env(&environment)
        .map_err(|problems| anyhow::anyhow!("invalid settings:\n{problems}"))?;
    let stop = host::shutdown_signal();
    let meter = usage::of_machine(std::env::temp_dir());
    let worker = Arc::new(Worker::new(server, &config, &arguments, meter)?);
    Ok(worker.serve(stop, Grace { finish: arguments.grace, stop: arguments.stop_grace }).await?)
}

/// Any program on a machine can read the arguments of another, but the environment of a worker is hidden from its tasks.
/// So a token among the arguments moves to the environment, and the program starts again.
fn keep_token_from_arguments(token: &str) -> anyhow::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let mut kept = Vec::new();
    let mut has_token = false;
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--token") => {
                arguments.next();
                has_token = true;
            }
            Some(text) if text.starts_with("--token=") => has_token = true,
            _ => kept.push(argument),
        }
    }
    if !has_token {
        return Ok(());
    }
    let program = std::env::current_exe().context("cannot find the program of this process")?;
    let failed = Command::new(program).args(kept).env("EBB_TOKEN", token).exec();
    Err(failed).context("cannot hide the token of --token from tasks: set EBB_TOKEN instead")
}

/// A worker of one queue.
struct Worker {
    protocol: Protocol,
    runner: Runner,
    breakers: Arc<Breakers>,
    /// What is redacted from every log and output.
    token: String,
    /// What every request for work says.
    lease: LeaseBody,
    slots: Arc<Semaphore>,
    held: Held,
    heartbeat_seconds: AtomicU32,
    /// The number of heartbeats that are sent even without attempts, since the response to a lease was lost.
    doubtful: AtomicU32,
    /// Ends the pause before the next heartbeat.
    heartbeat_now: Notify,
    shutdown: Shutdown,
    meter: Meter,
    /// The usage of memory or disk above which it drains itself.
    max_usage: f64,
    clock: Arc<dyn Clock>,
}

impl Worker {
    fn new(
        server: Server,
        config: &WorkerConfig,
        arguments: &RunWorker,
        meter: Meter,
    ) -> anyhow::Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let name = arguments.name.clone().unwrap_or_else(|| {
            let (random, _) = Uuid::new_v4().as_u64_pair();
            format!("{host}-{:08x}", random >> 32)
        });
        let (token, slots) = (server.token.clone(), usize::from(arguments.slots));
        let client = Client::with_timeout(server, REQUEST_TIMEOUT)?;
        let runner = Runner::new(clock.clone(), arguments.scripts.clone())
            .with_egress_policy(config.egress.clone())
            .with_containment(execute::containment(&config.containment))
            .with_programs(&arguments.programs)
            .map_err(anyhow::Error::msg)?;
        let lease = LeaseBody {
            worker: name.clone(),
            queue: arguments.queue.clone(),
            limit: None,
            slots: Some(arguments.slots.into()),
            labels: arguments.labels().collect(),
            types: Some(runner.kinds().map(|kind| kind.to_string()).collect()),
            wait_seconds: Some(WAIT_SECONDS),
            host: Some(host),
            version: Some(env!("CARGO_PKG_VERSION").into()),
            usage: None,
        };
        let protocol = Protocol::new(client, name);
        Ok(Self {
            breakers: Arc::new(Breakers::shared(Arc::new(protocol.clone()))),
            protocol,
            runner,
            token,
            lease,
            slots: Arc::new(Semaphore::new(slots)),
            held: Held::default(),
            heartbeat_seconds: AtomicU32::new(HEARTBEAT_SECONDS),
            doubtful: AtomicU32::new(0),
            heartbeat_now: Notify::new(),
            shutdown: Shutdown::default(),
            meter,
            max_usage: f64::from(arguments.drain_above) / 100.0,
            clock,
        })
    }

    /// Leases and runs attempts until the worker shuts down, then lets them finish or hands them back. Fails if the server
    /// refuses the first request for work: the settings must be wrong.
    async fn serve(self: Arc<Self>, stop: host::ShutdownSignal, grace: Grace) -> client::Result<ExitCode> {
        let LeaseBody { worker, queue, slots, .. } = &self.lease;
        info!("Worker {worker} serves queue {queue} with {} slots", slots.unwrap_or_default());
        let heartbeats = tokio::spawn(self.clone().send_heartbeats());
        let asked = self.clone();
        let signals = tokio::spawn(async move {
            stop.await;
            asked.shut_down("the worker's process was asked to stop");
        });
        self.lease_until_shutdown().await?;
        self.drain(grace).await;
        heartbeats.abort();
        signals.abort();
        self.deregister().await;
        Ok(self.shutdown.exit_code())
    }

    async fn lease_until_shutdown(self: &Arc<Self>) -> client::Result<()> {
        let (mut pause, mut is_known) = (FIRST_PAUSE, false);
        let begun = self.shutdown.begun();
        while let Some(free) = begun.run_until_cancelled(self.free_slots()).await {
            self.held.begin_lease();
            let body =
                LeaseBody { limit: Some(free.len() as u32), usage: Some(self.usage()), ..self.lease.clone() };
            match begun.run_until_cancelled(self.protocol.lease(&body)).await {
                Some(Ok(lease)) => {
                    (pause, is_known) = (FIRST_PAUSE, true);
                    let retry_after = lease.retry_after_seconds.map(Duration::from_secs);
                    self.begin(lease, free);
                    if let Some(retry_after) = retry_after {
                        begun.run_until_cancelled(self.wait(retry_after)).await;
                    }
                }
                Some(Err(error)) => {
                    self.held.end_lease([]);
                    drop(free);
                    if !is_known && is_hopeless(&error) {
                        return Err(error);
                    }
                    warn!("Cannot lease tasks yet: {error}");
                    // The server may have leased tasks in a response that was lost.
                    self.doubt();
                    begun.run_until_cancelled(self.wait(pause)).await;
                    pause = longer(pause);
                }
                None => {
                    self.held.end_lease([]);
                    self.doubt();
                }
            }
        }
        Ok(())
    }

    /// Waits for a free slot. Returns all that are free.
    async fn free_slots(&self) -> Vec<OwnedSemaphorePermit> {
        let first = self.slots.clone().acquire_owned().await.expect("it is never closed");
        let more = iter::from_fn(|| self.slots.clone().try_acquire_owned().ok());
        iter::once(first).chain(more).take(MAX_LEASED).collect()
    }

    /// Begins the attempts of a lease, each in a slot of its own.
    fn begin(self: &Arc<Self>, lease: LeaseView, free: Vec<OwnedSemaphorePermit>) {
        self.heartbeat_seconds.store(lease.heartbeat_seconds.max(1), Ordering::Relaxed);
        let mut items = lease.items;
        if items.len() > free.len() {
            // Never more than the slots: the server learns with a heartbeat that the others do not run here.
            items.truncate(free.len());
            self.doubt();
        }
        let signals = self.held.end_lease(items.iter().map(AttemptId::from));
        for ((leased, signals), slot) in items.into_iter().zip(signals).zip(free) {
            let worker = self.clone();
            tokio::spawn(async move {
                worker.attempt(leased, signals).await;
                drop(slot);
            });
        }
        self.obey(lease.command.as_deref());
    }

    /// The usage of its machine. Above the maximum, the worker takes no more tasks.
    fn usage(&self) -> UsageView {
        let usage = (self.meter)();
        for (what, part) in [("memory", usage.memory), ("disk space", usage.disk)] {
            if let Some(part) = part.filter(|part| self.max_usage < 1.0 && *part > self.max_usage) {
                self.fail(&format!(
                    "{:.0} % of {what} is in use, more than this worker's limit",
                    part * 100.0
                ));
            }
        }
        usage
    }

    async fn wait(&self, duration: Duration) {
        self.clock.wait_until(self.clock.now() + duration).await;
    }
}

/// Whether no later request for work can succeed, with these settings.
fn is_hopeless(error: &client::Error) -> bool {
    matches!(error, client::Error::Rejected { status: 400 | 401 | 403 | 404 | 422, .. })
}

/// The pause after a failed try, with a random part: workers must not all return at once.
fn longer(pause: Duration) -> Duration {
    let random = Uuid::new_v4().as_bytes()[0];
    (pause * 2).min(MAX_PAUSE) + pause.mul_f64(f64::from(random) / 512.0)
}

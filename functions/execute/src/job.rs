//! One attempt to run, and its context.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use model::{Clock, NetworkAccess, Resources, RunId, TaskKind, TenantId};

use crate::log::Log;
use crate::process::{Containment, environments};
use crate::reports::Reports;
use crate::task_runners::Breakers;

/// One attempt: everything that is known before it starts.
#[derive(Clone)]
pub struct Job {
    /// The tenant of the run.
    pub tenant: TenantId,
    /// The id of the run.
    pub run: RunId,
    /// The attempt's number, from 1.
    pub attempt: u32,
    /// The name of the workflow.
    pub workflow: String,
    /// The name of the task.
    pub task: String,
    /// The type of the task.
    pub kind: TaskKind,
    /// The config of the task, rendered.
    pub config: Value,
    /// The content of a process's file `EBB_INPUT`: inputs, outputs, run, task, tenant, workflow, labels, data interval and
    /// checkpoint.
    pub document: Value,
    /// How long the attempt may take.
    pub timeout: Duration,
    /// The maximum amounts that its program may use.
    pub resources: Resources,
    /// What its program may reach over the network; what the worker's operator chose if none is given.
    pub network: Option<NetworkAccess>,
}

/// The context of an attempt: its log, its reports, its stop signals, its clock and its folders.
#[derive(Clone)]
pub struct Context {
    /// The log of the attempt.
    pub log: Log,
    /// The checkpoints, progress and metrics of the attempt.
    pub reports: Reports,
    /// Cancelled when the attempt must stop before it is done.
    pub cancel: CancellationToken,
    /// Cancelled when there is no time left to stop gracefully.
    pub kill: CancellationToken,
    /// The source of time.
    pub clock: Arc<dyn Clock>,
    /// How long a process may continue after SIGTERM, before it is killed.
    pub grace: Duration,
    /// The folder for the scratch directories of processes.
    pub scratch: PathBuf,
    /// The base of relative `script` paths, for files that a version does not bring along.
    pub scripts: PathBuf,
    /// The folder in which Python environments are kept.
    pub environments: PathBuf,
    /// How its programs are kept apart from the worker; only by a process group if none is given.
    pub containment: Option<Containment>,
    /// The circuit breakers of its worker.
    pub(crate) breakers: Arc<Breakers>,
}

impl Context {
    /// How long a process may continue after SIGTERM, by default.
    pub const DEFAULT_GRACE: Duration = Duration::from_secs(30);

    /// A context with the default grace period, the system's folder for temporary files, and scripts relative to the
    /// working directory.
    pub fn new(log: Log, cancel: CancellationToken, clock: Arc<dyn Clock>) -> Self {
        let (scratch, scripts) = (std::env::temp_dir(), PathBuf::from("."));
        let kill = CancellationToken::new();
        let (reports, breakers) = (log.reports(), Arc::default());
        Self {
            log,
            reports,
            cancel,
            kill,
            clock,
            grace: Self::DEFAULT_GRACE,
            scratch,
            scripts,
            environments: environments::default_folder(),
            containment: None,
            breakers,
        }
    }

    /// Waits for a duration, by the attempt's clock.
    pub(crate) async fn wait(&self, duration: Duration) {
        self.clock.wait_until(self.clock.now() + duration).await;
    }
}

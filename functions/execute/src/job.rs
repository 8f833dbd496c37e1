//! One attempt to be performed, and what it is performed with.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use model::{Clock, TaskKey, TaskKind, TenantId};

use crate::log::Log;
use crate::performers::Breakers;

/// One attempt: everything about it that is settled before it starts.
#[derive(Clone)]
pub struct Job {
    /// Whose work it is.
    pub tenant: TenantId,
    /// The task.
    pub key: TaskKey,
    /// The attempt's number, from 1.
    pub attempt: u32,
    /// The workflow's name.
    pub workflow: String,
    /// The task's name.
    pub task: String,
    /// The task's type.
    pub kind: TaskKind,
    /// The rendered config.
    pub config: Value,
    /// What a process finds in the file that `EBB_INPUT` names: `{inputs, outputs, run, task}`.
    pub document: Value,
    /// How long the attempt may take.
    pub timeout: Duration,
}

/// What an attempt is performed with: its log, its signal to stop, its clock and its folders.
#[derive(Clone)]
pub struct Context {
    /// Where its lines go.
    pub log: Log,
    /// Cancelled when the attempt should stop before it is done.
    pub cancel: CancellationToken,
    /// Cancelled when there is no time left to stop in good order.
    pub kill: CancellationToken,
    /// The one source of time.
    pub clock: Arc<dyn Clock>,
    /// How long a process may go on after it was asked to stop, before it is killed.
    pub grace: Duration,
    /// The folder in which each process gets a scratch directory of its own.
    pub scratch: PathBuf,
    /// The folder that relative `script` paths start from.
    pub scripts: PathBuf,
    /// The hosts that its worker does not call for a while.
    pub(crate) breakers: Arc<Breakers>,
}

impl Context {
    /// How long a process may go on after it was asked to stop, unless told otherwise.
    pub const GRACE: Duration = Duration::from_secs(30);

    /// A context with the usual grace, the system's folder for temporary files, and scripts
    /// found from the working directory.
    pub fn new(log: Log, cancel: CancellationToken, clock: Arc<dyn Clock>) -> Self {
        let (scratch, scripts) = (std::env::temp_dir(), PathBuf::from("."));
        let kill = CancellationToken::new();
        let breakers = Arc::default();
        Self { log, cancel, kill, clock, grace: Self::GRACE, scratch, scripts, breakers }
    }

    /// Returns once `duration` has passed.
    pub(crate) async fn pass(&self, duration: Duration) {
        self.clock.wait_until(self.clock.now() + duration).await;
    }
}

//! All processes of an attempt. They are killed on drop.

use std::io;
use std::process::ExitStatus;

use containment::{Excess, Report, Request, TERMINATE, Usage};
use model::Failure;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::Child;

use super::containment::Reserved;
use super::{Program, exit_status};

/// The processes of an attempt: a process group, or what a supervisor started.
pub(super) enum Group {
    /// A process and the group that it leads.
    Led { child: Child, leader: Pid },
    /// A supervisor and its descendants, which it kills when its socket closes.
    Supervised {
        orders: Option<OwnedWriteHalf>,
        report: OwnedReadHalf,
        received: Vec<u8>,
        _reserved: Reserved,
    },
}

impl Group {
    /// The group of a process that was started as its leader and was not waited for.
    pub(super) fn led_by(child: Child) -> Self {
        let leader = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Self::Led { child, leader: leader.expect("a process that was not waited for has an id") }
    }

    /// What a supervisor starts when it receives the request.
    pub(super) async fn supervised(mut socket: UnixStream, request: &Request, reserved: Reserved) -> Self {
        // A supervisor that is gone sends no report, which `wait` finds out.
        let _ = socket.write_all(&request.to_bytes()).await;
        let (report, orders) = socket.into_split();
        Self::Supervised { orders: Some(orders), report, received: Vec::new(), _reserved: reserved }
    }

    /// The exit status of the program, once it has ended; of a contained one, once all that it started is dead.
    pub(super) async fn wait(&mut self, program: &Program) -> Result<ExitStatus, Failure> {
        match self {
            Self::Led { child, .. } => {
                let ended = child.wait().await;
                ended.map_err(|error| Failure::transient(format!("cannot wait for the process: {error}")))
            }
            Self::Supervised { report, received, .. } => {
                // A supervisor that is killed with something unread breaks the connection instead of closing it.
                while report.read_buf(received).await.is_ok_and(|bytes| bytes > 0) {}
                let report = Report::parse(received).ok_or_else(exit_status::lost_supervisor)?;
                report.status().map_err(|error| exit_status::not_started(program, &error))
            }
        }
    }

    /// What a contained program and everything that it started used, once it has ended.
    pub(super) fn usage(&self) -> Option<Usage> {
        self.report()?.usage()
    }

    /// The limit for which a contained program was killed, if it was.
    pub(super) fn excess(&self) -> Option<Excess> {
        self.report()?.excess()
    }

    fn report(&self) -> Option<Report> {
        match self {
            Self::Led { .. } => None,
            Self::Supervised { received, .. } => Report::parse(received),
        }
    }

    /// Asks the processes to end.
    pub(super) fn terminate(&mut self) {
        // This fails only if no process is left.
        let _ = match self {
            Self::Led { leader, .. } => {
                kill_process_group(*leader, Signal::TERM).map_err(io::Error::from).map(|()| 0)
            }
            Self::Supervised { orders, .. } => {
                orders.as_ref().map_or(Ok(0), |orders| orders.try_write(&[TERMINATE]))
            }
        };
    }

    /// Ends the processes at once.
    pub(super) fn kill(&mut self) {
        match self {
            Self::Led { leader, .. } => {
                let _ = kill_process_group(*leader, Signal::KILL);
            }
            Self::Supervised { orders, .. } => drop(orders.take()),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

//! All processes of an attempt. They are killed on drop.

use std::fs::File;
use std::io::{self, Write};

use containment::{TERMINATE, TaskUser};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// The processes of an attempt: a process group, or what a supervisor started.
pub(super) enum Group {
    /// The group that a process leads.
    Led(Pid),
    /// The descendants of a supervisor, which obeys this pipe and kills them when it closes.
    Supervised { orders: Option<File>, _user: Option<TaskUser> },
}

impl Group {
    /// The group of a process that was started as its leader and was not waited for.
    pub(super) fn led_by(child: &Child) -> Self {
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Self::Led(id.expect("a process that was not waited for has an id"))
    }

    /// The descendants of a supervisor whose standard input is a pipe.
    pub(super) fn supervised_by(child: &mut Child, user: Option<TaskUser>) -> io::Result<Self> {
        let orders = child.stdin.take().map(|pipe| pipe.into_owned_fd().map(File::from)).transpose()?;
        Ok(Self::Supervised { orders, _user: user })
    }

    /// Asks the processes to end.
    pub(super) fn terminate(&mut self) {
        // This fails only if no process is left.
        let _ = match self {
            Self::Led(leader) => kill_process_group(*leader, Signal::TERM).map_err(io::Error::from),
            Self::Supervised { orders, .. } => {
                orders.as_mut().map_or(Ok(()), |orders| orders.write_all(&[TERMINATE]))
            }
        };
    }

    /// Ends the processes at once.
    pub(super) fn kill(&mut self) {
        match self {
            Self::Led(leader) => {
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

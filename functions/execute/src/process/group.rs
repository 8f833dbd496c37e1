//! A process group that is killed on drop.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// The group that a process leads. Dropping it kills the remaining processes.
pub(super) struct Group(Pid);

impl Group {
    /// The group of a process that was started as its leader and was not waited for.
    pub(super) fn led_by(child: &Child) -> Self {
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Self(id.expect("a process that was not waited for has an id"))
    }

    /// Sends a signal to all processes of the group.
    pub(super) fn signal(&self, signal: Signal) {
        // This fails only if no process is left.
        let _ = kill_process_group(self.0, signal);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

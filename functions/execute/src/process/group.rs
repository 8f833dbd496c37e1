//! A process group that cannot be forgotten.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// The group that a process leads. Processes left in it when this is dropped are killed.
pub(super) struct Group(Pid);

impl Group {
    /// The group of a process that was started as its leader and has not been waited for.
    pub(super) fn led_by(child: &Child) -> Self {
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Self(id.expect("a process that was not waited for has an id"))
    }

    /// Sends a signal to everyone in the group.
    pub(super) fn signal(&self, signal: Signal) {
        // It only fails if no process is left, which is fine.
        let _ = kill_process_group(self.0, signal);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

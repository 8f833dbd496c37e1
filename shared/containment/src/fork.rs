//! Copies of this process.

use std::io;

use rustix::process::Pid;

/// Which of the two processes this is after a fork.
pub(crate) enum Forked {
    Child,
    Parent(Pid),
}

/// Copies this process, which must have a single thread: only then may the copy do more than to execute a program.
#[expect(unsafe_code, reason = "the copy of a process with several threads would have only one of them")]
pub(crate) fn fork() -> io::Result<Forked> {
    // SAFETY: zygotes never start a thread, and supervisors only after they have forked their program.
    let id = unsafe { libc::fork() };
    if id < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Pid::from_raw(id).map_or(Forked::Child, Forked::Parent))
}

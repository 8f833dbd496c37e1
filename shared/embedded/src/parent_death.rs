//! Kills child processes with their parent.
#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "code between fork and exec is unsafe"))]

use std::process::Command;

use rustix::process::Signal;

/// Makes the system kill the child when the thread that starts it ends, even by `kill -9` of the process. That thread must
/// live as long as the process.
pub fn kill_with_parent(command: &mut Command) {
    signal_on_parent_death(command, Signal::KILL);
}

/// Makes the system send a signal to the child when the thread that starts it ends, even by `kill -9` of the process.
///
/// Postgres then ends without a checkpoint; the next start replays its log, so no commit is lost.
#[cfg(target_os = "linux")]
pub(crate) fn signal_on_parent_death(command: &mut Command, signal: Signal) {
    use std::os::unix::process::CommandExt;

    use rustix::process::{getpid, getppid, set_parent_process_death_signal};

    let parent = getpid();
    let hook = move || {
        set_parent_process_death_signal(Some(signal))?;
        // The parent may have died before the call.
        if getppid() == Some(parent) { Ok(()) } else { Err(rustix::io::Errno::SRCH.into()) }
    };
    // SAFETY: the hook makes three system calls; it neither allocates nor takes a lock.
    unsafe { command.pre_exec(hook) };
}

/// Other systems have no such feature: the next start stops a server whose owner is gone.
#[cfg(not(target_os = "linux"))]
pub(crate) fn signal_on_parent_death(_: &mut Command, _: Signal) {}

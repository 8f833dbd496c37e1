//! Ties a child to the life of its parent.
#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "what runs between fork and exec is unsafe"))]

use std::process::Command;

use rustix::process::Signal;

/// Ties a child that knows nothing of it to the life of the thread that starts it, which must live as long as this
/// process: it is killed when that ends, even by `kill -9`.
pub fn end_with_us(command: &mut Command) {
    tether(command, Signal::KILL);
}

/// Makes the child end at once, by that signal, when the thread that starts it ends, even by `kill -9` of the process.
///
/// Ended this way Postgres finishes nothing; the next start replays its log, so no commit is lost.
#[cfg(target_os = "linux")]
pub(crate) fn tether(command: &mut Command, signal: Signal) {
    use std::os::unix::process::CommandExt;

    use rustix::process::{getpid, getppid, set_parent_process_death_signal};

    let parent = getpid();
    let hook = move || {
        set_parent_process_death_signal(Some(signal))?;
        // The parent may have died before the request was heard.
        if getppid() == Some(parent) { Ok(()) } else { Err(rustix::io::Errno::SRCH.into()) }
    };
    // SAFETY: the hook makes three system calls; it neither allocates nor takes a lock.
    unsafe { command.pre_exec(hook) };
}

/// Other systems offer nothing of the kind: the next start ends a server whose owner is gone.
#[cfg(not(target_os = "linux"))]
pub(crate) fn tether(_: &mut Command, _: Signal) {}

//! Ties a child to the life of its parent.
#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "what runs between fork and exec is unsafe"))]

use std::process::Command;

/// Makes the child end at once when the thread that starts it ends, even by `kill -9` of the process.
///
/// Ended this way Postgres finishes nothing; the next start replays its log, so no commit is lost.
#[cfg(target_os = "linux")]
pub(crate) fn tether(command: &mut Command) {
    use std::os::unix::process::CommandExt;

    use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

    let parent = getpid();
    let hook = move || {
        set_parent_process_death_signal(Some(Signal::QUIT))?;
        // The parent may have died before the request was heard.
        if getppid() == Some(parent) { Ok(()) } else { Err(rustix::io::Errno::SRCH.into()) }
    };
    // SAFETY: the hook makes three system calls; it neither allocates nor takes a lock.
    unsafe { command.pre_exec(hook) };
}

/// Other systems offer nothing of the kind: the next start ends a server whose owner is gone.
#[cfg(not(target_os = "linux"))]
pub(crate) fn tether(_: &mut Command) {}

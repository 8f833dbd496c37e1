//! The zygote: a small process that forks the supervisors of its worker.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, IoSliceMut, PipeReader, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::FdFlags;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use rustix::process::{Pid, WaitOptions, WaitStatus};

use crate::fork::{Forked, fork};
use crate::messages::Report;
use crate::{descendants, protect_this_process, supervisor};

/// The first argument of an executable that shall be a zygote instead of doing its own work.
pub(crate) const SUPERVISE: &str = "__supervise";

/// How many files a worker hands over for each supervisor: its socket, and the program's standard output and error.
pub(crate) const HANDED_OVER: usize = 3;

/// Whether the `main` of this executable is a zygote when it is asked to be one.
static CAN_SUPERVISE: AtomicBool = AtomicBool::new(false);

/// Forks supervisors for the worker that started this process, if it was started for that. Call it first in `main`, before
/// any thread exists. It returns in each of the processes, when they are done.
pub fn serve() -> Option<ExitCode> {
    if std::env::args_os().nth(1).is_some_and(|first| first == SUPERVISE) {
        return Some(run().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS));
    }
    CAN_SUPERVISE.store(true, Ordering::Relaxed);
    None
}

/// Whether this executable can be started again as a zygote: its `main` began with [`serve`].
pub fn can_supervise() -> bool {
    CAN_SUPERVISE.load(Ordering::Relaxed)
}

/// The supervisors, each with a pipe that closes when it ends.
type Alive = BTreeMap<i32, PipeReader>;

fn run() -> io::Result<()> {
    protect_this_process();
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let mut worker = Some(take_standard_input()?);
    let mut alive = Alive::new();
    while worker.is_some() || !alive.is_empty() {
        let (is_asked, ended) = wait(worker.as_ref(), &alive)?;
        remove(&mut alive, &ended);
        if !is_asked {
            continue;
        }
        match worker.as_ref().map(receive).transpose()?.flatten() {
            None => worker = None,
            Some([socket, output, errors]) => {
                let socket = UnixStream::from(socket);
                let (end, held) = io::pipe()?;
                match fork() {
                    Ok(Forked::Parent(child)) => drop(alive.insert(child.as_raw_pid(), end)),
                    Ok(Forked::Child) => {
                        drop((worker, alive, end));
                        supervisor::run(socket, &output, &errors);
                        drop(held);
                        return Ok(());
                    }
                    // The worker may be gone.
                    Err(error) => drop((&socket).write_all(&Report::not_started(&error).to_bytes())),
                }
            }
        }
    }
    Ok(())
}

/// The socket that this process was started with. Its place is taken by nothing, for programs.
fn take_standard_input() -> io::Result<OwnedFd> {
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok(socket)
}

/// Waits until the worker wants something, or is gone, or a supervisor ends. Returns whether the first, and which of them.
fn wait(worker: Option<&OwnedFd>, alive: &Alive) -> io::Result<(bool, Vec<i32>)> {
    let ends = alive.values().map(|end| PollFd::new(end, PollFlags::IN));
    let mut files: Vec<PollFd<'_>> =
        ends.chain(worker.map(|worker| PollFd::new(worker, PollFlags::IN))).collect();
    rustix::io::retry_on_intr(|| poll(&mut files, None))?;
    let (ends, worker) = files.split_at(alive.len());
    let is_ready = |file: &PollFd<'_>| !file.revents().is_empty();
    let ended = alive.keys().zip(ends).filter(|(_, end)| is_ready(end)).map(|(pid, _)| *pid);
    Ok((worker.iter().any(is_ready), ended.collect()))
}

/// What the worker hands over; none if it is gone.
fn receive(worker: &OwnedFd) -> io::Result<Option<[OwnedFd; HANDED_OVER]>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(HANDED_OVER))];
    let mut message = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(worker, &mut [IoSliceMut::new(&mut byte)], &mut message, RecvFlags::empty())
    })?;
    let mut files = Vec::new();
    for part in message.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = part {
            files.extend(rights);
        }
    }
    // Nothing else runs here that could execute a program in between.
    files.iter().try_for_each(|file| rustix::io::fcntl_setfd(file, FdFlags::CLOEXEC))?;
    Ok(files.try_into().ok())
}

/// Forgets supervisors that ended. One that was killed has left its program behind, which is now a child of this process.
fn remove(alive: &mut Alive, ended: &[i32]) {
    let mut was_killed = false;
    for pid in ended {
        alive.remove(pid);
        let status = Pid::from_raw(*pid).map(|pid| rustix::process::waitpid(Some(pid), WaitOptions::empty()));
        let done = |status: WaitStatus| status.exit_status() == Some(0);
        was_killed |= !matches!(status, Some(Ok(Some((_, status)))) if done(status));
    }
    if was_killed {
        descendants::kill_all_except(|pid| alive.contains_key(&pid));
        // Those that are not dead yet are found after the next one.
        while rustix::process::wait(WaitOptions::NOHANG).is_ok_and(|found| found.is_some()) {}
    }
}

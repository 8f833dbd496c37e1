//! The supervisor: starts the program, adopts its orphans, and ends after the last of them.

use std::ffi::OsStr;
use std::io::{self, BufReader, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process_group};

use crate::fork::{Forked, fork};
use crate::messages::{Excess, Report, Request, Usage};
use crate::plan::Plan;
use crate::{descendants, disk, groups, restrict};

/// The byte on the supervisor's socket that has it terminate the program.
pub const TERMINATE: u8 = b't';

/// How long the children of a program may continue after it has ended.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs one program, as the worker requests it over the socket, and reports its end there.
pub(crate) fn run(mut worker: UnixStream, output: &OwnedFd, errors: &OwnedFd) {
    let report = supervise(&worker, output, errors).unwrap_or_else(|error| Report::not_started(&error));
    // The worker may be gone.
    let _ = worker.write_all(&report.to_bytes());
}

fn supervise(worker: &UnixStream, output: &OwnedFd, errors: &OwnedFd) -> io::Result<Report> {
    adopt_orphans()?;
    let request = Request::read_from(worker)?;
    let orders = worker.try_clone()?;
    let program = match start(&request, output, errors)? {
        Ok(program) => program,
        Err(report) => return Ok(report),
    };
    let Plan { group, scratch, limits, .. } = request.plan;
    let attempt = Attempt { program, group };
    let (obeying, watching) = (attempt.clone(), attempt.clone());
    let is_too_large = Arc::new(AtomicBool::new(false));
    let found = is_too_large.clone();
    thread::spawn(move || obeying.obey(&orders));
    if let Some(maximum) = limits.disk {
        thread::spawn(move || {
            disk::wait_for_more_than(maximum, &scratch);
            found.store(true, Ordering::Relaxed);
            watching.kill();
        });
    }
    let status = attempt.wait_for_all()?;
    let (usage, group) = (used()?, attempt.group.as_deref());
    let is_too_large = is_too_large.load(Ordering::Relaxed);
    let excess = is_too_large.then_some(Excess::Disk).or_else(|| groups::excess(group?));
    let usage = group.map_or(usage, |group| groups::used(group, usage));
    Ok(Report::ended(status, usage, excess))
}

/// What the descendants of this process used, all of which it has waited for.
#[expect(unsafe_code, reason = "the system's call has no safe wrapper in the crates that we use")]
fn used() -> io::Result<Usage> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to memory of the right type, in which all zeros are valid.
    let usage = match unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) } {
        0 => unsafe { usage.assume_init() },
        _ => return Err(io::Error::last_os_error()),
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    // macOS counts bytes here, everyone else KiB.
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    Ok(Usage {
        cpu_seconds: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        peak_memory_bytes: u64::try_from(usage.ru_maxrss).unwrap_or_default() * unit,
    })
}

#[cfg(target_os = "linux")]
fn adopt_orphans() -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

#[cfg(not(target_os = "linux"))]
fn adopt_orphans() -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(())
}

/// Starts the program in a copy of this process, which alone takes on the plan's restrictions: the supervisor stays outside
/// of them, so the program cannot signal it. A program that cannot be started is reported.
fn start(request: &Request, output: &OwnedFd, errors: &OwnedFd) -> io::Result<Result<Pid, Report>> {
    // It closes when the program is executed.
    let (mut outcome, mut failed) = io::pipe()?;
    match fork()? {
        Forked::Child => {
            let Err(error) = become_program(request, output, errors);
            // The supervisor may have been killed.
            let _ = failed.write_all(&Report::not_started(&error).to_bytes());
            std::process::exit(1);
        }
        Forked::Parent(program) => {
            drop(failed);
            let mut report = Vec::new();
            outcome.read_to_end(&mut report)?;
            if report.is_empty() {
                return Ok(Ok(program));
            }
            rustix::process::waitpid(Some(program), WaitOptions::empty())?;
            Ok(Err(Report::parse(&report).ok_or_else(|| io::Error::other("the supervisor failed"))?))
        }
    }
}

/// Restricts this process, and executes in it the first of the programs that may be executed.
fn become_program(
    request: &Request,
    output: &OwnedFd,
    errors: &OwnedFd,
) -> io::Result<std::convert::Infallible> {
    let Request { plan, folder, program, arguments, environment } = request;
    let candidates = candidates(program, environment.get(OsStr::new("PATH")).map(|path| &**path));
    std::env::set_current_dir(folder)?;
    restrict::restrict(plan)?;
    let mut result = io::Error::new(io::ErrorKind::NotFound, "it is not on the PATH of this worker");
    for candidate in candidates {
        let mut command = Command::new(candidate);
        command.args(arguments).env_clear().envs(environment).process_group(0);
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(errors.try_clone()?);
        if let Some(user) = plan.user {
            command.uid(user).gid(user);
        }
        result = command.exec();
        if result.kind() != io::ErrorKind::PermissionDenied {
            break;
        }
    }
    Err(result)
}

/// The files that a program's name may mean, in the order of `PATH`. They are found before the plan's restrictions apply,
/// so that the error for a missing program differs from that for a hidden one.
fn candidates(name: &OsStr, path: Option<&OsStr>) -> Vec<PathBuf> {
    if name.as_encoded_bytes().contains(&b'/') {
        return vec![name.into()];
    }
    let folders = path.into_iter().flat_map(std::env::split_paths);
    folders.map(|folder| folder.join(name)).filter(|file| file.is_file()).collect()
}

/// The program of an attempt, and the control group of all its processes.
#[derive(Clone)]
struct Attempt {
    program: Pid,
    group: Option<PathBuf>,
}

impl Attempt {
    /// Obeys the worker. The end of its messages means that it wants the program killed, or that it is dead itself.
    fn obey(&self, worker: &UnixStream) {
        for message in BufReader::new(worker).bytes() {
            match message {
                // It may have ended by itself.
                Ok(TERMINATE) => drop(kill_process_group(self.program, Signal::TERM)),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        self.kill();
    }

    /// Kills the program and all its descendants: in one step where they have a control group, which none of them can leave.
    fn kill(&self) {
        if !self.group.as_deref().is_some_and(groups::kill) {
            descendants::kill_all();
        }
    }

    /// Waits for the program and everything that it leaves behind. Returns the program's own status.
    fn wait_for_all(&self) -> io::Result<WaitStatus> {
        let (mut ended, mut options) = (None, WaitOptions::empty());
        loop {
            match rustix::process::wait(options) {
                // Most programs leave nothing behind.
                Ok(Some((pid, status))) if pid == self.program => {
                    (ended, options) = (Some(status), WaitOptions::NOHANG)
                }
                Ok(None) => {
                    let orphans = self.clone();
                    thread::spawn(move || orphans.kill_orphans());
                    options = WaitOptions::empty();
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::CHILD) => {
                    return ended.ok_or_else(|| io::Error::other("the program was never started"));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Kills what the program left behind, after a while. If all of it ends earlier, so does this process.
    #[expect(clippy::disallowed_methods, reason = "a supervisor has no clock but the system's")]
    fn kill_orphans(&self) {
        thread::sleep(ORPHAN_TIMEOUT);
        self.kill();
    }
}

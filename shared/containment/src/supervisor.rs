//! The supervisor: starts the program, adopts its orphans, and ends after the last of them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group};

use crate::plan::Plan;
use crate::{descendants, restrict};

/// The first argument of an executable that shall supervise instead of doing its own work.
const SUPERVISE: &str = "__supervise";

/// The byte on the supervisor's standard input that has it terminate the program.
pub const TERMINATE: u8 = b't';

/// How long the children of a program may continue after it has ended.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(1);

/// What the names of the program's variables begin with in the supervisor's environment. The supervisor is not restricted, so
/// none of them may change how it runs, as `LD_PRELOAD` would. They are not among its arguments, which everyone can read.
const PROGRAM_VARIABLE: &str = "EBB_PROGRAM_";

/// The exit code where the program could not be started, as shells use it.
const NOT_STARTED: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// The arguments with which this process's executable supervises a program.
pub fn supervisor_arguments(plan: &Plan, program: impl Into<OsString>) -> [OsString; 3] {
    let plan = serde_json::to_string(plan).expect("a plan contains only paths in UTF-8 and numbers");
    [SUPERVISE.into(), plan.into(), program.into()]
}

/// The supervisor's environment, which hands these variables on to the program and to nothing else.
pub fn supervisor_environment(
    program: impl IntoIterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    program.into_iter().map(|(name, value)| {
        let mut prefixed = OsString::from(PROGRAM_VARIABLE);
        prefixed.push(name);
        (prefixed, value)
    })
}

/// The variables of the program, from the supervisor's environment.
fn program_environment() -> BTreeMap<OsString, OsString> {
    let own = |(name, value): (OsString, OsString)| {
        let name = name.as_bytes().strip_prefix(PROGRAM_VARIABLE.as_bytes())?;
        Some((OsStr::from_bytes(name).to_owned(), value))
    };
    std::env::vars_os().filter_map(own).collect()
}

/// Whether the `main` of this executable supervises when it is asked to.
static CAN_SUPERVISE: AtomicBool = AtomicBool::new(false);

/// Supervises a program, if this process was started for that. Call it first in `main`, before any thread exists.
pub fn supervise() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == SUPERVISE) {
        return Some(run(arguments).unwrap_or_else(|error| refuse(NOT_STARTED, &error)));
    }
    CAN_SUPERVISE.store(true, Ordering::Relaxed);
    None
}

/// Whether this executable can be started again as a supervisor: its `main` began with [`supervise`].
pub fn can_supervise() -> bool {
    CAN_SUPERVISE.load(Ordering::Relaxed)
}

fn refuse(code: u8, error: &dyn std::fmt::Display) -> ExitCode {
    let _ = writeln!(io::stderr(), "{error}");
    ExitCode::from(code)
}

fn run(mut arguments: impl Iterator<Item = OsString>) -> io::Result<ExitCode> {
    let missing = || io::Error::other("the supervisor was started without a plan or a program");
    let plan = arguments.next().ok_or_else(missing)?;
    let plan: Plan = serde_json::from_slice(plan.as_encoded_bytes())?;
    let name = arguments.next().ok_or_else(missing)?;
    restrict::enter(plan.network)?;
    adopt_orphans()?;
    let environment = program_environment();
    let candidates = candidates(&name, environment.get(OsStr::new("PATH")));
    let program = match start(plan, candidates, arguments.collect(), environment) {
        Ok(program) => program,
        Err(error) => {
            let code = match error.kind() {
                io::ErrorKind::NotFound => NOT_FOUND,
                io::ErrorKind::PermissionDenied => NOT_EXECUTABLE,
                _ => NOT_STARTED,
            };
            return Ok(refuse(code, &format_args!("cannot start {}: {error}", name.display())));
        }
    };
    thread::spawn(move || obey(program));
    let status = wait_for_all(program)?;
    Ok(end_like(status))
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

/// The files that a program's name may mean, in the order of `PATH`. They are found before the plan's restrictions apply,
/// so that a missing program and a hidden one can be told apart.
fn candidates(name: &OsStr, path: Option<&OsString>) -> Vec<PathBuf> {
    if name.as_encoded_bytes().contains(&b'/') {
        return vec![name.into()];
    }
    let folders = path.into_iter().flat_map(std::env::split_paths);
    folders.map(|folder| folder.join(name)).filter(|file| file.is_file()).collect()
}

/// Starts the first of the programs that may be executed, from a thread that takes on the plan's restrictions. The
/// supervisor itself stays outside of them, so the program cannot signal it.
fn start(
    plan: Plan,
    programs: Vec<PathBuf>,
    arguments: Vec<OsString>,
    environment: BTreeMap<OsString, OsString>,
) -> io::Result<Pid> {
    let starter = thread::spawn(move || {
        restrict::restrict(&plan)?;
        let mut result = Err(io::Error::new(io::ErrorKind::NotFound, "it is not on the PATH of this worker"));
        for program in programs {
            let mut command = Command::new(program);
            command.args(&arguments).env_clear().envs(&environment).stdin(Stdio::null()).process_group(0);
            if let Some(user) = plan.user {
                command.uid(user).gid(user);
            }
            result = command.spawn();
            if result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
                continue;
            }
            break;
        }
        result
    });
    let child = starter.join().map_err(|_| io::Error::other("the supervisor failed"))??;
    Pid::from_raw(child.id().cast_signed()).ok_or_else(|| io::Error::other("the program has no process id"))
}

/// Obeys the worker. The end of its messages means that it wants the program killed, or that it is dead itself.
fn obey(program: Pid) {
    for message in io::stdin().lock().bytes() {
        if matches!(message, Ok(TERMINATE)) {
            // It may have ended by itself.
            let _ = kill_process_group(program, Signal::TERM);
        }
    }
    descendants::kill_all();
}

/// Waits for the program and everything that it leaves behind. Returns the program's own status.
fn wait_for_all(program: Pid) -> io::Result<WaitStatus> {
    let mut ended = None;
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == program => {
                ended = Some(status);
                thread::spawn(kill_orphans);
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
fn kill_orphans() {
    thread::sleep(ORPHAN_TIMEOUT);
    descendants::kill_all();
}

/// Ends this process the way the program ended.
fn end_like(status: WaitStatus) -> ExitCode {
    if let Some(signal) = status.terminating_signal().and_then(Signal::from_named_raw) {
        let _ = kill_process(rustix::process::getpid(), signal);
    }
    let code = status.exit_status().unwrap_or_else(|| 128 + status.terminating_signal().unwrap_or(0));
    ExitCode::from(u8::try_from(code).unwrap_or(NOT_STARTED))
}

//! Turns a process's exit status into success or a failure.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use model::{ErrorClass, Failure, TaskKind};

use super::Program;
use super::description::Description;

/// The maximum length of a process's last output in the message, in characters.
const MAX_MESSAGE_LENGTH: usize = 500;

/// The exceptions of Python that another attempt meets again: the code, its packages, its files and their permissions are the
/// same.
const PERMANENT_EXCEPTIONS: [&str; 7] = [
    "SyntaxError",
    "IndentationError",
    "TabError",
    "ImportError",
    "ModuleNotFoundError",
    "FileNotFoundError",
    "PermissionError",
];

/// The signal that a person sends with `kill`. A worker that stops a program itself does not ask for its exit status.
const SIGTERM: i32 = 15;

/// Success, or the failure with the last line of the standard error, or as the program described it.
pub(super) fn check(
    status: ExitStatus,
    kind: &TaskKind,
    last_error: Option<String>,
    described: Option<Description>,
) -> Result<(), Failure> {
    let mut failure = match (status.code(), status.signal()) {
        (Some(0), _) => return Ok(()),
        (Some(code), _) => exited(code),
        (None, signal) => killed(signal.unwrap_or_default()),
    };
    if let Some(line) = last_error {
        if *kind == TaskKind::Python && failure.exit_code == Some(1) && is_permanent_exception(line.trim()) {
            failure.class = ErrorClass::Permanent;
        }
        failure.message.push_str(": ");
        failure.message.extend(line.trim().chars().take(MAX_MESSAGE_LENGTH));
    }
    Err(match described {
        Some(described) => described.over(failure),
        None => failure,
    })
}

fn exited(code: i32) -> Failure {
    let hint = match code {
        125 => " (the program that should have started it failed)".to_owned(),
        126 => " (found, but not executable)".to_owned(),
        127 => " (command not found on this worker)".to_owned(),
        129..=192 => format!(" (a command in it was killed by signal {})", code - 128),
        _ => String::new(),
    };
    Failure { exit_code: Some(code), ..Failure::of_program(format!("exited with code {code}{hint}")) }
}

fn killed(signal: i32) -> Failure {
    let (class, hint) = match signal {
        9 => (ErrorClass::Killed, " (possibly out of memory)"),
        SIGTERM => (ErrorClass::Permanent, " (terminated by a person or another program)"),
        _ => (ErrorClass::Killed, ""),
    };
    Failure { signal: Some(signal), ..Failure::new(class, format!("killed by signal {signal}{hint}")) }
}

/// Whether the last line of a traceback names such an exception: `SyntaxError: invalid syntax`.
fn is_permanent_exception(line: &str) -> bool {
    let name = line.split_once(':').map_or(line, |(name, _)| name);
    PERMANENT_EXCEPTIONS.contains(&name)
}

/// The failure of a program whose supervisor was killed, and the program with it.
pub(super) fn lost_supervisor() -> Failure {
    Failure::new(ErrorClass::Killed, "its supervisor was killed (possibly out of memory)")
}

/// The failure of a program that could not be started.
pub(super) fn not_started(program: &Program, error: &io::Error) -> Failure {
    let Program { name, remedy, .. } = program;
    match error.kind() {
        io::ErrorKind::NotFound => {
            Failure::permanent(format!("`{name}` is not on the PATH of this worker: {remedy}"))
        }
        io::ErrorKind::PermissionDenied => {
            Failure::permanent(format!("this worker may not run `{name}`: {error}"))
        }
        io::ErrorKind::ArgumentListTooLong => Failure::permanent(format!(
            "the command and its environment are too long for `{name}`: use a script, and read large values \
             from the file EBB_INPUT"
        )),
        io::ErrorKind::InvalidInput => Failure::permanent(format!(
            "the command or its environment contains a NUL character, which processes cannot receive: {error}"
        )),
        io::ErrorKind::Unsupported => Failure::permanent(format!("cannot start `{name}`: {error}")),
        _ => Failure::transient(format!("cannot start `{name}`: {error}")),
    }
}

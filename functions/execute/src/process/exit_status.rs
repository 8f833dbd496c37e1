//! Turns a process's exit status into success or a failure.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use model::{ErrorClass, Failure};

use super::Program;

/// The maximum length of a process's last output in the message, in characters.
const MAX_MESSAGE_LENGTH: usize = 500;

/// Success, or the failure with the last line of the standard error.
pub(super) fn check(status: ExitStatus, last_error: Option<String>) -> Result<(), Failure> {
    let mut failure = match (status.code(), status.signal()) {
        (Some(0), _) => return Ok(()),
        (Some(code), _) => exited(code),
        (None, signal) => killed(signal.unwrap_or_default()),
    };
    if let Some(line) = last_error {
        failure.message.push_str(": ");
        failure.message.extend(line.trim().chars().take(MAX_MESSAGE_LENGTH));
    }
    Err(failure)
}

fn exited(code: i32) -> Failure {
    let (class, hint) = match code {
        125 => (ErrorClass::Permanent, " (the program that should have started it failed)".to_owned()),
        126 => (ErrorClass::Permanent, " (found, but not executable)".to_owned()),
        127 => (ErrorClass::Permanent, " (command not found on this worker)".to_owned()),
        129..=192 => {
            (ErrorClass::Transient, format!(" (a command in it was killed by signal {})", code - 128))
        }
        _ => (ErrorClass::Transient, String::new()),
    };
    Failure { exit_code: Some(code), ..Failure::new(class, format!("exited with code {code}{hint}")) }
}

fn killed(signal: i32) -> Failure {
    let hint = if signal == 9 { " (possibly out of memory)" } else { "" };
    Failure::new(ErrorClass::Killed, format!("killed by signal {signal}{hint}"))
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
        _ => Failure::transient(format!("cannot start `{name}`: {error}")),
    }
}

//! What the end of a process means.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use model::{ErrorClass, Failure};

use super::Program;

/// How much of a process's last output goes into the message.
const MAX_MESSAGE_LENGTH: usize = 500;

/// Success, or the failure with what the process said last.
pub(super) fn judge(status: ExitStatus, last_error: Option<String>) -> Result<(), Failure> {
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
            (ErrorClass::Transient, format!(" (a command in it was ended by signal {})", code - 128))
        }
        _ => (ErrorClass::Transient, String::new()),
    };
    Failure { exit_code: Some(code), ..Failure::new(class, format!("exited with code {code}{hint}")) }
}

fn killed(signal: i32) -> Failure {
    let hint = if signal == 9 { " (out of memory, perhaps)" } else { "" };
    Failure::new(ErrorClass::Killed, format!("killed from outside by signal {signal}{hint}"))
}

/// Why the program could not even be started.
pub(super) fn not_started(program: &Program, error: &io::Error) -> Failure {
    let Program { name, remedy, .. } = program;
    match error.kind() {
        io::ErrorKind::NotFound => {
            Failure::permanent(format!("there is no `{name}` on the PATH of this worker: {remedy}"))
        }
        io::ErrorKind::PermissionDenied => {
            Failure::permanent(format!("this worker may not run `{name}`: {error}"))
        }
        io::ErrorKind::ArgumentListTooLong => Failure::permanent(format!(
            "the command and its environment are too long for `{name}`: use a script, and read large values \
             from the file named by EBB_INPUT"
        )),
        io::ErrorKind::InvalidInput => Failure::permanent(format!(
            "the command or its environment holds a NUL character, which no process can be given: {error}"
        )),
        _ => Failure::transient(format!("`{name}` could not be started: {error}")),
    }
}

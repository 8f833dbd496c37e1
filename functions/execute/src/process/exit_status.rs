//! Turns a process's exit status into success or a failure.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use containment::Excess;
use model::{ErrorClass, Failure, Resources, TaskKind};

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

/// The signal that no program survives.
const SIGKILL: i32 = 9;

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
        SIGKILL => (ErrorClass::Killed, " (possibly out of memory)"),
        SIGTERM => (ErrorClass::Permanent, " (terminated by a person or another program)"),
        _ => (ErrorClass::Killed, ""),
    };
    Failure { signal: Some(signal), ..Failure::new(class, format!("killed by signal {signal}{hint}")) }
}

/// The failure of a program that was killed because it used too much.
pub(super) fn exceeded(excess: Excess, resources: &Resources) -> Failure {
    let more_than = |what: &str, field: &str, limit: Option<u64>| {
        let limit = limit.map(size).unwrap_or_default();
        format!("killed: it used more {what} than resources.{field} = {limit}")
    };
    let message = match excess {
        Excess::Memory => more_than("memory", "memory", resources.memory),
        Excess::Disk => more_than("disk space", "disk", resources.disk),
        Excess::MachineMemory => {
            "killed: the memory of its worker's machine or container was used up".to_owned()
        }
    };
    Failure { signal: Some(SIGKILL), ..Failure::new(ErrorClass::Killed, message) }
}

/// A number of bytes as people write it: in the largest unit that needs no fraction.
fn size(bytes: u64) -> String {
    let units = [(30, "Gi"), (20, "Mi"), (10, "Ki"), (0, "")];
    let (shift, unit) =
        units.into_iter().find(|(shift, _)| bytes.is_multiple_of(1 << shift)).unwrap_or((0, ""));
    format!("{}{unit}", bytes >> shift)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_used_too_much_learns_which_limit_it_was() {
        let resources =
            Resources { memory: Some(256 << 20), disk: Some(1_500_000_000), ..Resources::default() };
        let failed = |excess| exceeded(excess, &resources);
        let failure = failed(Excess::Memory);
        assert_eq!(failure.message, "killed: it used more memory than resources.memory = 256Mi");
        assert_eq!((failure.class, failure.signal), (ErrorClass::Killed, Some(9)));
        assert!(failed(Excess::Disk).message.ends_with("more disk space than resources.disk = 1500000000"));
        assert!(failed(Excess::MachineMemory).message.contains("machine"));
        assert_eq!((size(3 << 30), size(5 << 10)), ("3Gi".into(), "5Ki".into()));
    }
}

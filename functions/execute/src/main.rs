//! The execute function as a service.

use std::process::ExitCode;

fn main() -> ExitCode {
    // A task's program is supervised by the executable that starts it.
    containment::supervise().unwrap_or_else(ebbflow_execute::main)
}

//! The execute function as a service.

use std::process::ExitCode;

fn main() -> ExitCode {
    // The supervisors of programs come from the executable that starts them.
    containment::serve().unwrap_or_else(ebbflow_execute::main)
}

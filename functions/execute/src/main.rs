//! The execute function as a service.

use std::process::ExitCode;

fn main() -> ExitCode {
    ebbflow_execute::main()
}

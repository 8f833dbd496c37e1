//! The console as a service.

use std::process::ExitCode;

fn main() -> ExitCode {
    ebbflow_console::main()
}

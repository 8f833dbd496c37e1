//! The sweep function as a service.

use std::process::ExitCode;

fn main() -> ExitCode {
    ebbflow_sweep::main()
}

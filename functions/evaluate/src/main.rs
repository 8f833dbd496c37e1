//! The evaluate function as a service.

use std::process::ExitCode;

fn main() -> ExitCode {
    ebbflow_evaluate::main()
}

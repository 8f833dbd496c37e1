//! The sweep function as a service.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::main("sweep", |_, app| async move { Ok(ebbflow_sweep::router(app)) })
}

//! The evaluate function as a service.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::main("evaluate", |_, app| async move { Ok(ebbflow_evaluate::router(app)) })
}

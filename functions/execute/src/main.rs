//! The execute function as a service.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::main("execute", |_, app| async move { Ok(ebbflow_execute::router(app)) })
}

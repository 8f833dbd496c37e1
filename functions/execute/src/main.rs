//! The execute function as a service.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::main("execute", |config, app| async move { Ok(ebbflow_execute::serving(app, config.queue)) })
}

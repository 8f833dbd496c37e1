//! The sweep function as a service.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::main("sweep", |config, app| async move {
        Ok(ebbflow_sweep::router_with(app, ebbflow_sweep::Retention::new(config.retention)))
    })
}

//! The console as a service.

use std::process::ExitCode;

use api::Api;
use tracing::warn;

fn main() -> ExitCode {
    service::main("console", |config, app| async move {
        Ok(match Api::configured(&config, app.clone())? {
            Some(api) => ebbflow_console::router(api),
            None => {
                warn!("EBB_API_AUDIENCE is not set: nobody can be told apart, so only health is served");
                service::health(app)
            }
        })
    })
}

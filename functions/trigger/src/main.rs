//! The trigger function as a service.

use std::process::ExitCode;

use api::Api;
use tracing::info;

fn main() -> ExitCode {
    service::main("trigger", |config, app| async move {
        let api = Api::configured(&config, app.clone())?;
        if api.is_none() {
            info!("EBB_API_AUDIENCE is not set: runs are started by messages only, the API is not served");
        }
        Ok(ebbflow_trigger::router(app, api))
    })
}

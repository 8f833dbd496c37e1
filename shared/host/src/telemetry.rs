//! Logs: text on a terminal, elsewhere one JSON object a line, as Cloud Logging reads it. What is logged can be changed
//! while the process runs.

mod cloud;
mod labels;

use std::io::IsTerminal;
use std::sync::OnceLock;

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

use cloud::CloudLayer;
pub(crate) use labels::Fields;

use crate::traces::SpanLayer;

/// What is logged, of the subscriber that was started first.
static FILTER: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// Starts logging to standard error what `RUST_LOG` names, `info` without it. Traces are those of the project that
/// `EBB_PROJECT` names.
pub fn init() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let (filter, handle) = reload::Layer::new(filter);
    let lines = match std::io::stderr().is_terminal() {
        true => fmt::layer().with_writer(std::io::stderr).compact().with_target(false).boxed(),
        false => CloudLayer::new(std::env::var("EBB_PROJECT").ok(), std::io::stderr).boxed(),
    };
    // A second start, as when several functions share a process, changes nothing.
    if tracing_subscriber::registry().with(filter).with(lines).with(SpanLayer).try_init().is_ok() {
        let _ = FILTER.set(handle);
    }
}

/// What is logged now; nothing where logging was not started here.
pub fn filter() -> Option<String> {
    FILTER.get()?.with_current(ToString::to_string).ok()
}

/// Logs what the words name from now on, as `RUST_LOG` would have: `debug`, or `info,ebbflow_runtime=trace`.
pub fn set_filter(words: &str) -> Result<(), String> {
    let filter = EnvFilter::builder().parse(words).map_err(|error| format!("`{words}`: {error}"))?;
    let handle = FILTER.get().ok_or("logging was not started in this process")?;
    handle.reload(filter).map_err(|error| error.to_string())
}

//! Logs: text on a terminal, elsewhere one JSON object per line, as Cloud Logging reads it. The filter can be changed while
//! the process runs.

mod cloud;
mod labels;
mod levels;

use std::io::IsTerminal;
use std::sync::{Mutex, OnceLock, PoisonError};

use tracing::warn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

use cloud::CloudLayer;
pub(crate) use labels::Fields;
use levels::Levels;

use crate::config::Environment;
use crate::traces::SpanLayer;

/// The filter of the first subscriber that was started.
static FILTER: OnceLock<Filter> = OnceLock::new();

/// A filter that can be changed.
struct Filter {
    handle: reload::Handle<Levels, Registry>,
    /// The filter that applies while no other is set for the function.
    configured: String,
    /// The filter that was last set for the function; none if there was none.
    followed: Mutex<Option<String>>,
}

/// Starts logging to standard error, filtered by `RUST_LOG` (default `info`); counted lines pass every filter. Traces belong to the project `EBB_PROJECT`.
pub fn init(environment: &Environment) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let configured = filter.to_string();
    let (filter, handle) = reload::Layer::new(Levels(filter));
    let lines = match std::io::stderr().is_terminal() {
        true => fmt::layer().with_writer(std::io::stderr).compact().with_target(false).boxed(),
        false => CloudLayer::new(environment.get("EBB_PROJECT").map(str::to_owned), std::io::stderr).boxed(),
    };
    // A second call, as when several functions share a process, does nothing.
    if tracing_subscriber::registry().with(filter).with(lines).with(SpanLayer).try_init().is_ok() {
        let _ = FILTER.set(Filter { handle, configured, followed: Mutex::default() });
    }
}

/// The current filter; none if logging was not started here.
pub fn filter() -> Option<String> {
    FILTER.get()?.handle.with_current(|levels| levels.0.to_string()).ok()
}

/// Checks the syntax of a filter.
pub fn check_filter(text: &str) -> Result<(), String> {
    parse(text).map(drop)
}

fn parse(text: &str) -> Result<EnvFilter, String> {
    EnvFilter::builder().parse(text).map_err(|error| format!("`{text}`: {error}"))
}

/// Sets the filter, in the syntax of `RUST_LOG`: `debug`, or `info,ebbflow_runtime=trace`.
pub fn set_filter(text: &str) -> Result<(), String> {
    let filter = parse(text)?;
    let current = FILTER.get().ok_or("logging was not started in this process")?;
    current.handle.reload(Levels(filter)).map_err(|error| error.to_string())
}

/// Follows the filter that is set for the function of this process, or the configured one if none is set. Only a change matters: a
/// filter of this process alone stays until then.
pub fn follow_filter(set: Option<&str>) {
    let Some(current) = FILTER.get() else { return };
    {
        let mut followed = current.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if followed.as_deref() == set {
            return;
        }
        *followed = set.map(str::to_owned);
    }
    let wanted = set.unwrap_or(&current.configured);
    match set_filter(wanted) {
        Ok(()) => warn!("Changed the log filter to `{wanted}`"),
        Err(error) => warn!("Cannot set the log filter: {error}"),
    }
}

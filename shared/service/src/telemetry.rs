//! Logs: text on a terminal, one JSON object a line elsewhere.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Starts logging to standard error at the level that `RUST_LOG` names, `info` without it.
pub fn init() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second start, as when several functions share a process, changes nothing.
    let _ = if std::io::stderr().is_terminal() {
        logs.compact().with_target(false).try_init()
    } else {
        logs.json().flatten_event(true).with_current_span(false).try_init()
    };
}

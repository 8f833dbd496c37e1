//! The environment of a process: an allow list of inherited variables, those of the config, and ours.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::{Program, Scratch};
use crate::job::Job;

/// The variables that a process inherits from the worker.
const INHERITED: [&str; 5] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ"];

/// The prefixes and names of the worker's variables that installers of packages need: their own settings, and how to reach the
/// network.
const INSTALLERS: [&str; 2] = ["PIP_", "UV_"];
/// The prefix of those that only publishing needs: passwords that the code of packages must not see.
const PUBLISHERS: &str = "UV_PUBLISH_";
const NETWORK: [&str; 8] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
];

/// Where the worker finds programs.
pub(super) fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

/// What installers of packages inherit from the worker.
pub(super) fn of_installers() -> BTreeMap<String, String> {
    let text =
        |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    std::env::vars_os().filter_map(text).filter(|(name, _)| is_for_installers(name)).collect()
}

fn is_for_installers(name: &str) -> bool {
    let is_setting = INSTALLERS.iter().any(|prefix| name.starts_with(prefix));
    (is_setting && !name.starts_with(PUBLISHERS)) || NETWORK.contains(&name)
}

/// The environment of a process. Our variables come last, so that a config cannot forge them. A contained program cannot
/// reach the worker's home, so it works in one of its own.
pub(super) fn of(
    program: &Program,
    scratch: &Scratch,
    job: &Job,
    is_contained: bool,
) -> BTreeMap<OsString, OsString> {
    let inherited = INHERITED.iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
    let home = is_contained.then(|| ("HOME".into(), scratch.work().into()));
    let configured = program.environment.iter().map(|(name, value)| (name.into(), value.into()));
    let ours = [
        ("EBB_INPUT", scratch.input_file().into()),
        ("EBB_OUTPUT", scratch.output_file().into()),
        ("EBB_FAILURE", scratch.failure_file().into()),
        ("EBB_MESSAGES", scratch.messages_file().into()),
        ("EBB_RUN_ID", job.run.to_string().into()),
        ("EBB_TASK", job.task.clone().into()),
        ("EBB_ATTEMPT", job.attempt.to_string().into()),
    ];
    inherited
        .chain([("TMPDIR".into(), scratch.work().into())])
        .chain(home)
        .chain(configured)
        .chain(ours.map(|(name, value)| (name.into(), value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::is_for_installers;

    #[test]
    fn installers_get_their_settings_but_not_what_publishes() {
        for name in ["PIP_INDEX_URL", "UV_INDEX_URL", "HTTPS_PROXY", "no_proxy"] {
            assert!(is_for_installers(name), "{name}");
        }
        for name in ["UV_PUBLISH_TOKEN", "UV_PUBLISH_PASSWORD", "DATABASE_URL", "PATH", "MY_PIP_TOKEN"] {
            assert!(!is_for_installers(name), "{name}");
        }
    }
}

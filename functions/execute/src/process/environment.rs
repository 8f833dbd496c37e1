//! The environment of a process: an allow list of inherited variables, those of the config, and ours.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::{Program, Scratch};
use crate::job::Job;

/// The variables that a process inherits from the worker.
const INHERITED: [&str; 5] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ"];

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
        ("EBB_RUN_ID", job.key.run.to_string().into()),
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

//! The environment of a process: an allow-list, the config's own, and ours.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::{Program, Scratch};
use crate::job::Job;

/// What a process may see of the worker's environment.
const INHERITED: [&str; 5] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ"];

/// All of the process's environment. Ours comes last: no config can forge it.
pub(super) fn of(program: &Program, scratch: &Scratch, job: &Job) -> BTreeMap<OsString, OsString> {
    let inherited = INHERITED.iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
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
        .chain(configured)
        .chain(ours.map(|(name, value)| (name.into(), value)))
        .collect()
}

//! The processes that descend from this one.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// Sends SIGKILL to all descendants until no more of them appear.
///
/// A process may fork between the look and the signal, so one pass is not enough: what it forked is found by the next.
pub(crate) fn kill_all() {
    kill_all_except(|_| false);
}

/// The same, but spares some children of this process, with their descendants.
pub(crate) fn kill_all_except(is_spared: impl Fn(i32) -> bool) {
    let mut killed = BTreeSet::new();
    loop {
        let mut alive = of_this_process(&is_spared);
        alive.retain(|pid| !killed.contains(pid));
        if alive.is_empty() {
            return;
        }
        for pid in alive {
            // It may have ended by itself.
            let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::KILL));
            killed.insert(pid);
        }
    }
}

/// The descendants of this process, except for some children and theirs; orphans included, if this process adopts them.
fn of_this_process(is_spared: impl Fn(i32) -> bool) -> Vec<i32> {
    let mut found: Vec<i32> = children(&std::process::id().to_string());
    found.retain(|pid| !is_spared(*pid));
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        let more = children(&pid.to_string());
        found.extend(more);
        next += 1;
    }
    found
}

/// The children of a process. The system lists them by the thread that started them.
fn children(pid: &str) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

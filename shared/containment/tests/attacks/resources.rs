//! What the processes of an attempt may use together.

use std::fs;
use std::net::Shutdown;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use ebbflow_containment::{Excess, Limits, Plan, TaskUsers};
use rustix::process::geteuid;

use crate::is_complete;
use crate::running::{Attempt, GROUPS};

/// Whether control groups limit memory here. Root may always divide the group of the whole machine, which alone has no events,
/// if it is mounted to be written to and no hierarchy of version 1 has the controller.
fn limits_memory_together() -> bool {
    if GROUPS.controllers().memory {
        return true;
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let is_divisible = mounts.lines().filter(|line| line.contains(" - cgroup2 ")).any(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let has_memory = fs::read_to_string(Path::new(fields[4]).join("cgroup.controllers"))
            .is_ok_and(|names| names.split_whitespace().any(|name| name == "memory"));
        has_memory && fields[5].starts_with("rw") && !Path::new(fields[4]).join("cgroup.events").exists()
    });
    assert!(!(is_complete() && geteuid().is_root() && is_divisible), "root may create control groups here");
    println!("skipped: no control group of version 2 to divide here, so `memory` is that of each process");
    false
}

/// Each stays within the memory that all of them together may use.
pub(crate) fn processes_share_the_memory_of_their_attempt() {
    if !limits_memory_together() {
        return;
    }
    let attempt = Attempt::new(&TaskUsers::default());
    let plan = Plan { limits: Limits { memory: Some(128 << 20), ..Limits::default() }, ..attempt.plan() };
    let hold = "x=$(head -c 30000000 /dev/zero | tr '\\0' x); echo ${#x}; sleep 3600";
    let one = format!("{hold} & read -t 3600 < <(sleep 3600)");
    let mut alone = attempt.start(&plan, &one);
    assert_eq!(alone.line(), "30000000", "one of them is within the limit");
    alone.supervisor.shutdown(Shutdown::Write).unwrap();
    assert_eq!(alone.end().0.unwrap().excess(), None);
    let many = format!("for i in $(seq 10); do ({hold}) & done; wait; echo never");
    let (report, text) = attempt.start(&plan, &many).end();
    let report = report.unwrap();
    assert_eq!(report.excess(), Some(Excess::Memory), "{text}");
    assert!(report.usage().unwrap().peak_memory_bytes <= 128 << 20, "{report:?}");
    assert_eq!(report.status().unwrap().signal(), Some(9), "{text}");
}

pub(crate) fn files_share_the_disk_space_of_their_attempt() {
    let attempt = Attempt::new(&TaskUsers::default());
    let plan = Plan { limits: Limits { disk: Some(4 << 20), ..Limits::default() }, ..attempt.plan() };
    let script = "mkdir a && for i in 1 2 3; do head -c 2000000 /dev/zero > a/$i; done; echo written; sleep 3600; echo never";
    let (report, text) = attempt.start(&plan, script).end();
    let report = report.unwrap();
    assert_eq!((report.excess(), text.as_str()), (Some(Excess::Disk), "written\n"));
    assert_eq!(report.status().unwrap().signal(), Some(9));
}

pub(crate) fn a_control_group_ends_with_its_attempt() {
    let attempt = Attempt::new(&TaskUsers::default());
    let mut running = attempt.start(&attempt.plan(), "setsid sleep 3600 & cat /proc/self/cgroup; exit 3");
    let Some(group) = running.group.take() else {
        assert!(!geteuid().is_root() || !GROUPS.controllers().memory);
        println!("skipped: no control group of version 2 to divide here");
        return;
    };
    let folder = group.folder().to_owned();
    let (report, text) = running.end();
    assert_eq!(report.unwrap().status().unwrap().code(), Some(3), "{text}");
    let name = folder.file_name().unwrap().to_str().unwrap();
    let worker = folder.parent().unwrap().file_name().unwrap().to_str().unwrap();
    assert!(text.contains(&format!("/{worker}/{name}\n")), "{text}");
    drop(group);
    assert!(!folder.exists(), "{} is left", folder.display());
}

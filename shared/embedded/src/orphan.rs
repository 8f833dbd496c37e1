//! Stops servers whose owner was killed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{interval, timeout};

use crate::Error;
use crate::postmaster::POLL_INTERVAL;

/// Stops all processes that still serve `cluster`. The caller holds the folder's lock, so the owner is gone.
pub(crate) async fn stop(cluster: &Path, limit: Duration) -> Result<(), Error> {
    let mut left = None;
    let gone = async {
        let mut ticks = interval(POLL_INTERVAL);
        loop {
            let servers = servers(cluster);
            left = servers.first().copied();
            if servers.is_empty() {
                return;
            }
            servers.into_iter().for_each(kill);
            ticks.tick().await;
        }
    };
    let in_time = timeout(limit, gone).await.is_ok();
    match left {
        Some(pid) if !in_time => Err(Error::Lingering { pid: pid.as_raw_pid(), folder: cluster.to_owned() }),
        _ => remove_pid_file(&cluster.join("postmaster.pid")),
    }
}

fn kill(pid: Pid) {
    // It may have ended in the meantime.
    let _ = kill_process(pid, Signal::QUIT);
}

/// No process serves the cluster, but the pid in this file may now belong to an unrelated process, which Postgres would take
/// for another server.
fn remove_pid_file(postmaster_pid: &Path) -> Result<(), Error> {
    match fs::remove_file(postmaster_pid) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::at(postmaster_pid)(e)),
        _ => Ok(()),
    }
}

/// The processes of `cluster`: the working directory of Postgres is the folder of its cluster.
#[cfg(target_os = "linux")]
fn servers(cluster: &Path) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    let serves = |process: &std::path::PathBuf| {
        fs::read_link(process.join("cwd")).is_ok_and(|folder| folder == cluster)
            && fs::read_to_string(process.join("comm")).is_ok_and(|name| name.trim() == "postgres")
    };
    let number = |process: std::path::PathBuf| process.file_name()?.to_str()?.parse().ok();
    processes.filter(serves).filter_map(number).filter_map(Pid::from_raw).collect()
}

/// The main process of `cluster`: its command line contains the folder.
#[cfg(not(target_os = "linux"))]
fn servers(cluster: &Path) -> Vec<Pid> {
    let output = std::process::Command::new("ps").args(["-axo", "pid=,command="]).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let argument = format!("-D {}", cluster.display());
    let lines = text.lines().filter(|line| line.contains("postgres") && line.contains(&argument));
    lines.filter_map(|line| line.split_whitespace().next()?.parse().ok()).filter_map(Pid::from_raw).collect()
}

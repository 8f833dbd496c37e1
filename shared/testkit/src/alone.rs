//! Tests that measure the memory of a whole process.

use std::env;
use std::fs;
use std::process::Command;

/// The variable of a process that runs one test only.
const ALONE: &str = "EBB_TEST_ALONE";

/// Whether this process runs only the test of this full name. If not, runs the test in a process of its own, where the memory
/// and the threads of other tests do not count; the caller then has nothing left to do.
///
/// # Panics
/// If the test fails in its own process.
pub fn runs_alone(test: &str) -> bool {
    if env::var_os(ALONE).is_some() {
        return true;
    }
    let mut process = Command::new(env::current_exe().expect("a test is an executable"));
    process.args(["--exact", test, "--nocapture"]).env(ALONE, "1");
    let output = process.output().expect("a test can be started");
    let (printed, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && printed.contains("1 passed"),
        "{test}: {}\n{printed}{error}",
        output.status
    );
    println!("{printed}");
    false
}

/// The most memory that a process has ever had, in bytes. It is named by its id; `self` is this one.
///
/// # Panics
/// If there is no such process.
pub fn peak_memory(process: impl std::fmt::Display) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("the process is there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux counts memory");
    1024 * line.trim().trim_end_matches(" kB").parse::<u64>().expect("it is a number")
}

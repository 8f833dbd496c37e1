//! The Python package, with the real binary: its own tests, types, style, wheel and sdist.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::project::printed;

/// What `clients/python/check` exits with if something it needs is missing.
const MISSING: i32 = 3;

fn check() -> Command {
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("../clients/python/check");
    let mut command = Command::new(check);
    command.arg(env!("CARGO_BIN_EXE_ebb"));
    command
}

/// Whether a check that ended with this code was skipped, and may be: the complete gate skips nothing.
fn may_skip(code: Option<i32>, gate: Option<&str>) -> bool {
    code == Some(MISSING) && gate != Some("complete")
}

#[test]
fn the_python_package_works_with_this_server() {
    let output = check().output().unwrap();
    let (code, gate) = (output.status.code(), std::env::var("GATE").ok());
    if may_skip(code, gate.as_deref()) {
        return eprintln!("{}", printed(&output));
    }
    assert_eq!(code, Some(0), "{}", printed(&output));
}

/// A machine that has the tools of the check, and these programs that claim to be Python.
fn machine(pythons: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = std::env::var("PATH").unwrap();
    for tool in ["bash", "cat", "dirname", "realpath", "rm", "timeout"] {
        let places = std::env::split_paths(&path).map(|place: PathBuf| place.join(tool));
        let found = places.into_iter().find(|place| place.is_file()).unwrap();
        std::os::unix::fs::symlink(found, folder.path().join(tool)).unwrap();
    }
    let says_yes = Path::new("/bin/true");
    for python in pythons {
        std::os::unix::fs::symlink(says_yes, folder.path().join(python)).unwrap();
    }
    folder
}

fn checked_on(machine: &Path, gate: &str) -> Output {
    let mut command = check();
    for folder in ["PATH", "HOME", "PYENV_ROOT", "TMPDIR"] {
        command.env(folder, machine);
    }
    command.env("GATE", gate).output().unwrap()
}

#[test]
fn the_complete_gate_refuses_every_skip_of_the_python_package() {
    for (code, gate, may) in [(MISSING, None, true), (MISSING, Some("complete"), false), (1, None, false)] {
        assert_eq!(may_skip(Some(code), gate), may, "GATE={gate:?}, exit code {code}");
    }
    let nothing = checked_on(machine(&[]).path(), "");
    assert_eq!(nothing.status.code(), Some(MISSING), "{}", printed(&nothing));
    assert!(printed(&nothing).contains("there is no Python 3.9 or later"), "{}", printed(&nothing));
    // With only a newer Python, the check goes on to its packages, which cannot be installed here.
    for (gate, goes_on) in [("", true), ("complete", false)] {
        let newer = checked_on(machine(&["python3.12"]).path(), gate);
        assert_eq!(newer.status.code(), Some(MISSING), "{}", printed(&newer));
        assert!(printed(&newer).contains("not tested with Python 3.9"), "{}", printed(&newer));
        let went_on = printed(&newer).contains("Cannot install the Python packages");
        assert_eq!(went_on, goes_on, "GATE={gate}: {}", printed(&newer));
    }
}

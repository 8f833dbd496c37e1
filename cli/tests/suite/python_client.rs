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

#[test]
fn the_python_package_works_with_this_server() {
    let output = check().output().unwrap();
    match output.status.code() {
        Some(MISSING) => testkit::skip(&printed(&output)),
        code => assert_eq!(code, Some(0), "{}", printed(&output)),
    }
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
    let nothing = checked_on(machine(&[]).path(), "");
    assert_eq!(nothing.status.code(), Some(MISSING), "{}", printed(&nothing));
    assert!(printed(&nothing).contains("there is no Python 3.9 or later"), "{}", printed(&nothing));
    // With only one of the two, the check goes on to its packages, which cannot be installed here.
    for (gate, goes_on) in [("", true), ("complete", false)] {
        for (python, missing) in [("python3.14", "3.9"), ("python3.9", "3.14")] {
            let one = checked_on(machine(&[python]).path(), gate);
            assert_eq!(one.status.code(), Some(MISSING), "{}", printed(&one));
            let reason = format!("not tested with Python {missing},");
            assert!(printed(&one).contains(&reason), "{}", printed(&one));
            let went_on = printed(&one).contains("Cannot install the Python packages");
            assert_eq!(went_on, goes_on, "GATE={gate}: {}", printed(&one));
        }
    }
}

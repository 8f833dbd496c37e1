//! The restore drill: the real script, with a `gcloud` that records its arguments and may fail.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// Records its arguments, and fails if they contain the text in the file `fails`. A clone exists once it was asked for, until it is
/// deleted.
const GCLOUD: &str = r#"#!/usr/bin/env bash
echo "$*" >>"$FAKE/calls"
case "$*" in *--flags-file=-*) cat >>"$FAKE/flags" ;; esac
case "$*" in *"$(cat "$FAKE/fails")"*) exit 1 ;; esac
case "$2 $3" in
    "instances clone") touch "$FAKE/clone"; echo operation-1 ;;
    "instances list") [ ! -e "$FAKE/clone" ] || echo the-clone ;;
    "instances delete") rm "$FAKE/clone" ;;
    "instances describe") case "$*" in *state*) echo RUNNABLE ;; *) echo 10.0.0.3 ;; esac ;;
esac
"#;

struct Drill {
    output: Output,
    calls: Vec<String>,
    /// What gcloud was given besides arguments.
    flags: String,
    clone_is_left: bool,
}

impl Drill {
    /// A drill in which the calls that contain `fails` fail.
    fn with(fails: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        file("gcloud", GCLOUD);
        fs::set_permissions(folder.path().join("gcloud"), fs::Permissions::from_mode(0o755)).unwrap();
        ["calls", "flags"].into_iter().for_each(|name| file(name, ""));
        file("fails", fails);
        let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/restore-drill");
        let mut command = Command::new(script);
        command.args(["my-project", "us-central1"]).env("PATH", path).env("FAKE", folder.path());
        let output = command.output().unwrap();
        let calls = text("calls").lines().map(str::to_owned).collect();
        Self { output, calls, flags: text("flags"), clone_is_left: folder.path().join("clone").exists() }
    }

    fn place(&self, part: &str) -> usize {
        let place = self.calls.iter().position(|call| call.contains(part));
        place.unwrap_or_else(|| panic!("no {part} in {:#?}", self.calls))
    }
}

#[test]
fn a_drill_restores_migrates_and_leaves_nothing() {
    let drill = Drill::with("nothing");
    let printed = String::from_utf8_lossy(&drill.output.stdout).into_owned();
    assert!(drill.output.status.success() && !drill.clone_is_left, "{:?}", drill.output);
    assert!(
        printed.contains("Restored ebbflow as of") && printed.contains("Deleted ebbflow-drill-"),
        "{printed}"
    );
    let order =
        ["instances clone", "operations wait", "users set-password", "jobs execute", "instances patch"];
    let places = order.map(|part| drill.place(part));
    assert!(places.is_sorted() && places[4] < drill.place("instances delete"), "{:#?}", drill.calls);
    let migration = &drill.calls[drill.place("jobs execute")];
    let address = "--args=migrate,--database-url=postgres://ebbflow@10.0.0.3/ebbflow?sslmode=require";
    assert!(migration.contains(address), "{migration}");
    // The same password for the clone and its migration, and in no argument, where other users of the machine see it.
    let password = drill.flags.split('"').nth(1).unwrap();
    assert!(
        password.len() == 48 && drill.flags.contains(&format!("PGPASSWORD={password}")),
        "{}",
        drill.flags
    );
    assert!(drill.calls.iter().all(|call| !call.contains(password)), "{:#?}", drill.calls);
}

#[test]
fn whatever_fails_no_clone_stays() {
    for fails in ["operations wait", "state", "users set-password", "jobs execute"] {
        let drill = Drill::with(fails);
        assert!(!drill.output.status.success() && !drill.clone_is_left, "{fails}: {:?}", drill.output);
        assert!(!String::from_utf8_lossy(&drill.output.stdout).contains("Restored"), "{fails}");
    }
    let drill = Drill::with("instances clone");
    assert!(!drill.output.status.success(), "{:?}", drill.output);
    assert!(drill.calls.iter().all(|call| !call.contains("instances delete")), "there is nothing to delete");
}

#[test]
fn a_clone_that_cannot_be_deleted_fails_the_drill() {
    for fails in ["instances delete", "instances patch"] {
        let drill = Drill::with(fails);
        let error = String::from_utf8_lossy(&drill.output.stderr).into_owned();
        assert!(drill.output.status.code() == Some(1) && drill.clone_is_left, "{fails}: {:?}", drill.output);
        assert!(
            error.contains("by hand") && error.contains("gcloud sql instances delete ebbflow-drill-"),
            "{error}"
        );
    }
}

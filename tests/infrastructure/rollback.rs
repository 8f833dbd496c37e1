//! Rolling back to an earlier deploy: the real script, with a `gcloud` that records its arguments.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// Lists the services `ebbflow-sweep` and `ebbflow-trigger`, and the tags in the file of their name.
const GCLOUD: &str = r#"#!/usr/bin/env bash
echo "$*" >>"$FAKE/calls"
case "$3" in
    list) [ -e "$FAKE/none" ] || printf 'ebbflow-sweep\nebbflow-trigger\n' ;;
    describe) cat "$FAKE/$4" ;;
    update-traffic) ;;
    *) exit 64 ;;
esac
"#;

/// Rolls back to a tag, where the services have certain tags. Returns the output and the changes by gcloud.
fn roll_back(arguments: &[&str], sweep: &str, trigger: &str, services: bool) -> (Output, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    file("gcloud", GCLOUD);
    fs::set_permissions(folder.path().join("gcloud"), fs::Permissions::from_mode(0o755)).unwrap();
    file("ebbflow-sweep", sweep);
    file("ebbflow-trigger", trigger);
    file("calls", "");
    if !services {
        file("none", "");
    }
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.ci/rollback");
    let output =
        Command::new(script).args(arguments).env("PATH", path).env("FAKE", folder.path()).output().unwrap();
    let calls = fs::read_to_string(folder.path().join("calls")).unwrap();
    let changes = calls.lines().filter(|call| call.contains("update-traffic"));
    (output, changes.map(str::to_owned).collect())
}

#[test]
fn all_traffic_is_moved_to_the_revisions_of_a_tag() {
    let (output, changes) = roll_back(&["us-central1", "1a2b3c4"], "v-0;v-1a2b3c4", "v-1a2b3c4,v-9", true);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let change = |service: &str| {
        format!("run services update-traffic {service} --region=us-central1 --to-tags=v-1a2b3c4=100 --quiet")
    };
    assert_eq!(changes, [change("ebbflow-sweep"), change("ebbflow-trigger")]);
}

#[test]
fn a_tag_that_one_service_lacks_changes_nothing() {
    // A longer tag with the same beginning or end is another one.
    for lacking in ["v-0;v-9", "", "v-1a2b3c45", "xv-1a2b3c4"] {
        let (output, changes) = roll_back(&["us-central1", "1a2b3c4"], "v-1a2b3c4", lacking, true);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains("ebbflow-trigger"), "{lacking}: {error}");
        assert!(error.contains("nothing was changed") && changes.is_empty(), "{changes:?}");
    }
}

#[test]
fn without_services_or_a_tag_the_script_fails() {
    let (output, changes) = roll_back(&["us-central1", "1a2b3c4"], "", "", false);
    assert!(!output.status.success() && changes.is_empty());
    let (output, changes) = roll_back(&["us-central1"], "v-1", "v-1", true);
    assert!(output.status.code() == Some(2) && changes.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("Usage"));
}

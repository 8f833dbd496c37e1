//! Rolling back to an earlier deploy: the real script, with a `gcloud` that records its arguments.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// Lists the services `ebbflow-sweep` and `ebbflow-trigger`, with the tags in the file of their name; and the worker pools in the file
/// `pools`, which all run the same image. There are only images of `1a2b3c4`.
const GCLOUD: &str = r#"#!/usr/bin/env bash
echo "$*" >>"$FAKE/calls"
case "$*" in
    "beta run worker-pools list "*) cat "$FAKE/pools" ;;
    "beta run worker-pools describe "*) echo registry:5000/p/ebbflow/ebbflow-worker:9 ;;
    "beta run worker-pools update "*) ;;
    "artifacts docker images describe registry:5000/p/ebbflow/ebbflow-worker:1a2b3c4") ;;
    "run services list "*) [ -e "$FAKE/none" ] || printf 'ebbflow-sweep\nebbflow-trigger\n' ;;
    "run services describe "*) cat "$FAKE/$4" ;;
    "run services update-traffic "*) ;;
    *) exit 64 ;;
esac
"#;

/// Rolls back to a tag, where the services have certain tags. Returns the output and the changes by gcloud.
fn roll_back(arguments: &[&str], sweep: &str, trigger: &str, services: bool) -> (Output, Vec<String>) {
    roll_back_with(arguments, [sweep, trigger], services, "")
}

/// The same, with worker pools.
fn roll_back_with(
    arguments: &[&str],
    [sweep, trigger]: [&str; 2],
    services: bool,
    pools: &str,
) -> (Output, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    file("gcloud", GCLOUD);
    fs::set_permissions(folder.path().join("gcloud"), fs::Permissions::from_mode(0o755)).unwrap();
    file("ebbflow-sweep", sweep);
    file("ebbflow-trigger", trigger);
    file("calls", "");
    file("pools", pools);
    if !services {
        file("none", "");
    }
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.ci/rollback");
    let output =
        Command::new(script).args(arguments).env("PATH", path).env("FAKE", folder.path()).output().unwrap();
    let calls = fs::read_to_string(folder.path().join("calls")).unwrap();
    let changes = calls.lines().filter(|call| call.contains(" update"));
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

/// Without its image, a pool would stay behind after the services have moved: so nothing moves.
#[test]
fn pools_go_back_to_the_image_of_a_tag_if_it_exists() {
    let roll_back = |tag: &str| {
        let revisions = [format!("v-{tag}"), format!("v-{tag}")];
        let revisions = [revisions[0].as_str(), revisions[1].as_str()];
        roll_back_with(&["us-central1", tag], revisions, true, "ebbflow-worker-gpu")
    };
    let (output, changes) = roll_back("1a2b3c4");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let image = "--image=registry:5000/p/ebbflow/ebbflow-worker:1a2b3c4";
    let change =
        format!("beta run worker-pools update ebbflow-worker-gpu --region=us-central1 {image} --quiet");
    assert_eq!((changes.len(), changes.last()), (3, Some(&change)));
    let (output, changes) = roll_back("5d6e7f8");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && changes.is_empty(), "{changes:?}");
    assert!(error.contains("ebbflow-worker:5d6e7f8") && error.contains("nothing was changed"), "{error}");
}

#[test]
fn without_services_or_a_tag_the_script_fails() {
    let (output, changes) = roll_back(&["us-central1", "1a2b3c4"], "", "", false);
    assert!(!output.status.success() && changes.is_empty());
    let (output, changes) = roll_back(&["us-central1"], "v-1", "v-1", true);
    assert!(output.status.code() == Some(2) && changes.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("Usage"));
}

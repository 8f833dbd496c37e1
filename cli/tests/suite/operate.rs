//! `ebb run`, `ebb bulk` and `ebb audit`.

use serde_json::{Value, json};

use crate::project::Project;

const WAITS: &str = "
name: waits
tasks:
  - {name: nap, type: sleep, config: {duration: 1h}}
  - {name: listen, type: wait_for_signal, depends_on: [nap], config: {signal: go}}
  - {name: leave, type: wait_for_signal, depends_on: [listen], config: {signal: leave}}
";

#[test]
fn a_run_is_steered_from_the_command_line() {
    let project = Project::new().with("waits", WAITS);
    let _dev = project.dev();
    let run = &project.trigger("waits");

    assert_eq!(project.ask(&["run", "pause", run, "--reason", "night"]), format!("run {run} is paused\n"));
    project.assert_fails(&["run", "pause", run], 3, "is already paused");
    assert!(project.ask(&["explain", run]).contains("night"));
    assert_eq!(project.ask(&["run", "resume", run]), format!("run {run} is running\n"));
    let woken = format!("`nap` of run {run} no longer waits; the run is running\n");
    assert_eq!(project.ask(&["run", "wake", run, "nap"]), woken);
    project.assert_fails(&["run", "wake", run, "listen"], 3, "it is waiting for a signal; send it");
    let marked = project.ask_json(&["run", "mark", run, "listen", "succeeded", "--output", r#"{"n": 1}"#]);
    assert_eq!(marked["counts"]["succeeded"], 2);
    project.assert_fails(
        &["run", "mark", run, "leave", "failed", "--output", "1"],
        2,
        "--output requires `succeeded`",
    );
    project.ask(&["signal", run, "leave"]);
    project.ask(&["run", "watch", run]);
    project.assert_fails(&["run", "retry", run], 3, "has no failed tasks to retry");
    project.assert_fails(&["run", "evaluate", run], 3, "there is nothing to re-evaluate");
    assert_eq!(project.ask_json(&["run", "clear", run, "listen"])["state"], "running");
    let shown = project.ask_json(&["run", "show", run]);
    assert_eq!(
        (&shown["tasks"][1]["state"], &shown["tasks"][1]["output"]),
        (&json!("sleeping"), &Value::Null)
    );
    project.ask(&["run", "cancel", run]);
    assert_eq!(project.ask_json(&["run", "retry", run])["state"], "running");
}

#[test]
fn many_runs_are_counted_and_then_acted_on() {
    let project = Project::new().with("waits", WAITS);
    let _dev = project.dev();
    for _ in 0..3 {
        project.ask(&["trigger", "waits"]);
    }
    let filter = ["--workflow", "waits", "--state", "running"];
    let dry = project.ask_json(&[&["bulk", "cancel", "--dry-run"], &filter[..]].concat());
    assert_eq!((&dry["count"], dry["sample"].as_array().unwrap().len()), (&json!(3), 3));
    let report = project.ask(&[&["bulk", "cancel"], &filter[..]].concat());
    assert_eq!(report, "cancel: 3 runs, 3 changed, 0 with nothing to do, 0 failed\n");
    let report = project.ask_json(&["bulk", "retry", "--state", "cancelled"]);
    assert_eq!((&report["count"], &report["applied"]), (&json!(3), &json!(3)));
    project.assert_fails(&["bulk", "retry"], 2, "--workflow");
    project.assert_fails(&["bulk", "stop", "--workflow", "waits"], 2, "evaluate");
}

#[test]
fn the_audit_log_records_who_changed_what_from_where() {
    let project = Project::new().with("waits", WAITS);
    let _dev = project.dev();
    let run = project.trigger("waits");
    project.ask(&["run", "cancel", &run]);
    project.assert_fails(&["run", "pause", &run], 3, "cancelled");
    let entries = project.ask_json(&["audit", "--text", &run]);
    let entry = |index: usize| (&entries["items"][index]["action"], &entries["items"][index]["status"]);
    assert_eq!(entry(0), (&json!("operate_post_pause"), &json!(409)));
    assert_eq!(entry(1), (&json!("runs_post_cancel"), &json!(200)));
    assert_eq!(entries["items"][1]["origin"], "127.0.0.1");
    assert_eq!(entries["items"][1]["after"]["state"], "cancelled");
    assert!(project.ask(&["audit"]).contains("runs_post_cancel"));
    assert_eq!(project.ask(&["audit", "--text", &run, "--export"]).lines().count(), 2);
}

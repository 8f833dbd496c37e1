//! What people do to runs with `ebb run` and `ebb bulk`.

use serde_json::{Value, json};

use crate::ebb::{Place, said};

const WAITS: &str = "
name: waits
tasks:
  - {name: nap, type: sleep, config: {duration: 1h}}
  - {name: listen, type: wait_for_signal, depends_on: [nap], config: {signal: go}}
  - {name: leave, type: wait_for_signal, depends_on: [listen], config: {signal: leave}}
";

/// What a command that succeeds prints.
fn ask(place: &Place, arguments: &[&str]) -> String {
    let output = place.run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn ask_json(place: &Place, arguments: &[&str]) -> Value {
    serde_json::from_str(&ask(place, &[arguments, &["--json"]].concat())).unwrap()
}

fn refused(place: &Place, arguments: &[&str], code: i32, words: &str) {
    let output = place.run(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
    assert!(said(&output).contains(words), "`{words}` is not in: {}", said(&output));
}

#[test]
fn a_run_is_steered_from_the_command_line() {
    let place = Place::new().with("waits", WAITS);
    let _dev = place.dev();
    let started = ask_json(&place, &["trigger", "waits"]);
    let run = started["id"].as_str().unwrap();

    assert_eq!(ask(&place, &["run", "pause", run, "--reason", "night"]), format!("run {run} is paused\n"));
    refused(&place, &["run", "pause", run], 3, "is already paused");
    assert!(ask(&place, &["explain", run]).contains("night"));
    assert_eq!(ask(&place, &["run", "resume", run]), format!("run {run} is running\n"));
    let woken = format!("`nap` of run {run} no longer waits; the run is running\n");
    assert_eq!(ask(&place, &["run", "wake", run, "nap"]), woken);
    refused(&place, &["run", "wake", run, "listen"], 3, "it is waiting for a signal; send it");
    let marked = ask_json(&place, &["run", "mark", run, "listen", "succeeded", "--output", r#"{"n": 1}"#]);
    assert_eq!(marked["counts"]["succeeded"], 2);
    refused(
        &place,
        &["run", "mark", run, "leave", "failed", "--output", "1"],
        2,
        "--output requires `succeeded`",
    );
    ask(&place, &["signal", run, "leave"]);
    ask(&place, &["run", "watch", run]);
    refused(&place, &["run", "retry", run], 3, "has no failed tasks to retry");
    refused(&place, &["run", "evaluate", run], 3, "there is nothing to re-evaluate");
    assert_eq!(ask_json(&place, &["run", "clear", run, "listen"])["state"], "running");
    let shown = ask_json(&place, &["run", "show", run]);
    assert_eq!(
        (&shown["tasks"][1]["state"], &shown["tasks"][1]["output"]),
        (&json!("sleeping"), &Value::Null)
    );
    ask(&place, &["run", "cancel", run]);
    assert_eq!(ask_json(&place, &["run", "retry", run])["state"], "running");
}

#[test]
fn many_runs_are_counted_and_then_acted_on() {
    let place = Place::new().with("waits", WAITS);
    let _dev = place.dev();
    for _ in 0..3 {
        ask(&place, &["trigger", "waits"]);
    }
    let filter = ["--workflow", "waits", "--state", "running"];
    let dry = ask_json(&place, &[&["bulk", "cancel", "--dry-run"], &filter[..]].concat());
    assert_eq!((&dry["count"], dry["sample"].as_array().unwrap().len()), (&json!(3), 3));
    let told = ask(&place, &[&["bulk", "cancel"], &filter[..]].concat());
    assert_eq!(told, "cancel: 3 runs, 3 changed, 0 with nothing to do, 0 failed\n");
    let told = ask_json(&place, &["bulk", "retry", "--state", "cancelled"]);
    assert_eq!((&told["count"], &told["applied"]), (&json!(3), &json!(3)));
    refused(&place, &["bulk", "retry"], 2, "--workflow");
    refused(&place, &["bulk", "stop", "--workflow", "waits"], 2, "evaluate");
}

#[test]
fn the_audit_log_tells_who_changed_what_from_where() {
    let place = Place::new().with("waits", WAITS);
    let _dev = place.dev();
    let run = ask_json(&place, &["trigger", "waits"])["id"].as_str().unwrap().to_owned();
    ask(&place, &["run", "cancel", &run]);
    refused(&place, &["run", "pause", &run], 3, "cancelled");
    let deeds = ask_json(&place, &["audit", "--text", &run]);
    let told = |place: usize| (&deeds["items"][place]["action"], &deeds["items"][place]["status"]);
    assert_eq!(told(0), (&json!("operate_post_pause"), &json!(409)));
    assert_eq!(told(1), (&json!("runs_post_cancel"), &json!(200)));
    assert_eq!(deeds["items"][1]["origin"], "127.0.0.1");
    assert_eq!(deeds["items"][1]["after"]["state"], "cancelled");
    assert!(ask(&place, &["audit"]).contains("runs_post_cancel"));
    assert_eq!(ask(&place, &["audit", "--text", &run, "--export"]).lines().count(), 2);
}

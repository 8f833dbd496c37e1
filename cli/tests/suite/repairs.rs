//! `ebb dead-letters`, `ebb timers` and `ebb doctor`.

use serde_json::json;
use testkit::eventually_blocking;

use crate::project::{Project, printed};

const NAPS: &str = "
name: naps
tasks: [{name: nap, type: sleep, config: {duration: 1h}}]
";

/// Requests a run of a workflow that does not exist.
const ASKS: &str = "
name: asks
inputs: {other: {type: string, default: nobody-knows-it}}
tasks: [{name: a, type: workflow, config: {workflow: '{{ inputs.other }}', wait: false}}]
";

/// Waits for a dead letter other than a known one. Returns its id.
fn next_dead_letter(project: &Project, known: &str) -> String {
    eventually_blocking("a dead letter", || {
        let listed = project.ask_json(&["dead-letters"]);
        let mut ids = listed["items"].as_array().unwrap().iter().map(|letter| letter["id"].as_str().unwrap());
        ids.find(|id| *id != known).map(str::to_owned)
    })
}

#[test]
fn timers_are_listed_with_due_time_and_kind() {
    let project = Project::new().with("naps", NAPS);
    let _dev = project.dev();
    assert_eq!(project.ask(&["timers"]), "no timers\n");
    let run = project.trigger("naps");
    let table = project.ask(&["timers", "--run", &run]);
    let (head, row) = table.split_once('\n').unwrap();
    assert!(head.starts_with("DUE") && row.contains(&run) && row.contains("nap"), "{table}");
    let listed = project.ask_json(&["timers", "--workflow", "naps"]);
    let timer = &listed["items"][0];
    assert_eq!(
        (&timer["run"], &timer["kind"], &timer["overdue"]),
        (&json!(run), &json!("sleep"), &json!(false))
    );
    assert_eq!(project.ask(&["timers", "--workflow", "other"]), "no timers\n");
    project.ask(&["run", "wake", &run, "nap"]);
    assert_eq!(project.ask(&["timers"]), "no timers\n");
}

#[test]
fn dead_letters_are_listed_shown_replayed_and_discarded() {
    let project = Project::new().with("asks", ASKS);
    let _dev = project.dev();
    assert_eq!(project.ask(&["dead-letters"]), "no dead letters\n");
    project.ask(&["trigger", "asks"]);
    let id = next_dead_letter(&project, "");
    let table = project.ask(&["dead-letters"]);
    assert!(table.starts_with("ID") && table.contains(&id), "{table}");
    let shown = project.ask(&["dead-letters", "show", &id]);
    assert!(shown.contains("dev.ebbflow.run.requested.v1") && shown.contains("nobody-knows-it"), "{shown}");

    assert_eq!(project.ask(&["dead-letters", "replay", &id]), format!("replayed dead letter {id}\n"));
    let again = next_dead_letter(&project, &id);
    let dry = project.ask(&["dead-letters", "discard", "--all", "--text", "nobody-knows-it", "--dry-run"]);
    assert_eq!(dry, "would have discarded 1 dead letters\n");
    assert_eq!(next_dead_letter(&project, ""), again);
    assert_eq!(project.ask(&["dead-letters", "discard", &again]), format!("discarded dead letter {again}\n"));
    assert_eq!(project.ask(&["dead-letters"]), "no dead letters\n");
    let gone = project.run(&["dead-letters", "show", &again]);
    assert!(!gone.status.success() && printed(&gone).contains(&again), "{}", printed(&gone));
}

#[test]
fn the_doctor_reports_problems_and_how_to_fix_them() {
    let project = Project::new().with("asks", ASKS);
    let no_server = project.run(&["doctor"]);
    assert!(!no_server.status.success(), "{}", printed(&no_server));
    let _dev = project.dev();
    let healthy = project.ask(&["doctor"]);
    assert!(healthy.lines().all(|line| line.starts_with('✓')) && healthy.contains("migrations"), "{healthy}");
    assert_eq!(project.ask_json(&["doctor", "--repair"])["repaired"], json!([]));

    project.ask(&["trigger", "asks"]);
    let id = next_dead_letter(&project, "");
    let unhealthy = project.run(&["doctor", "--repair"]);
    let report = printed(&unhealthy);
    assert_eq!(unhealthy.status.code(), Some(1), "{report}");
    assert!(report.contains("✗ dead_letters") && report.contains("ebb dead-letters"), "{report}");
    project.ask(&["dead-letters", "discard", &id]);
    project.ask(&["doctor"]);
}

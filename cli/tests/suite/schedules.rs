//! `ebb schedule` and `ebb backfill`.

use serde_json::json;
use testkit::eventually_blocking;

use crate::project::Project;

const OFTEN: &str = "name: often\nschedule: {every: 1s}\ntasks: [{name: a, type: noop}]\n";
const DAILY: &str =
    "name: daily\nschedule: {cron: '@daily', timezone: Europe/Berlin}\ntasks: [{name: a, type: noop}]\n";

#[test]
fn the_instants_of_a_pattern_are_computed_without_a_server() {
    let project = Project::new();
    let gap = [
        "schedule",
        "next",
        "--cron",
        "30 2 * * *",
        "--timezone",
        "America/New_York",
        "--from",
        "2026-03-07T12:00",
        "--count",
        "2",
    ];
    assert_eq!(project.ask_json(&gap), json!(["2026-03-08T07:30:00Z", "2026-03-09T06:30:00Z"]));
    assert_eq!(project.ask(&gap).lines().next().unwrap(), "2026-03-08 07:30:00Z  2026-03-08 03:30:00 EDT");
    for (wrong, why) in [
        (&["--cron", "61 * * * *"][..], "`61` is not a valid minute"),
        (&["--cron", "* * * * *", "--timezone", "Berlin"], "did you mean `Europe/Berlin`?"),
        (&["--cron", "* * * * *", "--from", "soon"], "invalid --from `soon`"),
        (&[], "required"),
    ] {
        project.assert_fails(&[&["schedule", "next"], wrong].concat(), 2, why);
    }
}

#[test]
fn schedules_start_runs_and_backfills_make_up_for_past_dates() {
    let project = Project::new().with("often", OFTEN).with("daily", DAILY);
    let _dev = project.dev();
    let listed = project.ask_json(&["schedule", "list"]);
    assert_eq!(
        (&listed["items"][0]["workflow"], &listed["items"][1]["every_seconds"]),
        (&json!("daily"), &json!(1))
    );
    assert_eq!(project.ask_json(&["schedule", "next", "daily", "--count", "3"]).as_array().unwrap().len(), 3);
    let plan =
        project.ask_json(&["backfill", "daily", "--from", "2026-01-01", "--to", "2026-01-05", "--dry-run"]);
    assert_eq!(plan["to_run"], 5);
    let begun = project.ask_json(&["backfill", "daily", "--from", "2026-01-01", "--to", "2026-01-05"]);
    let id = begun["id"].as_str().unwrap();
    let shown = eventually_blocking("the backfill ends", || {
        Some(project.ask_json(&["backfill", "show", id])).filter(|shown| shown["state"] != "running")
    });
    assert_eq!((&shown["state"], &shown["progress"]), (&json!("finished"), &json!({"succeeded": 5})));
    assert_eq!(project.ask_json(&["backfill", "list"])["items"][0]["id"], id);
    let often = || project.ask_json(&["runs", "--workflow", "often"])["items"].as_array().unwrap().len();
    eventually_blocking("three scheduled runs", || (often() >= 3).then_some(()));
    let paused = project.ask_json(&["schedule", "pause", "often", "--reason", "enough"]);
    assert_eq!(paused["items"][0]["paused"], true);
    let missed = || project.ask_json(&["schedule", "list", "often"])["items"][0]["missed"]["count"].clone();
    eventually_blocking("two missed instants", || missed().as_u64().filter(|count| *count >= 2));
    let preview = project.ask(&["schedule", "resume", "often", "--dry-run"]);
    assert!(preview.starts_with("often/default missed "), "{preview}");
    for choice in [
        "--missed all     ",
        "--missed latest  1 run, of ",
        "--missed none    no run",
        "default (its `catchup`): none",
    ] {
        assert!(preview.contains(choice), "{choice} is not in {preview}");
    }
    assert_eq!(
        project.ask_json(&["schedule", "list", "often"])["items"][0]["paused"],
        true,
        "a dry run changes nothing"
    );
    let preview = project.ask(&["schedule", "resume", "daily", "--dry-run"]);
    assert!(preview.contains("ebb backfill daily --from"), "{preview}");
    let resumed = project.ask_json(&["schedule", "resume", "often", "--missed", "none"]);
    assert_eq!(resumed["items"][0]["paused"], false);
}

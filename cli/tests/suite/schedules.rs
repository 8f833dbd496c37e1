//! `ebb schedule` and `ebb backfill`.

use serde_json::{Value, json};

use crate::ebb::{Place, said};

const OFTEN: &str = "name: often\nschedule: {every: 1s}\ntasks: [{name: a, type: noop}]\n";
const DAILY: &str =
    "name: daily\nschedule: {cron: '@daily', timezone: Europe/Berlin}\ntasks: [{name: a, type: noop}]\n";

fn ask_json(place: &Place, arguments: &[&str]) -> Value {
    let output = place.run(&[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_instants_of_a_pattern_are_told_without_a_server() {
    let place = Place::new();
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
    assert_eq!(ask_json(&place, &gap), json!(["2026-03-08T07:30:00Z", "2026-03-09T06:30:00Z"]));
    let words = place.run(&gap);
    let told = String::from_utf8(words.stdout).unwrap();
    assert_eq!(told.lines().next().unwrap(), "2026-03-08 07:30:00Z  2026-03-08 03:30:00 EDT");
    for (wrong, why) in [
        (&["--cron", "61 * * * *"][..], "`61` is no minute"),
        (&["--cron", "* * * * *", "--timezone", "Berlin"], "did you mean `Europe/Berlin`?"),
        (&["--cron", "* * * * *", "--from", "soon"], "invalid --from `soon`"),
        (&[], "required"),
    ] {
        let output = place.run(&[&["schedule", "next"], wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", said(&output));
        assert!(said(&output).contains(why), "{wrong:?}: {}", said(&output));
    }
}

#[test]
fn what_runs_by_itself_does_and_past_dates_are_made_up_for() {
    let place = Place::new().with("often", OFTEN).with("daily", DAILY);
    let dev = place.dev();
    let listed = ask_json(&place, &["schedule", "list"]);
    assert_eq!(
        (&listed["items"][0]["workflow"], &listed["items"][1]["every_seconds"]),
        (&json!("daily"), &json!(1))
    );
    assert_eq!(ask_json(&place, &["schedule", "next", "daily", "--count", "3"]).as_array().unwrap().len(), 3);
    let plan =
        ask_json(&place, &["backfill", "daily", "--from", "2026-01-01", "--to", "2026-01-05", "--dry-run"]);
    assert_eq!(plan["to_run"], 5);
    let begun = ask_json(&place, &["backfill", "daily", "--from", "2026-01-01", "--to", "2026-01-05"]);
    let id = begun["id"].as_str().unwrap();
    let mut shown = ask_json(&place, &["backfill", "show", id]);
    while shown["state"] == "running" {
        shown = ask_json(&place, &["backfill", "show", id]);
    }
    assert_eq!((&shown["state"], &shown["progress"]), (&json!("finished"), &json!({"succeeded": 5})));
    assert_eq!(ask_json(&place, &["backfill", "list"])["items"][0]["id"], id);
    let often = || ask_json(&place, &["runs", "--workflow", "often"])["items"].as_array().unwrap().len();
    while often() < 3 {}
    let paused = ask_json(&place, &["schedule", "pause", "often", "--reason", "enough"]);
    assert_eq!(paused["items"][0]["paused"], true);
    let missed = || ask_json(&place, &["schedule", "list", "often"])["items"][0]["missed"]["count"].clone();
    while missed().as_u64().is_none_or(|count| count < 2) {}
    let preview = place.run(&["schedule", "resume", "often", "--dry-run"]);
    let told = String::from_utf8(preview.stdout).unwrap();
    assert!(told.starts_with("often/default missed "), "{told}");
    for choice in [
        "--missed all     ",
        "--missed latest  1 run, of ",
        "--missed none    no run",
        "default (its `catchup`): none",
    ] {
        assert!(told.contains(choice), "{choice} is not in {told}");
    }
    assert_eq!(
        ask_json(&place, &["schedule", "list", "often"])["items"][0]["paused"],
        true,
        "nothing was done"
    );
    let told = String::from_utf8(place.run(&["schedule", "resume", "daily", "--dry-run"]).stdout).unwrap();
    assert!(told.contains("ebb backfill daily --from"), "{told}");
    let resumed = ask_json(&place, &["schedule", "resume", "often", "--missed", "none"]);
    assert_eq!(resumed["items"][0]["paused"], false);
    drop(dev);
}

//! What people see to: `ebb dead-letters`, `ebb timers` and `ebb doctor`.

use serde_json::{Value, json};

use crate::ebb::{Place, said};

const NAPS: &str = "
name: naps
tasks: [{name: nap, type: sleep, config: {duration: 1h}}]
";

/// Asks for a run of a workflow that is not there.
const ASKS: &str = "
name: asks
inputs: {other: {type: string, default: nobody-knows-it}}
tasks: [{name: a, type: workflow, config: {workflow: '{{ inputs.other }}', wait: false}}]
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

/// The ids of the dead letters, once there is one that is not this one.
fn letter_other_than(place: &Place, known: &str) -> String {
    loop {
        let listed = ask_json(place, &["dead-letters"]);
        let mut ids = listed["items"].as_array().unwrap().iter().map(|letter| letter["id"].as_str().unwrap());
        if let Some(id) = ids.find(|id| *id != known) {
            return id.to_owned();
        }
    }
}

#[test]
fn timers_are_listed_with_when_and_why() {
    let place = Place::new().with("naps", NAPS);
    let _dev = place.dev();
    assert_eq!(ask(&place, &["timers"]), "no timers\n");
    let run = ask_json(&place, &["trigger", "naps"])["id"].as_str().unwrap().to_owned();
    let table = ask(&place, &["timers", "--run", &run]);
    let (head, row) = table.split_once('\n').unwrap();
    assert!(head.starts_with("DUE") && row.contains(&run) && row.contains("nap"), "{table}");
    let listed = ask_json(&place, &["timers", "--workflow", "naps"]);
    let timer = &listed["items"][0];
    assert_eq!(
        (&timer["run"], &timer["kind"], &timer["overdue"]),
        (&json!(run), &json!("sleep"), &json!(false))
    );
    assert_eq!(ask(&place, &["timers", "--workflow", "other"]), "no timers\n");
    ask(&place, &["run", "wake", &run, "nap"]);
    assert_eq!(ask(&place, &["timers"]), "no timers\n");
}

#[test]
fn dead_letters_are_listed_shown_replayed_and_discarded() {
    let place = Place::new().with("asks", ASKS);
    let _dev = place.dev();
    assert_eq!(ask(&place, &["dead-letters"]), "no dead letters\n");
    ask(&place, &["trigger", "asks"]);
    let id = letter_other_than(&place, "");
    let table = ask(&place, &["dead-letters"]);
    assert!(table.starts_with("ID") && table.contains(&id), "{table}");
    let shown = ask(&place, &["dead-letters", "show", &id]);
    assert!(shown.contains("dev.ebbflow.run.requested.v1") && shown.contains("nobody-knows-it"), "{shown}");

    assert_eq!(ask(&place, &["dead-letters", "replay", &id]), format!("replayed dead letter {id}\n"));
    let again = letter_other_than(&place, &id);
    let dry = ask(&place, &["dead-letters", "discard", "--all", "--text", "nobody-knows-it", "--dry-run"]);
    assert_eq!(dry, "would have discarded 1 dead letters\n");
    assert_eq!(letter_other_than(&place, ""), again);
    assert_eq!(ask(&place, &["dead-letters", "discard", &again]), format!("discarded dead letter {again}\n"));
    assert_eq!(ask(&place, &["dead-letters"]), "no dead letters\n");
    let gone = place.run(&["dead-letters", "show", &again]);
    assert!(!gone.status.success() && said(&gone).contains(&again), "{}", said(&gone));
}

#[test]
fn the_doctor_says_what_is_wrong_and_what_to_do() {
    let place = Place::new().with("asks", ASKS);
    let nobody = place.run(&["doctor"]);
    assert!(!nobody.status.success(), "{}", said(&nobody));
    let _dev = place.dev();
    let well = ask(&place, &["doctor"]);
    assert!(well.lines().all(|line| line.starts_with('✓')) && well.contains("migrations"), "{well}");
    assert_eq!(ask_json(&place, &["doctor", "--repair"])["repaired"], json!([]));

    ask(&place, &["trigger", "asks"]);
    let id = letter_other_than(&place, "");
    let ill = place.run(&["doctor", "--repair"]);
    let told = said(&ill);
    assert_eq!(ill.status.code(), Some(1), "{told}");
    assert!(told.contains("✗ dead_letters") && told.contains("ebb dead-letters"), "{told}");
    ask(&place, &["dead-letters", "discard", &id]);
    ask(&place, &["doctor"]);
}

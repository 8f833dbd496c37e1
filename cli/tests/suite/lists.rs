//! `ebb runs`, `workflows`, `tenants` and `queues`: finding things, and saying what there shall be of them.

use serde_json::{Value, json};

use crate::ebb::{Place, said};

const GREET: &str = "
name: greet
tags: [daily]
tasks: [{name: a, type: echo, config: {value: 1}}]
";

fn ask(place: &Place, arguments: &[&str]) -> Value {
    let output = place.run(&[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn refused(place: &Place, arguments: &[&str], code: i32, words: &str) {
    let output = place.run(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
    assert!(said(&output).contains(words), "`{words}` is not in: {}", said(&output));
}

#[test]
fn things_are_found_and_set_from_the_command_line() {
    let place =
        Place::new().with("greet", GREET).with("other", "name: other\ntasks: [{name: a, type: noop}]");
    let _dev = place.dev();
    let green = ask(&place, &["trigger", "greet", "--label", "team=green"])["id"].clone();
    let red = ask(&place, &["trigger", "greet", "--label", "team=red"])["id"].clone();
    for run in [&green, &red] {
        assert!(place.run(&["run", "watch", run.as_str().unwrap()]).status.success());
    }
    let ids = |arguments: &[&str]| -> Vec<Value> {
        let found = ask(&place, &[&["runs"], arguments].concat());
        found["items"].as_array().unwrap().iter().map(|run| run["id"].clone()).collect()
    };
    assert_eq!(ids(&["--label", "team=green"]), std::slice::from_ref(&green));
    assert_eq!(ids(&["--text", "RED", "--workflow", "greet"]), std::slice::from_ref(&red));
    assert_eq!(ids(&["--sort", "created_at"]), [green, red]);
    assert_eq!(ids(&["--sort=-finished_at", "--state", "succeeded"]).len(), 2);
    assert_eq!(ids(&["--created-before", "2020-01-01"]), [json!(null); 0]);
    refused(&place, &["runs", "--sort", "colour"], 2, "-finished_at");

    let tagged = ask(&place, &["workflows", "list", "--tag", "daily"]);
    assert_eq!(
        (tagged["items"].as_array().unwrap().len(), &tagged["items"][0]["name"]),
        (1, &json!("greet"))
    );
    assert!(ask(&place, &["workflows", "pause", "greet", "--reason", "moving"])["pause"].is_object());
    refused(&place, &["trigger", "greet"], 3, "is paused");
    assert_eq!(ask(&place, &["workflows", "resume", "greet"])["pause"], json!(null));
    ask(&place, &["trigger", "greet"]);

    let set = ask(&place, &["tenants", "set", "acme", "--weight", "3", "--max-active-tasks", "20"]);
    assert_eq!((&set["weight"], &set["max_active_tasks"]), (&json!(3), &json!(20)));
    let set = ask(&place, &["tenants", "set", "acme", "--max-active-tasks", "none"]);
    assert_eq!((&set["weight"], &set["max_active_tasks"]), (&json!(3), &json!(null)));
    assert_eq!(ask(&place, &["tenants"])["items"].as_array().unwrap().len(), 2);
    refused(&place, &["tenants", "show", "nobody"], 3, "there is no tenant `nobody`");
    assert_eq!(ask(&place, &["queues"])["items"][0]["name"], "light");
}

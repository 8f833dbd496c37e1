//! A workflow that changes: planned, applied, rolled back, archived, while runs are under way.

use std::fs;

use serde_json::{Value, json};

use crate::ebb::{Place, said};

const GREET: &str = "
name: greet
tasks:
  - {name: say, type: echo, config: {text: hello}}
  - {name: wait, type: sleep, depends_on: [say], config: {duration: 1h}}
";

const POLITE: &str = "
name: greet
tasks:
  - {name: say, type: echo, config: {text: good day}}
  - {name: bow, type: noop, depends_on: [say]}
";

const OTHER: &str = "name: other\ntasks: [{name: only, type: noop}]\n";

/// Writes a workflow into a folder that the `ebb dev` of the place does not watch.
fn edit(place: &Place, name: &str, text: &str) {
    let graphs = place.path().join("next/graphs");
    fs::create_dir_all(&graphs).unwrap();
    fs::write(graphs.join(format!("{name}.yaml")), text).unwrap();
}

/// What a command that succeeds prints.
fn ask(place: &Place, arguments: &[&str]) -> String {
    let output = place.run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    said(&output)
}

fn ask_json(place: &Place, arguments: &[&str]) -> Value {
    serde_json::from_str(&ask(place, &[arguments, &["--json"]].concat())).unwrap()
}

#[test]
fn a_change_is_planned_applied_and_rolled_back_by_number() {
    let place = Place::new().with("greet", GREET).with("left-alone", &OTHER.replace("other", "left-alone"));
    let _dev = place.dev();
    let waiting = ask_json(&place, &["trigger", "greet"]);

    edit(&place, "greet", POLITE);
    edit(&place, "other", OTHER);
    let plan = ask(&place, &["plan", "next"]);
    for line in [
        "~ greet v1 → v2\n",
        "    + task bow\n",
        "    - task wait\n",
        "        ~ config.text: \"hello\" → \"good day\"\n",
        "    + edge say → bow\n",
        "    = 1 unfinished run keeps v1\n",
        "+ other v1: new, 1 task\n",
        "? only on the server, left alone: left-alone\n",
        "apply with `ebb apply next`\n",
    ] {
        assert!(plan.contains(line), "`{line}` is missing in:\n{plan}");
    }
    assert_eq!(ask_json(&place, &["versions", "greet"])["items"].as_array().unwrap().len(), 1, "only a plan");

    ask(&place, &["apply", "next"]);
    assert!(ask(&place, &["plan", "next"]).contains("= unchanged: greet, other\n"));
    assert_eq!(ask_json(&place, &["trigger", "greet", "--watch"])["version"], 2);

    ask(&place, &["rollback", "greet", "v1"]);
    let versions = ask_json(&place, &["versions", "greet"]);
    let active: Vec<&Value> = versions["items"].as_array().unwrap().iter().map(|it| &it["active"]).collect();
    assert_eq!(active, [&json!(false), &json!(true)]);
    assert_eq!(ask_json(&place, &["trigger", "greet"])["version"], 1);
    assert!(ask(&place, &["plan", "next"]).contains("~ greet v1 → v2\n"));

    let id = waiting["id"].as_str().unwrap();
    let shown = ask_json(&place, &["run", "show", id]);
    assert_eq!((&shown["version"], &shown["tasks"][1]["name"]), (&json!(1), &json!("wait")));
}

#[test]
fn an_archived_workflow_comes_back_with_the_folder() {
    let place = Place::new().with("greet", GREET);
    let _dev = place.dev();
    edit(&place, "greet", GREET);
    ask(&place, &["archive", "greet"]);
    let refused = place.run(&["trigger", "greet"]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(said(&refused).contains("archived"), "{}", said(&refused));
    assert!(ask(&place, &["plan", "next"]).contains("+ greet v1: archived, would be active again\n"));
    ask(&place, &["apply", "next"]);
    ask(&place, &["trigger", "greet"]);
}

#[test]
fn what_the_folder_does_not_have_is_archived_only_if_that_is_asked_for() {
    let place = Place::new().with("greet", GREET).with("old", &OTHER.replace("other", "old"));
    let _dev = place.dev();
    edit(&place, "greet", GREET);
    ask(&place, &["apply", "next"]);
    assert!(ask(&place, &["plan", "next"]).contains("? only on the server, left alone: old\n"));
    let plan = ask(&place, &["plan", "next", "--prune"]);
    assert!(
        plan.contains("- archive old\n") && plan.contains("apply with `ebb apply next --prune`"),
        "{plan}"
    );
    assert!(ask(&place, &["apply", "next", "--prune"]).contains("archived   old\n"));
    assert!(ask(&place, &["plan", "next", "--prune"]).contains("nothing to apply"));
    assert!(ask(&place, &["versions", "old"]).contains("archived"), "its history stays");
}

#[test]
fn names_and_numbers_that_do_not_exist_are_told_with_those_that_do() {
    let place = Place::new().with("greet", GREET);
    let _dev = place.dev();
    for (arguments, expected) in [
        (&["versions", "gret"][..], "there is no workflow `gret` (did you mean `greet`?)"),
        (&["archive", "gret"], "there is no workflow `gret` (did you mean `greet`?)"),
        (&["rollback", "gret", "1"], "there is no workflow `gret` (did you mean `greet`?)"),
        (&["rollback", "greet", "7"], "workflow `greet` has no version 7; it has only version 1"),
    ] {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(3), "{arguments:?}");
        assert!(said(&output).contains(expected), "{arguments:?}: {}", said(&output));
    }
}

#[test]
fn a_folder_with_a_problem_has_no_plan() {
    let place = Place::new();
    edit(&place, "bad", "name: bad\ntasks: [{name: a, type: nop}]\n");
    let output = place.run(&["plan", "next"]);
    assert_eq!(output.status.code(), Some(1));
    let told = said(&output);
    assert!(told.contains("bad.yaml:2") && told.contains("would register nothing"), "{told}");
    let json = place.run(&["plan", "next", "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["valid"], false);
}

//! `ebb plan`, `apply`, `rollback`, `archive` and `versions`, while runs are active.

use serde_json::{Value, json};

use crate::project::{Project, printed};

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

/// Writes a workflow into a folder that `ebb dev` does not watch.
fn edit(project: &Project, name: &str, text: &str) {
    project.write(&format!("next/graphs/{name}.yaml"), text);
}

#[test]
fn a_change_is_planned_applied_and_rolled_back_by_number() {
    let project =
        Project::new().with("greet", GREET).with("left-alone", &OTHER.replace("other", "left-alone"));
    let _dev = project.dev();
    let waiting = project.ask_json(&["trigger", "greet"]);

    edit(&project, "greet", POLITE);
    edit(&project, "other", OTHER);
    let plan = project.ask(&["plan", "next"]);
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
    assert_eq!(
        project.ask_json(&["versions", "greet"])["items"].as_array().unwrap().len(),
        1,
        "a plan changes nothing"
    );

    project.ask(&["apply", "next"]);
    assert!(project.ask(&["plan", "next"]).contains("= unchanged: greet, other\n"));
    assert_eq!(project.ask_json(&["trigger", "greet", "--watch"])["version"], 2);

    project.ask(&["rollback", "greet", "v1"]);
    let versions = project.ask_json(&["versions", "greet"]);
    let active: Vec<&Value> = versions["items"].as_array().unwrap().iter().map(|it| &it["active"]).collect();
    assert_eq!(active, [&json!(false), &json!(true)]);
    assert_eq!(project.ask_json(&["trigger", "greet"])["version"], 1);
    assert!(project.ask(&["plan", "next"]).contains("~ greet v1 → v2\n"));

    let id = waiting["id"].as_str().unwrap();
    let shown = project.ask_json(&["run", "show", id]);
    assert_eq!((&shown["version"], &shown["tasks"][1]["name"]), (&json!(1), &json!("wait")));
}

#[test]
fn applying_a_folder_restores_an_archived_workflow() {
    let project = Project::new().with("greet", GREET);
    let _dev = project.dev();
    edit(&project, "greet", GREET);
    project.ask(&["archive", "greet"]);
    project.assert_fails(&["trigger", "greet"], 3, "archived");
    assert!(project.ask(&["plan", "next"]).contains("+ greet v1: archived, would be active again\n"));
    project.ask(&["apply", "next"]);
    project.ask(&["trigger", "greet"]);
}

#[test]
fn workflows_missing_in_the_folder_are_archived_only_with_prune() {
    let project = Project::new().with("greet", GREET).with("old", &OTHER.replace("other", "old"));
    let _dev = project.dev();
    edit(&project, "greet", GREET);
    project.ask(&["apply", "next"]);
    assert!(project.ask(&["plan", "next"]).contains("? only on the server, left alone: old\n"));
    let plan = project.ask(&["plan", "next", "--prune"]);
    assert!(
        plan.contains("- archive old\n") && plan.contains("apply with `ebb apply next --prune`"),
        "{plan}"
    );
    assert!(project.ask(&["apply", "next", "--prune"]).contains("archived   old\n"));
    assert!(project.ask(&["plan", "next", "--prune"]).contains("nothing to apply"));
    assert!(project.ask(&["versions", "old"]).contains("archived"), "its history is kept");
}

#[test]
fn unknown_names_and_versions_are_reported_with_suggestions() {
    let project = Project::new().with("greet", GREET);
    let _dev = project.dev();
    for (arguments, expected) in [
        (&["versions", "gret"][..], "there is no workflow `gret` (did you mean `greet`?)"),
        (&["archive", "gret"], "there is no workflow `gret` (did you mean `greet`?)"),
        (&["rollback", "gret", "1"], "there is no workflow `gret` (did you mean `greet`?)"),
        (&["rollback", "greet", "7"], "workflow `greet` has no version 7; it has only version 1"),
    ] {
        project.assert_fails(arguments, 3, expected);
    }
}

#[test]
fn a_folder_with_a_problem_has_no_plan() {
    let project = Project::new();
    edit(&project, "bad", "name: bad\ntasks: [{name: a, type: nop}]\n");
    let output = project.run(&["plan", "next"]);
    assert_eq!(output.status.code(), Some(1));
    let error = printed(&output);
    assert!(error.contains("bad.yaml:2") && error.contains("would register nothing"), "{error}");
    let json = project.run(&["plan", "next", "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["valid"], false);
}

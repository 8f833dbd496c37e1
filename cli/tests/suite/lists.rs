//! `ebb runs`, `workflows`, `tenants` and `queues`: finding things and changing their limits.

use serde_json::{Value, json};

use crate::project::Project;

const GREET: &str = "
name: greet
tags: [daily]
tasks: [{name: a, type: echo, config: {value: 1}}]
";

#[test]
fn runs_workflows_tenants_and_queues_are_listed_and_changed() {
    let project =
        Project::new().with("greet", GREET).with("other", "name: other\ntasks: [{name: a, type: noop}]");
    let _dev = project.dev();
    let green = project.ask_json(&["trigger", "greet", "--label", "team=green"])["id"].clone();
    let red = project.ask_json(&["trigger", "greet", "--label", "team=red"])["id"].clone();
    for run in [&green, &red] {
        assert!(project.run(&["run", "watch", run.as_str().unwrap()]).status.success());
    }
    let ids = |arguments: &[&str]| -> Vec<Value> {
        let found = project.ask_json(&[&["runs"], arguments].concat());
        found["items"].as_array().unwrap().iter().map(|run| run["id"].clone()).collect()
    };
    assert_eq!(ids(&["--label", "team=green"]), std::slice::from_ref(&green));
    assert_eq!(ids(&["--text", "RED", "--workflow", "greet"]), std::slice::from_ref(&red));
    assert_eq!(ids(&["--sort", "created_at"]), [green, red]);
    assert_eq!(ids(&["--sort=-finished_at", "--state", "succeeded"]).len(), 2);
    assert_eq!(ids(&["--created-before", "2020-01-01"]), [json!(null); 0]);
    project.assert_fails(&["runs", "--sort", "colour"], 2, "-finished_at");

    let tagged = project.ask_json(&["workflows", "list", "--tag", "daily"]);
    assert_eq!(
        (tagged["items"].as_array().unwrap().len(), &tagged["items"][0]["name"]),
        (1, &json!("greet"))
    );
    assert!(project.ask_json(&["workflows", "pause", "greet", "--reason", "moving"])["pause"].is_object());
    project.assert_fails(&["trigger", "greet"], 3, "is paused");
    assert_eq!(project.ask_json(&["workflows", "resume", "greet"])["pause"], json!(null));
    project.ask_json(&["trigger", "greet"]);

    let set = project.ask_json(&["tenants", "set", "acme", "--weight", "3", "--max-active-tasks", "20"]);
    assert_eq!((&set["weight"], &set["max_active_tasks"]), (&json!(3), &json!(20)));
    let set = project.ask_json(&["tenants", "set", "acme", "--max-active-tasks", "none"]);
    assert_eq!((&set["weight"], &set["max_active_tasks"]), (&json!(3), &json!(null)));
    assert_eq!(project.ask_json(&["tenants"])["items"].as_array().unwrap().len(), 2);
    project.assert_fails(&["tenants", "show", "nobody"], 3, "there is no tenant `nobody`");
    assert_eq!(project.ask_json(&["queues"])["items"][0]["name"], "light");
}

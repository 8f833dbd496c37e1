//! Authors with grants for some workflows: what their definitions may name.

use axum::http::{Method, StatusCode};
use serde_json::json;

use super::people::Office;

/// Every way in which a definition reaches the workflow `OTHER`, or any other.
const NAMING: [(&str, &str); 9] = [
    ("a task", "tasks: [{name: a, type: workflow, config: {workflow: OTHER}}]"),
    (
        "a fan-out",
        "tasks: [{name: a, type: fan_out, for_each: '[1]', task: {type: workflow, config: {workflow: OTHER}}}]",
    ),
    (
        "a template",
        "tasks: [{name: a, type: workflow, config: {workflow: '{{ inputs.which }}'}}]\ninputs: {which: {type: string, default: OTHER}}",
    ),
    ("a callback", "tasks: [{name: a, type: noop}]\non_failure: {notify: {workflow: {name: OTHER}}}"),
    (
        "a templated callback",
        "tasks: [{name: a, type: noop}]\non_success: {notify: {workflow: {name: '{{ inputs.which }}'}}}\ninputs: {which: {type: string, default: OTHER}}",
    ),
    (
        "a callback of a task",
        "tasks: [{name: a, type: noop, on_success: {notify: {workflow: {name: OTHER}}}}]",
    ),
    ("a trigger", "tasks: [{name: a, type: noop}]\ntriggers: [{name: t, workflows: [OTHER]}]"),
    (
        "a sensor",
        "tasks: [{name: a, type: sensor, config: {run: {workflow: OTHER, logical_date: '2026-01-01T00:00:00Z'}}}]",
    ),
    ("a global task", "tasks: [{name: a, task: rates}]"),
];

/// A reusable task that workflows share.
const RATES: &str = "{name: rates, type: noop, global: true}";

/// A workflow, and the reusable task.
fn files(name: &str, text: &str) -> String {
    let workflow = json!({"path": format!("graphs/{name}.yaml"), "text": format!("name: {name}\n{text}")});
    json!({"files": [workflow, {"path": "tasks/rates.yaml", "kind": "task", "text": RATES}]}).to_string()
}

#[tokio::test]
async fn an_author_of_some_workflows_names_no_others() {
    let office = Office::open().await;
    let register = async |grant: &str, text: &str| {
        let token = office.token(&[grant]);
        office.request(&Method::POST, "/workflows", Some(&token), Some("acme"), text).await
    };
    let mut tried = 0;
    for (how, text) in NAMING {
        let reaching = text.replace("OTHER", "billing");
        let (status, body) = register("author:acme", &files("orders-2", &reaching)).await;
        // Some places take names only, no templates.
        if status == StatusCode::UNPROCESSABLE_ENTITY && text.contains("{{") {
            continue;
        }
        assert!(status.is_success(), "{how}: {body}");
        tried += 1;
        let (status, body) = register("author:acme/ord*", &files("orders-3", &reaching)).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{how}: {body}");
        assert!(body.contains("author:acme/ord*"), "{how}: {body}");
        // What somebody else registered, they do not bring back into use.
        let number = office.newest_version("orders-2").await;
        let path = format!("/workflows/orders-2/versions/{number}/activate");
        let token = office.token(&["author:acme/ord*"]);
        let (status, body) = office.request(&Method::POST, &path, Some(&token), Some("acme"), "").await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{how}: {body}");
        if text.contains("OTHER") && !text.contains("{{") {
            let within = files("orders-4", &text.replace("OTHER", "orders"));
            let (status, body) = register("author:acme/ord*", &within).await;
            assert!(status.is_success(), "{how} of a workflow of their own: {body}");
        }
    }
    assert!(tried >= 7, "{tried}");
}

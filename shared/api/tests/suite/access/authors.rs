//! Authors with grants for some workflows: what their definitions may name.

use axum::http::{Method, StatusCode};

use super::people::Office;

/// Every way in which a definition names the workflow `OTHER`.
const NAMING: [(&str, &str); 8] = [
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
];

#[tokio::test]
async fn an_author_of_some_workflows_names_no_others() {
    let office = Office::open().await;
    let register = async |grant: &str, text: &str| {
        let token = office.token(&[grant]);
        office.request(&Method::POST, "/workflows", Some(&token), Some("acme"), text).await
    };
    let mut tried = 0;
    for (how, text) in NAMING {
        let reaching = format!("name: orders-2\n{}", text.replace("OTHER", "billing"));
        let (status, body) = register("author:acme", &reaching).await;
        // Some places take names only, no templates.
        if status == StatusCode::UNPROCESSABLE_ENTITY && text.contains("{{") {
            continue;
        }
        assert!(status.is_success(), "{how}: {body}");
        tried += 1;
        let other = reaching.replace("orders-2", "orders-3");
        let (status, body) = register("author:acme/ord*", &other).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{how}: {body}");
        assert!(body.contains("author:acme/ord*"), "{how}: {body}");
        // What somebody else registered, they do not bring back into use.
        let number = office.newest_version("orders-2").await;
        let path = format!("/workflows/orders-2/versions/{number}/activate");
        let token = office.token(&["author:acme/ord*"]);
        let (status, body) = office.request(&Method::POST, &path, Some(&token), Some("acme"), "").await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{how}: {body}");
        if !text.contains("{{") {
            let within = format!("name: orders-4\n{}", text.replace("OTHER", "orders"));
            let (status, body) = register("author:acme/ord*", &within).await;
            assert!(status.is_success(), "{how} of a workflow of their own: {body}");
        }
    }
    assert!(tried >= 6, "{tried}");
}

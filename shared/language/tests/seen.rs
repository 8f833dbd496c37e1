//! What templates see beside inputs and outputs: items, events and secrets, of which the last are never shown.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use ebbflow_language::expression::evaluate;
use ebbflow_language::template::{Item, Scope, render, render_call, secrets_of};
use ebbflow_language::types::TaskType;
use model::Call;
use model::TaskKind;
use serde_json::{Map, Value, json};

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn scope() -> Scope {
    Scope {
        item: Some(Item { value: json!({"name": "a b", "rows": [1, 2]}), index: 3 }),
        event: Some(json!({"task": "load it", "error": "gone"})),
        secrets: object(json!({"KEY": "hush", "api-key": "pst"})),
        ..Scope::default()
    }
}

#[test]
fn a_child_sees_its_item_and_its_index() {
    let config = json!({"all": "{{ item }}", "rows": "{{ item.rows }}", "n": "{{ index + 1 }}", "t": "{{ item.name }}-{{ index }}"});
    let expected = json!({"all": {"name": "a b", "rows": [1, 2]}, "rows": [1, 2], "n": 4, "t": "a b-3"});
    assert_eq!(render(&config, &scope()).unwrap(), expected);
    assert_eq!(evaluate("item.rows | length > index", &scope()).unwrap().value, json!(false));
    assert_eq!(scope().to_json()["index"], 3);
}

#[test]
fn a_command_line_gets_items_and_secrets_as_environment() {
    let config = json!({"command": "send {{ item.name }} '{{ secrets.KEY }}' {{ index .Tags 0 }}"});
    let rendered = TaskType::of(&TaskKind::Bash).render(&config, &scope()).unwrap();
    assert_eq!(rendered["env"], json!({"EBB_VALUE_1": "a b", "EBB_VALUE_2": "hush"}));
    assert!(rendered["command"].as_str().unwrap().ends_with(" {{ index .Tags 0 }}"));
}

#[test]
fn templates_see_secrets_and_the_document_does_not() {
    let config = json!({"a": "Bearer {{ secrets.KEY }}", "b": "{{ secrets['api-key'] }}"});
    assert_eq!(render(&config, &scope()).unwrap(), json!({"a": "Bearer hush", "b": "pst"}));
    let document = scope().to_json().to_string();
    assert!(!document.contains("secrets") && !document.contains("hush"), "{document}");
}

#[test]
fn expressions_know_no_secrets() {
    let error = evaluate("secrets.KEY == 'hush'", &scope()).unwrap_err();
    assert_eq!(error.message, "the name `secrets` does not exist here");
}

#[test]
fn no_reason_quotes_a_secret() {
    for template in [
        "{{ secrets.KEY | int }}",
        "{{ secrets.KEY | date }}",
        "{{ secrets.KEY + 1 }}",
        "{{ secrets.KEY.x.y }}",
    ] {
        let error = render(&json!(template), &scope()).unwrap_err().to_string();
        assert!(!error.contains("hush"), "{template}: {error}");
    }
    let missing = render(&json!("{{ secrets.KYE }}"), &scope()).unwrap_err();
    assert_eq!(missing.to_string(), "`secrets` has no `KYE` (did you mean `KEY`?)");
}

#[test]
fn the_secrets_of_a_config_are_known_without_rendering() {
    let config = json!({
        "url": "https://x/{{ secrets.A }}", "headers": {"k": "{{ secrets['b-c'] | upper }}"},
        "list": ["{% if inputs.n %}{{ secrets.D }}{% endif %}", "secrets.no", 5],
        "command": "docker ps --format '{{.Names}}' {{ secrets.E }} {{ inputs.x ~ secrets.F }}",
    });
    assert_eq!(secrets_of(&config).into_iter().collect::<Vec<_>>(), ["A", "D", "E", "F", "b-c"]);
    assert!(secrets_of(&json!({"a": "{{ inputs.secrets }}"})).is_empty());
}

#[test]
fn a_callback_is_rendered_with_its_url_encoded() {
    let call = Call::Webhook {
        url: "https://x/{{ event.task }}".to_owned(),
        headers: object(json!({"A": "Bearer {{ secrets.KEY }}"})),
        body: Some(json!({"why": "{{ event.error }}", "event": "{{ event }}"})),
    };
    let Call::Webhook { url, headers, body } = render_call(&call, &scope()).unwrap() else { panic!() };
    assert_eq!((url.as_str(), &headers["A"]), ("https://x/load%20it", &json!("Bearer hush")));
    assert_eq!(body.unwrap(), json!({"why": "gone", "event": {"task": "load it", "error": "gone"}}));
    let broken = Call::Message { topic: "{{ event }}".to_owned(), body: None };
    assert_eq!(render_call(&broken, &scope()).unwrap_err().message, "the rendered value is not a callback");
}

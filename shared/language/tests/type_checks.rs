//! Settings and outputs against the schemas of a custom type: what does not fit is reported, and no check costs too much.

use ebbflow_language::TypeChecks;
use model::{CustomType, TypeName};
use serde_json::{Value, json};

fn checks(config: Value, output: Option<Value>) -> TypeChecks {
    let (description, icon, queue, timeout_seconds, max_retries) = Default::default();
    let custom = CustomType { description, icon, config, output, queue, timeout_seconds, max_retries };
    TypeChecks::compile(&TypeName::new("a.b").expect("a name"), &custom).expect("a valid schema")
}

#[test]
fn rendered_settings_are_checked_in_full() {
    let schema = json!({"type": "object", "additionalProperties": false, "required": ["x"],
        "properties": {"x": {"type": "integer"}, "y": {"type": "string", "maxLength": 3}}});
    let checks = checks(schema, None);
    assert_eq!(checks.check_config(&json!({"x": 1, "y": "abc"})), Ok(()));
    let said = |config: Value| checks.check_config(&config).unwrap_err().to_string();
    assert_eq!(
        said(json!({"x": "{{ 1 }}"})),
        "the config does not fit the task type `a.b`: x: expected a whole number, found the text `{{ 1 }}`"
    );
    assert!(said(json!({"x": 1, "y": "long"})).contains("y: `a.b`: the value is longer than 3 characters"));
    assert!(said(json!({})).contains("needs the setting `x`"));
}

#[test]
fn outputs_are_checked_in_full_and_reported_in_short() {
    let row = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let checks = checks(json!({}), Some(json!({"type": "array", "items": row})));
    assert_eq!(checks.check_output(&json!([{"n": 1}])), Ok(()));
    let many: Value = (0..1_000).map(|number| json!({"n": format!("{number}")})).collect();
    let said = checks.check_output(&many).unwrap_err().to_string();
    assert!(said.starts_with("the output does not fit the task type `a.b`: [0].n: "), "{said}");
    assert_eq!(said.matches(".n: ").count(), 5, "{said}");
    assert!(checks.check_output(&Value::Null).is_err());
    assert_eq!(super_lenient().check_output(&json!({"anything": [null]})), Ok(()));
}

/// A list whose items are checked against that many schemas.
fn list_of(part: Value, count: usize) -> Value {
    json!({"type": "array", "items": {"allOf": vec![part; count]}})
}

#[test]
fn a_large_output_is_not_checked_against_a_large_schema() {
    let numbers = |count: usize| Value::from(vec![1_u64; count]);
    let plain = checks(json!({}), Some(list_of(json!({"minimum": 0}), 998)));
    assert_eq!(plain.check_output(&numbers(1_999)), Ok(()));
    assert_eq!(
        plain.check_output(&numbers(2_000)).unwrap_err().to_string(),
        "the output does not fit the task type `a.b`: it has too many values (2001) for a schema of this size"
    );
    let mut referring = list_of(json!({"$ref": "#/$defs/a"}), 499);
    referring["$defs"] = json!({"a": {"minimum": 0}});
    let said = checks(json!({}), Some(referring)).check_output(&numbers(1_998)).unwrap_err().to_string();
    assert!(
        said.ends_with("it has too many values (1999) for a schema of this size"),
        "references are written out: {said}"
    );
    let small = checks(json!({}), Some(json!({"items": {"type": "integer"}})));
    assert_eq!(small.check_output(&numbers(500_000)), Ok(()));
    assert_eq!(super_lenient().check_output(&numbers(2_000_001)), Ok(()), "there is nothing to check");
}

#[test]
fn large_settings_are_not_checked_against_a_large_schema() {
    let list = list_of(json!({"minimum": 0}), 998);
    let checks = checks(json!({"type": "object", "properties": {"list": list}}), None);
    let config = |count: usize| json!({"list": vec![1_u64; count]});
    assert_eq!(checks.check_config(&config(1_996)), Ok(()));
    assert_eq!(
        checks.check_config(&config(1_998)).unwrap_err().to_string(),
        "the config does not fit the task type `a.b`: it has too many values (2000) for a schema of this size"
    );
}

#[test]
fn problems_of_rendered_settings_are_reported_in_short() {
    for item in [json!({"type": "integer"}), json!({"maxLength": 1})] {
        let schema = json!({"type": "object", "properties": {"list": {"type": "array", "items": item}}});
        let error = checks(schema, None).check_config(&json!({"list": vec!["ab"; 1_000]})).unwrap_err();
        assert_eq!(error.problems.len(), 5, "{item}: {error}");
    }
}

fn super_lenient() -> TypeChecks {
    checks(json!({}), None)
}

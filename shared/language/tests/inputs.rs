//! Inputs as runs are given them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use ebbflow_language::inputs::bind;
use ebbflow_language::template::{RunFacts, Scope};
use ebbflow_language::{FileKind, SourceFile, compile};
use model::Workflow;
use serde_json::{Map, Value, json};

fn workflow() -> Workflow {
    let text = r#"
name: a
inputs:
  region: {type: string, default: us, enum: [us, eu]}
  day: {type: date, default: "{{ logical_date }}"}
  since: {type: datetime, default: "{{ logical_date | add_hours(-1) }}"}
  path: {type: string, default: "{{ inputs.region }}/{{ inputs.day }}"}
  limit: {type: integer, default: 100}
  ratio: {type: number, default: 1}
  dry: {type: boolean, default: false}
  files: {type: list, default: ["{{ inputs.path }}.csv"]}
  options: {type: object, default: {deep: {n: "{{ inputs.limit }}"}}}
  customer: {type: string}
tasks: [{name: x, type: noop}]
"#;
    let file = SourceFile { path: "a.yaml".to_owned(), kind: FileKind::Workflow, text: text.to_owned() };
    let mut compilation = compile(&[file]);
    assert_eq!(compilation.diagnostics, []);
    compilation.definitions.remove(0).workflow
}

fn given(value: Value) -> Result<Map<String, Value>, Vec<String>> {
    let logical_date = "2026-01-31T18:00:00Z".parse().unwrap();
    let run = RunFacts { id: "r1".to_owned(), logical_date, trigger: "manual".to_owned(), interval: None };
    let scope = Scope { run: Some(run), ..Scope::default() };
    let bound = bind(&workflow(), value.as_object().unwrap(), &scope);
    bound.map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

#[test]
fn defaults_are_rendered_in_order() {
    let bound = Value::Object(given(json!({"customer": "c1", "region": "eu"})).unwrap());
    assert_eq!(
        bound,
        json!({
            "region": "eu", "day": "2026-01-31", "since": "2026-01-31T17:00:00Z", "path": "eu/2026-01-31",
            "limit": 100, "ratio": 1, "dry": false, "files": ["eu/2026-01-31.csv"],
            "options": {"deep": {"n": 100}}, "customer": "c1",
        })
    );
}

#[test]
fn values_given_are_taken_as_they_are_and_never_rendered() {
    let bound = given(json!({"customer": "{{ inputs.region }}", "ratio": 0.25})).unwrap();
    assert_eq!(bound["customer"], "{{ inputs.region }}");
    assert_eq!(bound["ratio"], 0.25);
}

#[test]
fn every_problem_is_reported_at_once() {
    let reported = given(json!({
        "regoin": "us", "region": "ue", "day": "2026-1-1", "since": "2026-01-31", "limit": 1.5, "ratio": "0.5",
        "dry": "yes", "files": "a", "options": [], "path": 5, "zebra": null,
    }));
    insta::assert_snapshot!(reported.unwrap_err().join("\n"));
}

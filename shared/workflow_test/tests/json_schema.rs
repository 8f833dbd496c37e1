//! The published JSON Schema of test files against what reads them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../../language/tests/editing/mod.rs"]
mod editing;

use std::collections::BTreeSet;

use ebbflow_workflow_test::{Refusal, Suite, TestFile};
use editing::edits;
use language::{Compilation, FileKind, Schema, SourceFile, compile};
use serde_json::{Value, json};

/// How a reader says that a shape is wrong.
const OF_SHAPE: [&str; 7] = [
    "unknown field",
    "expected ",
    "must be a mapping",
    "` is missing",
    "is not one of the values",
    "needs at least one",
    "not both",
];

fn workflow() -> Compilation {
    let tasks = json!([
        {"name": "fetch", "type": "bash", "config": {"command": "fetch"}},
        {"name": "ask", "type": "approval", "config": {"fields": {"amount": {"type": "number"}}}},
        {"name": "wait", "type": "wait_for_signal", "config": {"signal": "paid"}},
    ]);
    let text = json!({"name": "flow", "tasks": tasks}).to_string();
    compile(&[SourceFile { path: "flow".to_owned(), kind: FileKind::Workflow, text }])
}

/// Files that between them have every field.
fn documents() -> Vec<Value> {
    let attempts = json!([
        {"fail": {"message": "gone", "class": "permanent"}, "takes": "5s"},
        {"fail": "connection reset"},
        {"output": {"rows": 3}, "takes": 30},
    ]);
    let fetch = json!({
        "state": "succeeded", "attempts": 2, "output": {"rows": 3}, "config": {"command": "fetch"},
        "started": "0s", "finished": {"at_least": 1, "at_most": "2m"}, "started_after": ["ask"], "error": "gone",
    });
    let expect = json!({
        "state": "succeeded", "took": {"at_most": "3h"}, "error": "gone", "order": ["fetch", "ask"],
        "tasks": {"ask": "skipped", "fetch": fetch},
    });
    let whole = json!({
        "name": "whole", "inputs": {"day": "x"}, "logical_date": "2026-02-01T00:00:00Z",
        "now": "2026-02-01T06:00:00Z", "tasks": {"fetch": attempts}, "expect": expect,
    });
    let small = json!({"took": "2h", "order": "fetch", "tasks": {"fetch": {"started_after": "ask"}}});
    let small = json!({"name": "small", "tasks": {"fetch": {"fail": "no"}}, "expect": small});
    let actions = [
        json!({"at": "1h", "approve": "ask", "by": "ann", "fields": {}}),
        json!({"at": 7200, "reject": "ask", "reason": "too much"}),
        json!({"signal": "paid", "payload": {"amount": 3}}),
        json!({"cancel": true, "reason": "enough"}),
    ];
    let actions = actions.map(|action| json!({"name": "action", "meanwhile": [action], "expect": {}}));
    let tests = [whole, small].into_iter().chain(actions);
    tests.map(|test| json!({"workflow": "flow", "tests": [test]})).collect()
}

fn problems(document: &Value, workflows: &Compilation) -> Vec<String> {
    let file = TestFile { path: "flow.yaml".to_owned(), text: document.to_string() };
    match Suite::read(&file, workflows) {
        Err(Refusal::File(problems)) => problems.iter().map(ToString::to_string).collect(),
        other => other.map(|_| Vec::new()).unwrap(),
    }
}

#[test]
fn after_any_edit_of_a_test_both_agree_on_its_shape() {
    let schema = jsonschema::draft202012::new(&Schema::Test.to_json()).unwrap();
    let fields =
        ["payload", "fields", "reason", "signal", "approve", "cancel", "output", "fail", "at", "error"];
    let workflows = workflow();
    let mut disagreements = Vec::new();
    for document in documents() {
        assert_eq!(
            (problems(&document, &workflows), schema.is_valid(&document)),
            (Vec::new(), true),
            "{document}"
        );
        // Each has other fields in the same places.
        for edit in edits(&document, &mut BTreeSet::new()) {
            let others: Vec<_> = match edit.is_unknown() {
                true => fields.iter().flat_map(|field| edit.renamed(&document, field)).collect(),
                false => Vec::new(),
            };
            for edit in others.into_iter().chain([edit]) {
                let edited = edit.apply(&document);
                let (fits, problems) = (schema.is_valid(&edited), problems(&edited, &workflows));
                let is_of_shape = |problem: &String| OF_SHAPE.iter().any(|words| problem.contains(words));
                if !fits && problems.is_empty() || fits && problems.iter().any(is_of_shape) {
                    disagreements.push(format!("{edit:?}: {problems:?}"));
                }
            }
        }
    }
    assert!(disagreements.is_empty(), "{}", disagreements.join("\n"));
}

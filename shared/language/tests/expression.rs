//! Expressions: their values, what they saw, their limits.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use ebbflow_language::expression::evaluate;
use ebbflow_language::template::{RunFacts, Scope, TaskFacts, try_out};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn scope() -> Scope {
    Scope {
        inputs: object(json!({
            "n": 21, "region": "us", "files": ["a", "b"], "empty": [], "long": "é".repeat(200_000),
            "many": (0..10_000).collect::<Vec<_>>(),
        })),
        outputs: object(json!({
            "extract": {"rows": 12, "ok": true, "none": null}, "get-data": [{"id": 1}, {"id": 2}],
        })),
        run: Some(RunFacts {
            id: "r1".to_owned(),
            logical_date: "2026-01-31T18:00:00Z".parse().unwrap(),
            trigger: "manual".to_owned(),
            interval: None,
        }),
        task: Some(TaskFacts { name: "load".to_owned(), attempt: 2 }),
        ..Scope::default()
    }
}

#[track_caller]
fn check(source: &str, value: Value, truth: bool) {
    let evaluated = evaluate(source, &scope()).unwrap();
    assert_eq!((evaluated.value, evaluated.truth), (value, truth), "{source}");
}

#[track_caller]
fn saw(source: &str, seen: Value) {
    assert_eq!(Value::Object(evaluate(source, &scope()).unwrap().seen), seen, "{source}");
}

#[track_caller]
fn refused(source: &str, because: &str) {
    let error = evaluate(source, &scope()).expect_err("it must be refused").to_string();
    assert!(error.contains(because), "{source}: {error}");
}

#[test]
fn a_value_keeps_its_type_and_has_a_truth() {
    check("outputs.extract.rows > 1000", json!(false), false);
    check("outputs['extract'].rows == 12 and inputs.region in ['us', 'eu']", json!(true), true);
    check("inputs.n", json!(21), true);
    check("inputs.n - 21", json!(0), false);
    check("inputs.n / 2 - 10.5", json!(0.0), false);
    check("inputs.region", json!("us"), true);
    check("''", json!(""), false);
    check("'false'", json!("false"), true);
    check("inputs.empty", json!([]), false);
    check("inputs.files", json!(["a", "b"]), true);
    check("{}", json!({}), false);
    check("{'a': {'b': inputs.n}}", json!({"a": {"b": 21}}), true);
    check("outputs.extract.none", json!(null), false);
    check("not outputs.extract.ok", json!(false), false);
    check("\n  inputs.n > 20\n  and task.attempt == 2\n", json!(true), true);
    check("'{{ as it is }}'", json!("{{ as it is }}"), true);
}

#[test]
fn the_values_of_the_names_that_it_uses_are_kept() {
    saw("outputs.extract.rows > 1000", json!({"outputs.extract.rows": 12}));
    saw(
        "inputs.region == 'eu' or run.trigger == 'api'",
        json!({"inputs.region": "us", "run.trigger": "manual"}),
    );
    saw("outputs['get-data'][0].id == inputs.n", json!({"outputs['get-data'][0].id": 1, "inputs.n": 21}));
    saw("inputs.files[inputs.n - 20]", json!({"inputs.files": ["a", "b"], "inputs.n": 21}));
    saw("inputs.nope | default(5)", json!({}));
    saw("outputs.extract.none", json!({"outputs.extract.none": null}));
    saw("1 > 2", json!({}));
}

#[test]
fn what_is_long_is_shortened() {
    let seen = evaluate("inputs.long and inputs.many", &scope()).unwrap().seen;
    for (name, begins) in [("inputs.long", "éé"), ("inputs.many", "[0,1,2,")] {
        let text = seen[name].as_str().unwrap();
        assert!(text.starts_with(begins) && text.ends_with('…'), "{text}");
        assert_eq!(text.chars().count(), 200);
    }
}

#[test]
fn a_name_that_does_not_exist_is_explained() {
    let reported: Vec<String> = [
        "outputs.skipped.rows > 5",
        "outputs['was-skipped'].rows | default(0) > 5",
        "inputs.regoin == 'us'",
        "input.region == 'us'",
        "outputs.extract.row > 5",
        "run.idd == 'r1'",
    ]
    .map(|source| evaluate(source, &scope()).unwrap_err().to_string())
    .to_vec();
    insta::assert_snapshot!(reported.join("\n"));
    check("outputs.skipped is defined", json!(false), false);
    check("(outputs.skipped | default(outputs.extract)).rows", json!(12), true);
    check("(outputs.extract | default(outputs.skipped)).rows", json!(12), true);
    check("(outputs.skipped | default({})).rows | default(0) > 5", json!(false), false);
}

#[test]
fn no_expression_runs_for_ever_or_grows_without_bound() {
    refused("[inputs.long, inputs.long, inputs.long]", "larger than 1048576 bytes");
    refused("inputs.long | replace('é', inputs.long)", "too large");
    refused("inputs.long * 1000000000", "multiplies numbers");
    refused("range(99999999)", "too many elements");
    refused(&vec!["inputs.n"; 300].join(" + "), "at most 256 times");
    refused(&format!("{}1{}", "(".repeat(5000), ")".repeat(5000)), "not valid");
    refused(&format!("'{}'", "x".repeat(70_000)), "at most 65536 bytes");
}

#[test]
fn what_is_no_expression_is_refused() {
    refused("", "not valid");
    refused("{{ inputs.n }}", "leave out the braces: `inputs.n`");
    refused("inputs.n }} {{ inputs.n", "not valid");
    refused("{% if true %}1{% endif %}", "not valid");
    refused("inputs.n = 5", "to compare, write `==`");
    refused("debug()", "only `range` can be called");
}

fn almost_expression() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "inputs.n",
        "inputs.long",
        "outputs['extract']",
        "outputs.skipped",
        "run.id",
        "nope",
        "inputs.many",
        ".rows",
        "[0]",
        "[-1]",
        "[:2]",
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        "{{",
        "}}",
        "'",
        "'a'",
        "1",
        "1e308",
        " > ",
        " == ",
        " = ",
        " and ",
        " or ",
        "not ",
        " in ",
        " is defined",
        " if ",
        " else ",
        " ~ ",
        " * ",
        " ** ",
        " // ",
        " % ",
        " - ",
        " + ",
        " | length",
        " | default(1)",
        " | tojson",
        " | fromjson",
        " | join(inputs.long)",
        " | sort",
        " | map('upper')",
        " | list",
        " | sum",
        "range(",
        ", ",
        ": ",
        "é",
        "\n",
        "#",
        "\\",
    ]);
    prop::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}

#[test]
fn what_is_tried_out_gives_a_value_and_what_it_saw_with_braces_or_without() {
    let tried = |source| try_out(source, &scope()).unwrap();
    assert_eq!(tried("inputs.n * 2").value, json!(42));
    assert_eq!(tried("{{ inputs.n * 2 }}").value, json!(42));
    let text = tried("{{ inputs.region }}/{{ outputs.extract.rows }}");
    assert_eq!((text.value, text.truth), (json!("us/12"), true));
    assert_eq!(Value::Object(text.seen), json!({"inputs.region": "us", "outputs.extract.rows": 12}));
}

#[test]
fn problems_are_reported_at_their_position() {
    let error = |source: &'static str| {
        let error = try_out(source, &scope()).unwrap_err();
        (&source[error.at.clone()], error)
    };
    let (at, missing) = error("inputs.n + outputs.extract.lines");
    assert_eq!(at, "outputs.extract.lines");
    assert!(missing.message.contains("has no `lines`") && missing.hint.is_some(), "{missing:?}");
    let (at, unread) = error("inputs.n = 3");
    assert!(at.starts_with('=') && unread.hint.is_some(), "{at}: {unread:?}");
    assert_eq!(error("é{{ nowhere }}").0, "nowhere");
    assert_eq!(error("secrets.key").0, "secrets.key", "there are none to be seen");
}

proptest! {
    #[test]
    fn no_expression_makes_the_evaluator_panic_or_answer_without_bound(
        source in prop_oneof![almost_expression(), "\\PC{0,60}"],
    ) {
        if let Ok(evaluated) = evaluate(&source, &scope()) {
            prop_assert!(evaluated.value.to_string().len() <= 1024 * 1024);
            prop_assert!(evaluated.seen.values().all(|value| value.to_string().chars().count() <= 1_000));
        }
        if let Err(error) = try_out(&source, &scope()) {
            prop_assert!(source.get(error.at.clone()).is_some(), "{error:?}");
        }
    }
}

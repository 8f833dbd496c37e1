//! Rendering: types, names, dates, limits.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use ebbflow_language::template::{RunFacts, Scope, TaskFacts, render};
use ebbflow_language::types::TaskType;
use model::TaskKind;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn scope() -> Scope {
    Scope {
        inputs: object(json!({
            "day": "2026-01-31", "n": 21, "big": 9_007_199_254_740_993_u64, "ratio": 0.5, "name": "O'Hara & Söhne",
            "files": ["a", "b"], "host": "https://svc", "long": "x".repeat(200_000),
        })),
        outputs: object(json!({
            "extract": {"rows": 3, "ok": true, "none": null}, "get-data": [{"id": 1}, {"id": 2}],
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
fn check(template: &str, expected: Value) {
    assert_eq!(render(&json!(template), &scope()).unwrap(), expected, "{template}");
}

#[track_caller]
fn refused(template: &str, because: &str) {
    let error = render(&json!(template), &scope()).expect_err("it must be refused").to_string();
    assert!(error.contains(because), "{template}: {error}");
}

#[test]
fn one_expression_keeps_its_type() {
    check("{{ inputs.n }}", json!(21));
    check("{{ inputs.n * 2 }}", json!(42));
    check("{{ inputs.big }}", json!(9_007_199_254_740_993_u64));
    check("{{ inputs.ratio }}", json!(0.5));
    check("{{ inputs.files }}", json!(["a", "b"]));
    check("{{- outputs.extract -}}\n", json!({"rows": 3, "ok": true, "none": null}));
    check("{{ outputs.extract.ok }}", json!(true));
    check("{{ outputs.extract.none }}", json!(null));
    check("{{ {'a': [inputs.n, 'x']} }}", json!({"a": [21, "x"]}));
    check("{{ {'a': {'b': 1}}}}", json!({"a": {"b": 1}}));
    check("{{ inputs.files | map('upper') | list }}", json!(["A", "B"]));
    check("{{ outputs['get-data'] | map(attribute='id') | sum }}", json!(3));
    check("{{ (inputs.n + 1) * -2 }}", json!(-44));
    check("{{ inputs.n > 20 and inputs.day == '2026-01-31' }}", json!(true));
}

#[test]
fn among_other_text_a_value_is_written_out() {
    check("n is {{ inputs.n }}", json!("n is 21"));
    check("{{ inputs.files }}!", json!("[\"a\",\"b\"]!"));
    check("{{ outputs.extract.ok }}{{ outputs.extract.none }}", json!("truenull"));
    check("{{ inputs.name }}\n", json!("O'Hara & Söhne"));
    check("line {{ inputs.n }}\n", json!("line 21\n"));
    check("{% for f in inputs.files %}{{ loop.index }}{{ f }} {% endfor %}", json!("1a 2b "));
    check("{% if inputs.n > 3 %}many{% else %}few{% endif %}", json!("many"));
    check("{% raw %}{{ as it is }}{% endraw %}", json!("{{ as it is }}"));
    check("no template at all }}", json!("no template at all }}"));
}

#[test]
fn outputs_are_found_by_dot_and_by_bracket() {
    check("{{ outputs.extract.rows }}", json!(3));
    check("{{ outputs['extract']['rows'] }}", json!(3));
    check("{{ outputs['get-data'][1].id }}", json!(2));
    check("{{ outputs['get-data'][-1].id * 2 }}", json!(4));
    check("{{ run.id }}/{{ run.trigger }}/{{ task.name }}/{{ task.attempt }}", json!("r1/manual/load/2"));
}

#[test]
fn dates_are_moved_and_written() {
    check("{{ logical_date }}", json!("2026-01-31T18:00:00Z"));
    check("{{ run.logical_date | date }}", json!("2026-01-31"));
    check("{{ logical_date | date('%d.%m.%Y %H:%M') }}", json!("31.01.2026 18:00"));
    check("{{ inputs.day | add_days(1) }}", json!("2026-02-01"));
    check("{{ inputs.day | add_days(-31) | strftime('%Y/%m') }}", json!("2025/12"));
    check("{{ logical_date | add_hours(7) }}", json!("2026-02-01T01:00:00Z"));
    check("{{ logical_date | add_minutes(-1) }}", json!("2026-01-31T17:59:00Z"));
    check("{{ inputs.day | timestamp }}", json!(1_769_817_600));
    refused("{{ inputs.name | date }}", "is neither a date such as `2026-01-31`");
    refused("{{ inputs.day | date('%Q') }}", "is not a date format");
    refused("{{ inputs.day | add_days(99999999999) }}", "too far away");
}

#[test]
fn json_defaults_and_strings_have_filters() {
    check("{{ '{\"a\": [1]}' | fromjson }}", json!({"a": [1]}));
    check("{{ inputs.files | tojson }}", json!("[\"a\",\"b\"]"));
    check("{{ inputs.nope | default('none') }}", json!("none"));
    check("{{ outputs.extract.nope | default(0) + 1 }}", json!(1));
    check("{{ (outputs.skipped | default({})).rows | default(0) }}", json!(0));
    check("{{ inputs.nope is defined }}", json!(false));
    check("{{ inputs.day | replace('-', '') | int }}", json!(20_260_131));
    check("{{ inputs.files | join(', ') | upper }}", json!("A, B"));
    check("{{ ' a b ' | trim | split(' ') }}", json!(["a", "b"]));
    check("{{ 'b,a' | split(',') | sort | map('upper') | reverse | join('-') }}", json!("B-A"));
    check("{{ {'a': 1} | items | list }}", json!([["a", 1]]));
    check("{{ inputs.name | urlencode }}", json!("O%27Hara%20%26%20S%C3%B6hne"));
    refused("{{ '{' | fromjson }}", "this is not JSON");
}

#[test]
fn a_name_that_does_not_exist_is_explained() {
    let tell = |template: &str| render(&json!({"a": [template]}), &scope()).unwrap_err().to_string();
    let reported: Vec<String> = [
        "{{ inputs.dya }}",
        "x {{ inputs.files[7] }}",
        "{{ input.day }}",
        "{{ outputs.transform.rows }}",
        "{{ outputs.extract.row }}",
        "{{ outputs.extract.nope.deep | default(1) }}",
        "{{ inputs.nope | default(inputs.dya) }}",
        "{% for x in inputs.fils %}{{ x }}{% endfor %}",
        "{% if inputs.nope %}x{% endif %}",
        "{{ outputs['get-data'] | map(attribute='nope') | join(',') }}",
        "{{ outputs['get-data'] | map(attribute='nope') | list }}",
    ]
    .map(tell)
    .to_vec();
    insta::assert_snapshot!(reported.join("\n"));
}

#[test]
fn every_string_is_rendered_and_nothing_else() {
    let config = json!({"{{ key }}": ["{{ inputs.n }}", 5, {"deep": "{{ inputs.day }}!"}], "plain": true});
    let rendered = render(&config, &scope()).unwrap();
    assert_eq!(rendered, json!({"{{ key }}": [21, 5, {"deep": "2026-01-31!"}], "plain": true}));
}

#[test]
fn values_put_into_urls_are_encoded() {
    let http = TaskType::of(&TaskKind::Http);
    let url = |template: &str| http.render(&json!({"url": template}), &scope()).unwrap()["url"].clone();
    assert_eq!(
        url("https://x/{{ inputs.name }}?n={{ inputs.n }}"),
        "https://x/O%27Hara%20%26%20S%C3%B6hne?n=21"
    );
    assert_eq!(url("{{ inputs.host }}/{{ inputs.files }}"), "https://svc/%5B%22a%22%2C%22b%22%5D");
    assert_eq!(url("{{ inputs.host }}"), "https://svc");
    let body = http.render(&json!({"body": "a {{ inputs.name }}"}), &scope()).unwrap();
    assert_eq!(body["body"], "a O'Hara & Söhne");
}

#[test]
fn no_template_runs_for_ever_or_grows_without_bound() {
    let nested = "{% for a in range(1000) %}{% for b in range(1000) %}x{% endfor %}{% endfor %}";
    refused(nested, "too many steps");
    refused("{% for a in range(20000) %}{{ inputs.long }}{% endfor %}", "larger than 1048576 bytes");
    refused(
        "{{ [inputs.long, inputs.long, inputs.long, inputs.long, inputs.long, inputs.long] }}",
        "larger than",
    );
    refused("{{ inputs.long | replace('x', inputs.long) }}", "too large");
    refused("{{ inputs.long | list | join(inputs.long) }}", "too large");
    refused("{{ 'x' * 1000000000 }}", "multiplies numbers only");
    refused("{{ inputs.long * 1000000000 }}", "multiplies numbers");
    refused("{{ inputs.files * 1000000000 }}", "multiplies numbers");
    refused("{{ inputs.files[-1] * 1000000000 }}", "multiplies numbers");
    refused("{{ inputs.name[0] * 100000000 }}", "`inputs.name` has no `0`");
    refused("{{ (inputs.long ~ 'a') * 1000 }}", "multiplies numbers only");
    refused("{{ (inputs.long if true else 1) * 1000 }}", "multiplies numbers only");
    refused("{% for f in inputs.files %}{{ f * 1000 }}{% endfor %}", "multiplies numbers only");
    refused("{{ range(99999999) }}", "too many elements");
    refused(&format!("{{{{ {} }}}}", vec!["inputs.long"; 300].join(" ~ ")), "at most 256 times");
    refused(&format!("{{{{ {}1{} }}}}", "(".repeat(5000), ")".repeat(5000)), "not valid");
    refused(&format!("{{{{ 1 }}}}{}", "x".repeat(70_000)), "at most 65536 bytes");
    let both = json!([
        "{{ inputs.long ~ inputs.long ~ inputs.long }}",
        "{{ inputs.long ~ inputs.long ~ inputs.long }}"
    ]);
    assert!(render(&both, &scope()).unwrap_err().to_string().contains("larger than"));
}

#[test]
fn what_could_read_files_or_multiply_itself_is_no_part_of_the_language() {
    for template in [
        "{% include '/etc/passwd' %}",
        "{% import 'x' as y %}",
        "{% set a = 'x' %}",
        "{% with a = 1 %}{% endwith %}",
        "{% macro m() %}{% endmacro %}",
        "{% filter upper %}x{% endfilter %}",
        "{% for x in inputs.files recursive %}{{ loop(x) }}{% endfor %}",
        "{% do range(3) %}",
    ] {
        refused(template, "this statement is not allowed");
    }
    refused("{{ debug() }}", "only `range` can be called");
    refused("{{ inputs.day | format(1) }}", "there is no filter `format`");
}

fn almost_template() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{{"),
        Just("}}"),
        Just("{%"),
        Just("%}"),
        Just("{#"),
        Just("-"),
        Just(" inputs.n "),
        Just("outputs['extract']"),
        Just(" | default(1)"),
        Just(" | tojson"),
        Just(" | date('%"),
        Just("')"),
        Just(" * "),
        Just(" ~ "),
        Just("[0]"),
        Just("[:2]"),
        Just(" for x in inputs.files "),
        Just(" endfor "),
        Just(" if "),
        Just(" else "),
        Just(" endif "),
        Just(" | map('upper') | join(x)"),
        Just("é"),
        Just("\n"),
        Just(" | add_days(9)"),
        Just("(("),
        Just("))"),
        Just("1"),
    ];
    prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_template_makes_the_renderer_panic(text in prop_oneof![almost_template(), "\\PC{0,60}"]) {
        let wrapped = format!("{{{{ {text} }}}}");
        for template in [text, wrapped] {
            let config = json!({"url": template});
            drop(render(&config, &scope()));
            drop(TaskType::of(&TaskKind::Http).render(&config, &scope()));
        }
    }
}

//! Workflow templates: what a workflow inherits, how it is changed, and what templates may do to one another.

use ebbflow_language::{Compilation, FileKind, SourceFile, compile};
use serde_json::{Value, json};

fn template(name: &str, text: &str) -> SourceFile {
    SourceFile { path: format!("templates/{name}.yaml"), kind: FileKind::Template, text: text.to_owned() }
}

fn workflow(name: &str, text: &str) -> SourceFile {
    SourceFile { path: format!("graphs/{name}.yaml"), kind: FileKind::Workflow, text: text.to_owned() }
}

fn reported(compilation: &Compilation) -> String {
    compilation.diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The one workflow that comes of the files.
fn made(files: &[SourceFile]) -> Value {
    let compilation = compile(files);
    assert_eq!(reported(&compilation), "");
    serde_json::to_value(&compilation.definitions[0].workflow).expect("a workflow is JSON")
}

/// The config of the task `x` of a template with one parameter that is given a value.
fn config(declared: &str, given: &str, config: &str) -> Value {
    let base = format!(
        "name: base\nparameters: {{p: {declared}}}\ntasks:\n  - name: x\n    type: echo\n    config: {config}\n"
    );
    let user = format!("name: a\nextends: base\nparameters: {{p: {given}}}\n");
    made(&[template("base", &base), workflow("a", &user)])["tasks"][0]["config"].clone()
}

const BASE: &str = "
name: base
parameters:
  p: {type: string, default: one}
tasks:
  - {name: x, type: echo, timeout_seconds: 5, config: {text: \"${{ parameters.p }}\", more: {a: 1}}}
  - {name: y, type: noop, depends_on: [x]}
";

#[test]
fn a_value_that_is_all_of_a_text_keeps_its_type() {
    for (declared, given) in [
        ("{type: list}", "[1, {a: b}]"),
        ("{type: object}", "{a: [1, 2]}"),
        ("{type: integer}", "12"),
        ("{type: number}", "0.5"),
        ("{type: boolean}", "true"),
        ("{type: string}", "'12'"),
        ("{type: date}", "2026-01-31"),
    ] {
        let whole = config(declared, given, "{v: \"${{ parameters.p }}\"}");
        let plain = made(&[workflow(
            "a",
            &format!("name: a\ntasks: [{{name: x, type: echo, config: {{v: {given}}}}}]\n"),
        )]);
        assert_eq!(whole, plain["tasks"][0]["config"], "{given}");
    }
}

#[test]
fn a_value_within_a_longer_text_is_written_out() {
    let texts = |declared, given| config(declared, given, "[\"<${{ parameters.p }}>\"]")[0].clone();
    assert_eq!(texts("{type: list}", "[1, {a: b}]"), json!("<[1,{\"a\":\"b\"}]>"));
    assert_eq!(texts("{type: integer}", "12"), json!("<12>"));
    assert_eq!(texts("{type: boolean}", "false"), json!("<false>"));
    assert_eq!(texts("{type: string}", "a b"), json!("<a b>"));
    assert_eq!(texts("{type: string}", "''"), json!("<>"));
}

#[test]
fn a_parameter_may_stand_within_an_expression_of_a_run_and_in_any_field() {
    let base = "
name: base
parameters: {column: {type: string}, least: {type: integer}, tag: {type: string}}
tags: [\"${{ parameters.tag }}\"]
tasks:
  - name: ${{ parameters.tag }}
    type: echo
    when: inputs.n > ${{ parameters.least }}
    timeout_seconds: ${{ parameters.least }}
    config: {text: \"{{ inputs['${{ parameters.column }}'] }}\"}
";
    let user = "
name: a
extends: {template: base, parameters: {column: n, least: 3, tag: big}}
inputs: {n: {type: integer}}
";
    let workflow = made(&[template("base", base), workflow("a", user)]);
    let task = &workflow["tasks"][0];
    assert_eq!((&workflow["tags"], &task["name"]), (&json!(["big"]), &json!("big")));
    assert_eq!((&task["when"], &task["timeout_seconds"]), (&json!("inputs.n > 3"), &json!(3)));
    assert_eq!(task["config"]["text"], "{{ inputs['n'] }}");
}

#[test]
fn a_value_never_opens_a_template_together_with_the_text_around_it() {
    for (around, given) in [
        ("{${{ parameters.p }}", "'{ inputs.n }}'"),
        ("${{ parameters.p }}{ inputs.n }}", "'{'"),
        ("{${{ parameters.p }}{ 1", "''"),
    ] {
        let base = format!(
            "name: base\nparameters: {{p: {{type: string}}}}\ntasks: [{{name: x, type: echo, config: {{v: '{around}'}}}}]\n"
        );
        let user =
            format!("name: a\ninputs: {{n: {{type: string}}}}\nextends: base\nparameters: {{p: {given}}}\n");
        let compilation = compile(&[template("base", &base), workflow("a", &user)]);
        assert!(
            reported(&compilation).contains("would become part of a template"),
            "{around}: {}",
            reported(&compilation)
        );
        assert!(compilation.definitions.is_empty());
    }
}

#[test]
fn a_task_of_the_same_name_is_laid_over_and_others_are_appended() {
    let user = "
name: a
extends: base
tasks:
  - {name: z, type: noop, depends_on: [y]}
  - {name: x, timeout_seconds: 9, config: {more: {b: 2}}}
  - {name: y, depends_on: ~}
";
    let workflow = made(&[template("base", BASE), workflow("a", user)]);
    let tasks = workflow["tasks"].as_array().unwrap();
    let names: Vec<&Value> = tasks.iter().map(|task| &task["name"]).collect();
    assert_eq!(names, ["x", "y", "z"]);
    assert_eq!(tasks[0]["config"], json!({"text": "one", "more": {"b": 2}}));
    assert_eq!(tasks[0]["timeout_seconds"], 9);
    assert_eq!(tasks[1].get("depends_on"), None);
}

#[test]
fn another_type_leaves_nothing_of_the_old_ones_settings() {
    let base = "
name: base
tasks:
  - {name: r, type: switch, cases: [{default: true, next: [x]}]}
  - {name: x, type: echo, timeout_seconds: 5, depends_on: [r], config: {text: a}}
";
    let user = "
name: a
extends: base
tasks: [{name: r, type: noop}, {name: x, type: bash, config: {command: ls}}]
";
    let tasks = made(&[template("base", base), workflow("a", user)])["tasks"].clone();
    assert_eq!((&tasks[0]["type"], tasks[0].get("cases")), (&json!("noop"), None));
    assert_eq!(tasks[1]["config"], json!({"command": "ls"}));
    assert_eq!((&tasks[1]["timeout_seconds"], &tasks[1]["depends_on"]), (&json!(5), &json!(["r"])));
}

#[test]
fn a_reusable_task_of_a_template_can_be_changed_and_replaced() {
    let task = SourceFile {
        path: "tasks/say.yaml".into(),
        kind: FileKind::Task,
        text: "name: say\ntype: echo\nconfig: {text: hello}\n".into(),
    };
    let base = template("base", "name: base\ntasks: [{task: say, config: {loud: true}}]\n");
    let with = |entry: &str| {
        let user = workflow("a", &format!("name: a\nextends: base\ntasks: [{entry}]\n"));
        made(&[task.clone(), base.clone(), user])["tasks"].clone()
    };
    let changed = with("{name: say, config: {text: bye}}");
    assert_eq!(
        (changed.as_array().unwrap().len(), &changed[0]["config"]),
        (1, &json!({"text": "bye", "loud": true}))
    );
    assert_eq!(with("{name: say, type: noop}")[0]["type"], "noop");
}

#[test]
fn what_a_template_leaves_open_is_given_by_the_file_that_extends_it() {
    let middle = template("middle", "name: middle\nextends: base\ntasks: [{name: y, remove: true}]\n");
    let user = workflow("a", "name: a\nextends: middle\nparameters: {p: two}\n");
    let files = [template("base", BASE), middle, user];
    let tasks = made(&files)["tasks"].clone();
    assert_eq!((tasks.as_array().unwrap().len(), &tasks[0]["config"]["text"]), (1, &json!("two")));
}

#[test]
fn what_a_template_gives_is_no_longer_open_and_can_be_made_of_its_own_parameters() {
    let middle = "
name: middle
parameters: {q: {type: string, default: deep}}
extends: {template: base, parameters: {p: \"very ${{ parameters.q }}\"}}
";
    let with =
        |user: &str| compile(&[template("base", BASE), template("middle", middle), workflow("a", user)]);
    let sound = with("name: a\nextends: {template: middle, parameters: {q: high}}\n");
    assert_eq!(sound.definitions[0].workflow.tasks[0].config["text"], "very high");
    let refused = with("name: a\nextends: {template: middle, parameters: {p: high}}\n");
    insta::assert_snapshot!(reported(&refused));
}

#[test]
fn a_cycle_of_templates_is_reported_once_and_stops_only_its_users() {
    let extending = |name: &str, base: &str| template(name, &format!("name: {name}\nextends: {base}\n"));
    let files = [
        extending("a", "b"),
        extending("b", "c"),
        extending("c", "a"),
        extending("into", "b"),
        template("base", BASE),
        workflow("bad", "name: bad\nextends: into\n"),
        workflow("good", "name: good\nextends: base\n"),
    ];
    let compilation = compile(&files);
    assert_eq!(compilation.definitions.len(), 1);
    insta::assert_snapshot!(reported(&compilation));
}

#[test]
fn ten_templates_may_extend_one_another_and_no_more() {
    let chain = |length: usize| {
        let mut files = vec![template("t1", &BASE.replace("base", "t1"))];
        files.extend(
            (2..=length).map(|n| template(&format!("t{n}"), &format!("name: t{n}\nextends: t{}\n", n - 1))),
        );
        files.push(workflow("a", &format!("name: a\nextends: t{length}\n")));
        compile(&files)
    };
    assert_eq!(chain(10).definitions.len(), 1);
    insta::assert_snapshot!(reported(&chain(11)));
}

#[test]
fn a_broken_template_is_reported_once_and_its_users_cannot_use_it() {
    let files = [
        template("torn", "tasks: ["),
        template("odd", "name: odd\ntasks: [{name: x, type: noop, colour: red}]\n"),
        template("middle", "name: middle\nextends: odd\n"),
        workflow("one", "name: one\nextends: torn\n"),
        workflow("two", "name: two\nextends: odd\n"),
        workflow("three", "name: three\nextends: middle\n"),
    ];
    insta::assert_snapshot!(reported(&compile(&files)));
}

#[test]
fn a_problem_that_shows_only_in_use_names_its_users() {
    let base = "name: base\ntasks: [{name: x, type: echo, config: {text: \"{{ inputs.day }}\"}}]\n";
    let user = |name: &str| workflow(name, &format!("name: {name}\nextends: base\n"));
    let alone = compile(&[template("base", base), user("a")]);
    let together = compile(&[template("base", base), user("a"), user("b"), user("c")]);
    insta::assert_snapshot!(reported(&alone));
    insta::assert_snapshot!(reported(&together));
}

#[test]
fn a_value_that_does_not_fit_is_reported_where_it_was_given() {
    let base = "
name: base
parameters: {p: {type: integer}}
tasks: [{name: x, type: http, timeout_seconds: \"${{ parameters.p }}\", config: {url: \"http://x/\", method: \"${{ parameters.p }}\"}}]
";
    let user = "name: a\nextends: base\nparameters:\n  p: 100000\n";
    insta::assert_snapshot!(reported(&compile(&[template("base", base), workflow("a", user)])));
}

#[test]
fn two_templates_of_one_name_are_refused() {
    let mut twin = template("base", BASE);
    twin.path = "more/base.yaml".into();
    insta::assert_snapshot!(reported(&compile(&[template("base", BASE), twin])));
}

#[test]
fn a_short_file_cannot_become_a_huge_workflow() {
    let many = "${{ parameters.p }}".repeat(40);
    let mut files = vec![template(
        "t1",
        &format!(
            "name: t1\nparameters: {{p: {{type: string}}}}\ntasks: [{{name: x, type: echo, config: {{v: '{many}'}}}}]\n"
        ),
    )];
    for n in 2..=10 {
        let text = format!(
            "name: t{n}\nparameters: {{p: {{type: string}}}}\nextends: {{template: t{}, parameters: {{p: '{many}'}}}}\n",
            n - 1
        );
        files.push(template(&format!("t{n}"), &text));
    }
    files.push(workflow("a", "name: a\nextends: {template: t10, parameters: {p: xxxxxxxxxx}}\n"));
    let compilation = compile(&files);
    assert!(compilation.definitions.is_empty());
    assert!(
        reported(&compilation).contains("the workflow has more than the 4 MiB allowed"),
        "{}",
        reported(&compilation).len()
    );
}

#[test]
fn the_source_is_the_workflows_own_and_the_hash_follows_its_template() {
    let text = "name: a\nextends: base\n";
    let with = |base: &str| compile(&[template("base", base), workflow("a", text)]).definitions.remove(0);
    let (one, other) = (with(BASE), with(&BASE.replace("default: one", "default: two")));
    assert_eq!((one.source.as_str(), other.source.as_str()), (text, text));
    assert_ne!(one.hash, other.hash);
    let plain = "name: a\ntasks:\n  - {name: x, type: echo, timeout_seconds: 5, config: {text: one, more: {a: 1}}}\n  - {name: y, type: noop, depends_on: [x]}\n";
    assert_eq!(one.hash, compile(&[workflow("a", plain)]).definitions[0].hash);
}

//! Files compiled together: who may spoil whom, and what the hash stands for.

use ebbflow_language::{Compilation, FileKind, SourceFile, compile};
use proptest::prelude::*;

fn workflow(name: &str, text: &str) -> SourceFile {
    SourceFile { path: format!("graphs/{name}.yaml"), kind: FileKind::Workflow, text: text.to_owned() }
}

fn task(name: &str, text: &str) -> SourceFile {
    SourceFile { path: format!("tasks/{name}.yaml"), kind: FileKind::Task, text: text.to_owned() }
}

fn names(compilation: &Compilation) -> Vec<&str> {
    compilation.definitions.iter().map(|definition| definition.workflow.name.as_str()).collect()
}

fn reported(compilation: &Compilation) -> Vec<String> {
    compilation.diagnostics.iter().map(ToString::to_string).collect()
}

fn hash(text: &str) -> String {
    compile(&[workflow("a", text)]).definitions.remove(0).hash
}

const A: &str = "name: a\ntasks: [{name: x, type: noop}]\n";

#[test]
fn one_bad_file_never_stops_the_others() {
    let files = [workflow("broken", "tasks: ["), workflow("a", A), workflow("b", "name: b\ntasks: []\n")];
    let compilation = compile(&files);
    assert_eq!(names(&compilation), ["a"]);
    assert_eq!(compilation.definitions[0].source, A);
    assert_eq!(compilation.diagnostics.len(), 2);
}

#[test]
fn a_broken_task_is_reported_to_its_users_and_stops_no_others() {
    let files = [
        task("bad", "name: bad\ntype: http\nconfig: {ulr: x, body: '{{ 1 + }}'}\n"),
        task("torn", "name: torn\ntype: [\n"),
        workflow(
            "user",
            "name: user\ntasks: [{task: bad}, {task: torn}, {name: z, type: noop, depends_on: [bad]}]\n",
        ),
        workflow("a", A),
    ];
    let compilation = compile(&files);
    assert_eq!(names(&compilation), ["a"]);
    insta::assert_snapshot!(reported(&compilation).join("\n"));
}

#[test]
fn a_network_that_no_worker_can_enforce_is_rejected_with_what_to_use_instead() {
    let program = |network: &str| {
        let task = format!("{{name: x, type: bash, network: {network}, config: {{command: 'true'}}}}");
        reported(&compile(&[workflow("a", &format!("name: a\ntasks: [{task}]\n"))])).join("\n")
    };
    for network in ["none", "shared"] {
        assert_eq!(program(network), "");
    }
    for network in ["internet", "internal"] {
        let problem = program(network);
        for part in [&format!("`network: {network}` is not supported"), "use `none`, or a queue"] {
            assert!(problem.contains(part), "{problem}");
        }
    }
    assert!(program("intern").contains("`intern` is not one of the values allowed here"));
}

#[test]
fn what_a_reusable_task_lacks_is_reported_at_its_use() {
    let files = [
        task("call", "name: call\ntype: http\nconfig: {body: '{{ outputs.first }}'}\n"),
        workflow("user", "name: user\ntasks:\n  - task: call\n    config: {method: POST}\n"),
    ];
    insta::assert_snapshot!(reported(&compile(&files)).join("\n"));
}

#[test]
fn a_switch_cannot_be_reusable_and_an_expression_is_checked_where_it_is_used() {
    let files = [
        task("route", "name: route\ntype: switch\n"),
        task("bad", "name: bad\ntype: transform\nconfig: {expression: 1 +}\n"),
        task("double", "name: double\ntype: transform\nconfig: {expression: inputs.n + inputs.n}\n"),
        workflow("a", "name: a\ninputs: {n: {type: integer}}\ntasks: [{task: double, when: inputs.n > 1}]\n"),
        workflow("b", "name: b\ntasks: [{task: double}]\n"),
    ];
    let compilation = compile(&files);
    assert_eq!(names(&compilation), ["a"]);
    insta::assert_snapshot!(reported(&compilation).join("\n"));
}

#[test]
fn two_workflows_or_tasks_of_one_name_are_rejected() {
    let mut twin = workflow("a", A);
    twin.path = "other/a.yml".to_owned();
    let mut task_twin = task("t", "name: t\ntype: noop\n");
    task_twin.path = "more/t.yaml".to_owned();
    let files = [workflow("a", A), twin, task("t", "name: t\ntype: noop\n"), task_twin];
    let compilation = compile(&files);
    assert_eq!(names(&compilation), ["a"]);
    insta::assert_snapshot!(reported(&compilation).join("\n"));
}

#[test]
fn a_text_that_is_no_file_needs_no_file_name() {
    let source = SourceFile { path: "request".to_owned(), kind: FileKind::Workflow, text: A.to_owned() };
    assert_eq!(names(&compile(&[source])), ["a"]);
}

#[test]
fn the_hash_follows_the_meaning_and_not_the_writing() {
    let spaced = "# a comment\ntasks:\n  - type: noop\n    name: x\nname: a\n";
    assert_eq!(hash(A), hash(spaced));
    assert_eq!(hash(A).len(), 64);
    assert_ne!(hash(A), hash("name: a\ntasks: [{name: y, type: noop}]\n"));
}

#[test]
fn a_change_in_a_reusable_task_changes_the_hash_of_its_users() {
    let user = workflow("a", "name: a\ntasks: [{task: t}]\n");
    let with = |text| compile(&[task("t", text), user.clone()]).definitions.remove(0).hash;
    assert_ne!(with("name: t\ntype: noop\n"), with("name: t\ntype: echo\n"));
}

#[test]
fn too_many_tasks_are_refused_and_as_many_as_allowed_compile() {
    let many = |count: u32| {
        let tasks: String = (0..count).map(|n| format!("- {{name: t{n}, type: noop}}\n")).collect();
        compile(&[workflow("a", &format!("name: a\ntasks:\n{tasks}"))])
    };
    assert_eq!(many(10_000).definitions.len(), 1);
    let refused = many(10_001);
    assert_eq!(reported(&refused).len(), 1);
    assert!(
        reported(&refused)[0].contains("10001 tasks, more than the 10000 allowed"),
        "{:?}",
        reported(&refused)
    );
}

#[test]
fn a_chain_that_is_too_long_is_refused_where_it_becomes_so() {
    let chain = |length: u32| {
        let task = |n: u32| match n {
            0 => "- {name: t0, type: noop}\n".to_owned(),
            n => format!("- {{name: t{n}, type: noop, depends_on: [t{}]}}\n", n - 1),
        };
        let tasks: String = (0..length).map(task).collect();
        compile(&[workflow("a", &format!("name: a\ntasks:\n{tasks}"))])
    };
    assert_eq!(reported(&chain(1_000)), [""; 0]);
    let expected = "graphs/a.yaml:1003:3: tasks[1000]: 1005 tasks wait for one another in a chain, more than \
                    the 1000 allowed (split the workflow, or let tasks depend on earlier ones)";
    assert_eq!(reported(&chain(1_005)), [expected]);
}

#[test]
fn a_file_that_is_too_large_or_nested_too_deep_is_refused() {
    let large = format!("name: a\n#{}\ntasks: [{{name: x, type: noop}}]\n", "x".repeat(1024 * 1024));
    let expected = "graphs/a.yaml:1:1: the file has 1048617 bytes, more than the 1048576 allowed \
                    (split the workflow, or keep data elsewhere)";
    assert_eq!(reported(&compile(&[workflow("a", &large)])), [expected]);
    let nested = |depth: usize| {
        let config = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        compile(&[workflow("a", &format!("name: a\ntasks: [{{name: x, type: echo, config: {config}}}]\n"))])
    };
    assert_eq!(reported(&nested(40)), [""; 0]);
    let refusal = reported(&nested(60)).join("\n");
    assert!(refusal.contains("nested more than 48 levels deep"), "{refusal}");
}

#[test]
fn a_global_task_is_one_that_a_worker_carries_out_and_fans_are_not_reusable() {
    let files = [
        task("wait", "name: wait\ntype: sleep\nglobal: true\nconfig: {duration: 5m}\n"),
        task("kept", "name: kept\ntype: echo\nreuse_for_seconds: 60\n"),
        task("old", "name: old\ntype: echo\nglobal: yes\nreuse_for_seconds: 31536001\n"),
        task("split", "name: split\ntype: fan_out\n"),
        task("merge", "name: merge\ntype: fan_in\n"),
        task("tells", "name: tells\ntype: noop\non_failure: {notify: {webhook: 'https://x/{{ 1 + }}'}}\n"),
    ];
    insta::assert_snapshot!(reported(&compile(&files)).join("\n"));
}

#[test]
fn the_callbacks_of_a_reusable_task_are_checked_where_it_is_used() {
    let files = [
        task("t", "name: t\ntype: noop\non_retry: {notify: {message: '{{ inputs.topic }}'}}\n"),
        workflow("a", "name: a\ninputs: {topic: {type: string}}\ntasks: [{task: t}]\n"),
        workflow("b", "name: b\ntasks: [{task: t}]\n"),
    ];
    let compilation = compile(&files);
    assert_eq!(names(&compilation), ["a"]);
    insta::assert_snapshot!(reported(&compilation).join("\n"));
}

#[test]
fn every_form_of_cron_is_understood() {
    let cron = |pattern: &str| {
        let text = format!("name: a\nschedule: {{cron: \"{pattern}\"}}\ntasks: [{{name: x, type: noop}}]\n");
        let compilation = compile(&[workflow("a", &text)]);
        assert_eq!(reported(&compilation), [""; 0], "{pattern}");
        match &compilation.definitions[0].workflow.schedules[0].when {
            model::When::Cron(pattern) => pattern.clone(),
            other => panic!("{other:?}"),
        }
    };
    for pattern in [
        "0 18 * * 1-5",
        "*/15 9-17 * JAN,MAR-MAY MON-FRI",
        "30 */10 * * * *",
        "0 0 L * *",
        "0 0 15W * *",
        "0 0 * * 5L",
        "0 0 * * FRI#2",
        "0 0 31 4 *",
        "0 0 29 2 *",
        "0 0 30 2 1",
        "0 0 ? * 7",
    ] {
        assert_eq!(cron(pattern), pattern);
    }
    assert_eq!(cron(" 0  18 * * 1-5 "), "0 18 * * 1-5");
    let aliases = ["@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"].map(cron);
    assert_eq!(
        aliases,
        ["0 * * * *", "0 0 * * *", "0 0 * * *", "0 0 * * 0", "0 0 1 * *", "0 0 1 1 *", "0 0 1 1 *"]
    );
}

#[test]
fn diagnostics_serialize_for_answers() {
    let diagnostics = compile(&[workflow("a", "name: a\ntasks: [{name: x, type: nop}]\n")]).diagnostics;
    insta::assert_snapshot!(serde_json::to_string_pretty(&diagnostics).unwrap());
}

/// Text that looks like a workflow often enough to get far.
fn almost_yaml() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("name: a"),
        Just("tasks:"),
        Just("- name: x"),
        Just("- task: t"),
        Just("  type: http"),
        Just("  type: sleep"),
        Just("  type: switch"),
        Just("  type: fan_out"),
        Just("  type: fan_in"),
        Just("  for_each: inputs.d"),
        Just("  task: {type: echo, config: '{{ item.a }} {{ secrets.a-b }}'}"),
        Just("  task: t"),
        Just("global: true"),
        Just("on_failure: [{notify: [{webhook: '{{ event.x }}'}, {message: {}}]}, x]"),
        Just("schedule: {cron: '*/5 é * * *', timezone: é}"),
        Just("concurrency: {key: '{{', limit: 0}"),
        Just("  depends_on: [x, y]"),
        Just("  depends_on: {any_of: [x], all_of: [y]}"),
        Just("  when: inputs.d | default(outputs.x) > '"),
        Just("  cases: [{when: run.id == 'a', next: [x, t]}, {default: true, next: [x]}]"),
        Just("  config: {signal: '{{', fields: {a: {type: 1}}, expression: '1 }} {{'}"),
        Just("  config: {url: '{{ outputs.x }}', auth: {bearer: 1}}"),
        Just("  config: &c {duration: 5m, <<: *c}"),
        Just("inputs: {d: {type: date, default: '{{ logical_date | date }}'}}"),
        Just("  retry_policy: {max_retries: 3}"),
        Just("defaults: ["),
        Just("extends: t"),
        Just("extends: {template: t, parameters: {p: [1]}}"),
        Just("parameters: {p: {type: string, default: x, pattern: 'x{1'}}"),
        Just("  description: a ${{ parameters.p }} {${{ parameters.q"),
        Just("? [a, b]"),
        Just("!!str"),
    ];
    let line = prop_oneof![4 => word.prop_map(str::to_owned), 1 => "\\PC{0,12}"];
    let indent = prop_oneof![Just(""), Just("  "), Just("    ")];
    prop::collection::vec((indent, line), 0..12)
        .prop_map(|lines| lines.into_iter().map(|(indent, line)| format!("{indent}{line}\n")).collect())
}

proptest! {
    #[test]
    fn no_text_makes_the_compiler_panic(text in prop_oneof![almost_yaml(), ".{0,200}", "\\PC{0,200}"]) {
        let template =
            SourceFile { path: "templates/t.yaml".into(), kind: FileKind::Template, text: text.clone() };
        let files = [task("t", &text), template, workflow("a", &text)];
        let compilation = compile(&files);
        prop_assert!(compilation.definitions.len() <= 1);
        prop_assert!(!compilation.definitions.is_empty() || !compilation.diagnostics.is_empty());
        for diagnostic in &compilation.diagnostics {
            prop_assert!(diagnostic.line >= 1 && diagnostic.column >= 1, "{}", diagnostic);
        }
    }
}

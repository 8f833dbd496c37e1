//! What files and templates cannot do to the machine: grow from loop to loop, work on large values again and again, be
//! so deep that the stack ends, or take the square of their length in time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use ebbflow_language::expression::evaluate;
use ebbflow_language::template::{Scope, render};
use ebbflow_language::{FileKind, SourceFile, compile};
use serde_json::{Value, json};

fn scope() -> Scope {
    let list = || (0..5_000).collect::<Vec<_>>();
    let inputs = json!({
        "n": 21, "word": "abc", "long": "x".repeat(200_000), "twin": "x".repeat(200_000), "many": list(),
        "others": list(), "nested": [list()], "twins": [list()], "rows": [{"id": 1}, {"id": 2}],
        "names": vec!["aaaaaaaaaaaaaaaaaaaa"; 2_000], "part": "y".repeat(1_000),
        "wide": (0..1_000).map(|id| json!({"id": id, "text": "x".repeat(100)})).collect::<Vec<_>>(),
        "few": (0..1_000).collect::<Vec<_>>(),
    });
    Scope { inputs: inputs.as_object().unwrap().clone(), ..Scope::default() }
}

#[track_caller]
fn refused(template: &str, because: &str) {
    let error = render(&json!(template), &scope()).expect_err("it must be refused").to_string();
    assert!(error.contains(because), "{}: {error}", &template[..template.len().min(200)]);
}

#[track_caller]
fn check(template: &str, expected: Value) {
    assert_eq!(render(&json!(template), &scope()).unwrap(), expected);
}

#[test]
fn no_chain_is_too_long_for_the_stack() {
    let few = Scope { inputs: [("word".to_owned(), json!("abc"))].into_iter().collect(), ..Scope::default() };
    for (before, middle, after) in [
        ("1 + ", "1", ""),
        ("1 ~ ", "1", ""),
        ("2 ** ", "1", ""),
        ("not ", "1", ""),
        ("- ", "1", ""),
        ("1 and ", "1", ""),
        ("1 if 1 else ", "1", ""),
        ("", "inputs", ".word"),
        ("", "inputs.word", "[0]"),
        ("", "inputs.word", "[:]"),
        ("", "inputs.word", " | upper"),
        ("", "1", " is number"),
        ("(1, ", "1", ").word"),
        ("[1 + 1, ", "1", "][1]"),
    ] {
        let chain = |times: usize| before.repeat(times) + middle + &after.repeat(times);
        let error = evaluate(&chain(5_000), &few).expect_err("it must be refused").to_string();
        assert!(error.contains("the expression is not valid"), "{before}{middle}{after}: {error}");
        // The longest that are read at all fit as well.
        (1..400).step_by(9).for_each(|times| drop(evaluate(&chain(times), &few)));
    }
    check(&format!("{{{{ {} }}}}", vec!["1"; 300].join(" + ")), json!(300));
    check(&format!("{{{{ [{}] | length }}}}", vec!["1 + 1"; 5_000].join(", ")), json!(5_000));
}

#[test]
fn alternatives_are_not_endless() {
    let template = |times: usize| format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(times));
    refused(&template(5_000), "the template is not valid");
    check(&template(100), json!(""));
}

/// Loops in loops, each over something made of the name that the loop around it gives.
fn nested_loops(levels: usize, over: &str, end: &str) -> String {
    let name = |level: usize| format!("x{level}");
    let each = |level| format!("{{% for {} in {} %}}", name(level + 1), over.replace('X', &name(level)));
    let opened: String = (0..levels).map(each).collect();
    let closed = "{% endfor %}".repeat(levels + 1);
    format!("{{% for x0 in ['abc'] %}}{opened}{}{closed}", end.replace('X', &name(levels)))
}

#[test]
fn nothing_doubles_from_loop_to_loop() {
    for over in ["[X ~ X]", "[X + X]", "[[X, X]]", "[{'a': X, 'b': X}]", "[(X, X)]", "[X | join(X)]"] {
        let template = nested_loops(40, over, "{{ X | length }}");
        refused(&template, "a loop cannot iterate over a value built from `x0`");
    }
    let rows = "{% for row in inputs.rows %}{% for n in range(row.id + 1) %}{{ n }}{% endfor %};{% endfor %}";
    check(rows, json!("01;012;"));
}

#[test]
fn operators_in_loops_take_fewer_steps_on_large_values() {
    for work in [
        "inputs.long == inputs.twin",
        "'zz' in inputs.long",
        "inputs.many == inputs.others",
        "-1 in inputs.many",
        "-1 in range(99999)",
        "(inputs.long ~ 'x') is string",
        "inputs.long[1:] is string",
    ] {
        let often = format!("{{% for x in range(9000) %}}{{{{ {work} }}}}{{% endfor %}}");
        refused(&often, "it takes too many steps (loops take fewer where operators work on large values)");
    }
    let by_name =
        "{% for y in [inputs.long] %}{% for x in range(9000) %}{{ y ~ x == y }}{% endfor %}{% endfor %}";
    refused(by_name, "too many steps");
    let small = "{% for n in inputs.few %}{% if n > inputs.n and n + 1 < 24 %}{{ n }}{% endif %}{% endfor %}";
    check(small, json!("22"));
    let usual = "{% for row in inputs.wide | default([]) %}{% if row.id + 1 in range(3) %}{{ row.id ~ ';' }}{% endif %}{% endfor %}";
    check(usual, json!("0;1;"));
}

#[test]
fn operators_work_on_no_more_than_fits_into_memory() {
    let sum = vec!["inputs.long"; 250].join(" ~ ");
    refused(&format!("{{{{ ({sum}) | length }}}}"), "its operators work on values that are too large");
}

#[test]
fn what_filters_make_and_compare_counts_too() {
    refused(
        "{{ inputs.names | map('replace', 'a', inputs.part) | list | length }}",
        "makes values that are too large",
    );
    refused("{% for x in range(9000) %}{{ inputs.nested is eq(inputs.twins) }}{% endfor %}", "too large");
    let chain = " | map('string')".repeat(100);
    refused(&format!("{{{{ inputs.many{chain} | list | length }}}}"), "makes values that are too large");
    check("{% for x in inputs.rows %}{{ inputs.nested | length }}{% endfor %}", json!("11"));
}

/// What a file's problems are: of many, a hundred and how many more.
fn messages(text: String) -> Vec<String> {
    let file = SourceFile { path: "inline".to_owned(), kind: FileKind::Workflow, text };
    compile(&[file]).diagnostics.into_iter().map(|problem| problem.message).collect()
}

fn problems(text: String) -> usize {
    messages(text).len()
}

/// A file of about a megabyte that repeats a line with a number in it.
fn large(head: &str, line: impl Fn(usize) -> String, tail: &str) -> String {
    let mut text = head.to_owned();
    for number in 0.. {
        let line = line(number);
        if text.len() + line.len() + tail.len() > 1024 * 1024 {
            break;
        }
        text += &line;
    }
    text + tail
}

/// The processor time that this thread has used, where the system reports it: others use the machine too.
fn busy_seconds() -> f64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    statistics.split(' ').next().and_then(|nanoseconds| nanoseconds.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

const TASKS: &str = "tasks: [{name: x, type: noop}]\n";

#[test]
fn a_file_full_of_mistakes_is_read_in_time_by_its_length() {
    let files = [
        large("name: a\n", |n| format!("unknown{n}: 1\n"), TASKS),
        large(
            "name: a\ninputs:\n",
            |n| format!("  a{n}: {{type: string, default: '{{{{ inputs.b{n} }}}}'}}\n"),
            TASKS,
        ),
        large(
            "name: a\ntasks:\n- name: x\n  type: http\n  config:\n",
            |n| format!("    unknown{n}: 1\n"),
            "",
        ),
        large("name: a\ntasks:\n- name: x\n  type: noop\n  depends_on:\n", |n| format!("  - t{n}\n"), ""),
        large("name: a\ntasks:\n- name: x\n  type: noop\n  depends_on:\n", |_| "  - x1\n".to_owned(), ""),
        large("name: a\ntriggers:\n- name: t\n  event: e\n  inputs:\n", |n| format!("    a{n}: 1\n"), TASKS),
        large("name: a\ntasks:\n", |n| format!("- {{name: t, type: nop{n}}}\n"), ""),
        large("name: a\nextends: b\nparameters:\n", |n| format!("  a{n}: 1\n"), TASKS),
    ];
    for file in files {
        let start = busy_seconds();
        let found = messages(file);
        // A few seconds at most, and minutes if it took the square of the length.
        let took = busy_seconds() - start;
        assert!(took < 60.0, "it took {took} seconds: {:?}", found.first());
        assert!(found.len() <= 101, "{}", found.len());
    }
}

#[test]
fn of_many_problems_a_hundred_are_shown_and_the_rest_counted() {
    let file = |count: usize| {
        let fields: String = (0..count).map(|number| format!("unknown{number}: 1\n")).collect();
        format!("name: a\n{fields}{TASKS}")
    };
    assert_eq!(messages(file(100)).len(), 100);
    let found = messages(file(4_300));
    assert_eq!(found.len(), 101);
    assert_eq!(found[100], "and 4,200 more");
}

#[test]
fn a_long_command_is_read_soon() {
    let command = |text: &str| {
        format!(
            "name: a\ninputs: {{v: {{type: string}}}}\ntasks: [{{name: x, type: bash, config: {{command: '{text}'}}}}]\n"
        )
    };
    assert_eq!(problems(command(&format!("echo {}", "{{ inputs.v }} -eq ".repeat(20_000)))), 0);
    assert_ne!(problems(command(&"$(( {{ inputs.v }} ".repeat(20_000))), 0);
    assert_eq!(problems(command(&"{{ ".repeat(200_000))), 0);
}

fn file(kind: FileKind, path: &str, text: String) -> SourceFile {
    SourceFile { path: path.to_owned(), kind, text }
}

/// The first problem of files that come to more than they may when what they share is written out.
#[track_caller]
fn excess(files: &[SourceFile]) -> String {
    let compiled = compile(files);
    let first = compiled.diagnostics.first().expect("it is refused").to_string();
    assert!(first.contains("each use of something shared is written out"), "{first:.300}");
    first
}

const IN_WORKFLOW: &str =
    "the workflow has more than the 4 MiB allowed (split the workflow, or keep data elsewhere)";
const TOGETHER: &str = "the workflows have more than the 16 MiB allowed together (send fewer files at a time, or keep data elsewhere)";

#[test]
fn the_uses_of_a_reusable_task_have_a_limit_together() {
    let with = |bytes: usize, uses: usize, entry: &dyn Fn(usize) -> String| {
        let big = format!("{{name: big, type: echo, config: {{value: {}}}}}", "x".repeat(bytes));
        let entries: Vec<String> = (0..uses).map(entry).collect();
        let tasks = entries.join("\n");
        [
            file(FileKind::Task, "tasks/big.yaml", big),
            file(FileKind::Workflow, "graphs/a.yaml", format!("name: a\ntasks:\n{tasks}\n")),
        ]
    };
    let task = |number: usize| format!("- {{task: big, name: t{number}}}");
    assert_eq!(compile(&with(1_000, 3_000, &task)).definitions.len(), 1);
    let error = excess(&with(500_000, 10_000, &task));
    assert!(
        error.starts_with("graphs/a.yaml:11:10: tasks[8].task: ") && error.ends_with(IN_WORKFLOW),
        "{error}"
    );
    for child in ["big", "{task: big}"] {
        let entry =
            |number: usize| format!("- {{name: t{number}, type: fan_out, for_each: '[1]', task: {child}}}");
        let error = excess(&with(500_000, 10_000, &entry));
        assert!(error.starts_with("graphs/a.yaml:11:") && error.ends_with(IN_WORKFLOW), "{error}");
    }
    // A template may use them too.
    let [big, uses] = with(500_000, 10_000, &task);
    let template = file(FileKind::Template, "templates/a.yaml", uses.text);
    assert!(excess(&[big, template]).starts_with("templates/a.yaml:11:10: tasks[8].task: "));
}

#[test]
fn the_uses_of_a_script_have_a_limit_together() {
    let with = |uses: usize| {
        let tasks =
            (0..uses).map(|n| format!("  - {{name: t{n}, type: bash, config: {{script: long.sh}}}}\n"));
        let text = format!("name: a\ntasks:\n{}", tasks.collect::<String>());
        [
            file(FileKind::Script, "long.sh", "x".repeat(200_000)),
            file(FileKind::Workflow, "graphs/a.yaml", text),
        ]
    };
    assert_eq!(compile(&with(20)).definitions.len(), 1);
    let error = excess(&with(10_000));
    assert!(error.starts_with("graphs/a.yaml:1:7: name: ") && error.ends_with(IN_WORKFLOW), "{error}");
}

#[test]
fn the_uses_of_a_template_have_a_limit_together() {
    let with = |uses: usize| {
        let long = "x".repeat(500_000);
        let text = format!("name: base\ntasks: [{{name: x, type: echo, config: {{value: {long}}}}}]\n");
        let mut files = vec![file(FileKind::Template, "templates/base.yaml", text)];
        let extending = |n| {
            file(
                FileKind::Workflow,
                &format!("graphs/w{n:05}.yaml"),
                format!("name: w{n:05}\nextends: base\n"),
            )
        };
        files.extend((0..uses).map(extending));
        files
    };
    assert_eq!(compile(&with(30)).definitions.len(), 30);
    let (files, error) = (with(5_000), excess(&with(5_000)));
    assert!(error.starts_with("graphs/w00033.yaml:2:10: extends: ") && error.ends_with(TOGETHER), "{error}");
    // Each workflow without its part has a problem: none is used as if it were whole.
    let compiled = compile(&files);
    assert_eq!((compiled.definitions.len(), compiled.diagnostics.len()), (33, 5_000 - 33));
}

#[test]
fn the_uses_of_a_custom_type_have_a_limit_together() {
    let long = "x".repeat(500_000);
    let text = format!("{{name: t.x, queue: gpu, config: {{type: object, description: {long}}}}}");
    let queue = file(FileKind::Queue, "queues/gpu.yaml", "{name: gpu, kind: pool}".to_owned());
    let mut files = vec![queue, file(FileKind::Type, "types/t.x.yaml", text)];
    let using = |n| format!("{{name: w{n:05}, tasks: [{{name: a, type: t.x}}, {{name: b, type: t.x}}]}}");
    files.extend((0..5_000).map(|n| file(FileKind::Workflow, &format!("graphs/w{n:05}.yaml"), using(n))));
    let error = excess(&files);
    assert!(error.starts_with("graphs/w00033.yaml:1:24: tasks[0]: ") && error.ends_with(TOGETHER), "{error}");
}

#[test]
fn the_uses_of_an_alias_have_a_limit_together() {
    let with = |bytes: usize, uses: usize| {
        // Of one anchor, there may be ten aliases on average.
        let others: String = (0..=uses / 10).map(|n| format!("    - &b{n} x\n")).collect();
        let (long, uses) = ("x".repeat(bytes), "    - *a\n".repeat(uses));
        format!(
            "name: a\ntasks:\n- name: a\n  type: echo\n  config:\n    value:\n{others}    - &a {long}\n{uses}"
        )
    };
    assert_eq!(messages(with(10_000, 300)), [""; 0]);
    assert!(messages(with(50_000, 5_000))[0].contains("aliases included"));
    let files = |number: usize| {
        file(
            FileKind::Workflow,
            &format!("{number}"),
            with(50_000, 60).replace("name: a\ntasks", &format!("name: a{number}\ntasks")),
        )
    };
    let error = excess(&(0..18).map(files).collect::<Vec<_>>());
    assert!(error.ends_with(TOGETHER), "{error}");
}

#[test]
fn a_long_key_or_module_takes_no_memory_for_each_part_of_it() {
    let parts: String = (0..40_000).map(|n| format!("u{n}: 1, ")).collect();
    let long = "k".repeat(200_000);
    let key =
        format!("name: x\ntasks:\n- name: a\n  type: noop\n  config:\n    ? {long}\n    : {{{parts}}}\n");
    let keys = messages(key);
    assert!(keys.len() <= 101 && keys[0].contains("kkkkk"), "{} {:.100}", keys.len(), keys[0]);
    let python = format!(
        "{{name: a, tasks: [{{name: a, type: python, config: {{function: 'a{}:f'}}}}]}}",
        ".a".repeat(200_000)
    );
    let script = file(FileKind::Script, "a.py", "x".to_owned());
    let compiled = compile(&[script, file(FileKind::Workflow, "inline", python)]);
    assert!(
        compiled.diagnostics[0].message.contains("more than the 255 allowed"),
        "{:.200}",
        compiled.diagnostics[0].message
    );
}

//! Test files that cannot be used: every problem at once, with its place and how to put it right.

use ebbflow_workflow_test::{Refusal, Suite, TestFile};

use crate::{read, refused, workflow};

const FLOW: &str = "  - {name: work, type: bash, config: {command: 'true'}}
  - {name: route, type: switch, depends_on: [work], cases: [{default: true, next: [ask]}]}
  - {name: ask, type: approval, config: {approvers: [ana], fields: {sum: {type: number, required: true}}}}
  - {name: wait, type: wait_for_signal, config: {signal: go}}
";

#[test]
fn what_is_wrong_is_reported_with_line_column_and_a_hint() {
    let test = |body: &str| format!("  - name: it\n    {body}\n    expect: {{}}\n");
    for (body, message) in [
        (
            "tasks: {wrok: {}}",
            "4:13: tests[0].tasks.wrok: the workflow `flow` has no task `wrok` (did you mean `work`?)",
        ),
        ("taks: {work: {}}", "4:5: tests[0].taks: unknown field `taks` (did you mean `tasks`?)"),
        (
            "tasks: {route: {}}",
            "4:13: tests[0].tasks.route: `route` takes no stub: the engine executes `switch` itself (stub the tasks it depends on instead)",
        ),
        (
            "tasks: {wait: {}}",
            "4:13: tests[0].tasks.wait: `wait` takes no stub: the engine executes `wait_for_signal` itself \
             (provide the answer under `meanwhile`)",
        ),
        (
            "tasks: {work: {output: 1, fail: x}}",
            "4:37: tests[0].tasks.work.fail: an attempt has either an `output` or a `fail`, not both (use a list for several attempts)",
        ),
        ("tasks: {work: []}", "4:19: tests[0].tasks.work: a list of attempts needs at least one"),
        (
            "tasks: {work: {fail: {message: x, class: permament}}}",
            "4:46: tests[0].tasks.work.fail.class: `permament` is not one of the values allowed here (did you mean \
             `permanent`?)",
        ),
        (
            "tasks: {work: {takes: soon}}",
            "4:27: tests[0].tasks.work.takes: `soon` is not a duration: write, for example, `30s`, `5m`, `1h30m` or `2d`, at \
             most ten years",
        ),
        (
            "meanwhile: [{signal: og}]",
            "4:26: tests[0].meanwhile[0].signal: no task waits for a signal `og` (did you mean `go`?)",
        ),
        (
            "meanwhile: [{approve: work}]",
            "4:27: tests[0].meanwhile[0].approve: there is no approval `work` (choose from `ask`)",
        ),
        (
            "meanwhile: [{approve: ask, fields: {sum: 1}}]",
            "4:17: tests[0].meanwhile[0]: someone may not answer `ask` (name an approver with `by`)",
        ),
        ("meanwhile: [{approve: ask, by: ana}]", "4:17: tests[0].meanwhile[0]: field `sum`: it is required"),
        (
            "meanwhile: [{at: 1h}]",
            "4:17: tests[0].meanwhile[0]: expected one of `signal`, `approve`, `reject` or `cancel: true`",
        ),
        (
            "meanwhile: [{signal: go, fields: {}}]",
            "4:38: tests[0].meanwhile[0].fields: `fields` needs `approve` beside it",
        ),
        ("inputs: [1]", "4:13: tests[0].inputs: `inputs` must be a mapping, but this is a list"),
        (
            "now: noon",
            "4:10: tests[0].now: expected an instant, found the text `noon` (for example 2026-01-31T06:00:00Z)",
        ),
    ] {
        refused(FLOW, &test(body), &format!("tests/flow.yaml:{message}"));
    }
}

#[test]
fn expectations_are_checked_before_anything_is_executed() {
    let test = "  - name: it
    expect:
      state: suceeded
      tasks: {wrk: succeeded, work: {outputs: 1}}
      order: [nobody]
";
    for message in [
        "5:14: tests[0].expect.state: `suceeded` is not one of the values allowed here (did you mean `succeeded`?)",
        "6:15: tests[0].expect.tasks.wrk: the workflow `flow` has no task `wrk` (did you mean `work`?)",
        "6:38: tests[0].expect.tasks.work.outputs: unknown field `outputs` (did you mean `output`?)",
        "7:15: tests[0].expect.order[0]: the workflow `flow` has no task `nobody` (choose from `work`, `route`, `ask`, \
         `wait`)",
    ] {
        refused(FLOW, test, &format!("tests/flow.yaml:{message}"));
    }
}

#[test]
fn a_test_needs_a_name_of_its_own_and_an_expectation() {
    refused(FLOW, "  - name: it\n", "tests/flow.yaml:3:5: tests[0]: the field `expect` is missing");
    refused(FLOW, "  - {expect: {}}\n", "tests/flow.yaml:3:5: tests[0]: the field `name` is missing");
    let twice = "  - {name: it, expect: {}}\n  - {name: it, expect: {}}\n";
    refused(
        FLOW,
        twice,
        "tests/flow.yaml:4:5: tests[1]: the test name `it` is not unique (say in the name how it differs)",
    );
}

fn refusal(text: &str, tasks: &str) -> Refusal {
    let file = TestFile { path: "tests/flow.yaml".into(), text: text.into() };
    Suite::read(&file, &workflow(tasks)).unwrap_err()
}

#[test]
fn a_file_that_is_no_test_file_is_refused() {
    for (text, message) in [
        ("workflow: [", "not valid YAML"),
        ("- 1", "a test file must be a mapping"),
        ("tests: []", "the field `workflow` is missing"),
        ("workflow: folw\ntests: []", "there is no workflow `folw` (did you mean `flow`?)"),
    ] {
        let Refusal::File(problems) = refusal(text, FLOW) else { panic!("{text}") };
        assert!(problems[0].to_string().contains(message), "{problems:?}");
    }
}

#[test]
fn a_workflow_with_problems_of_its_own_is_named() {
    let refused = refusal("workflow: flow\ntests: []", "  - {name: a, type: nope}\n");
    assert_eq!(refused, Refusal::Workflow("flow".into()));
}

#[test]
fn a_valid_file_gives_its_tests_in_order() {
    let suite = read(FLOW, "  - {name: b, expect: {}}\n  - {name: a, expect: {}}\n").unwrap();
    let names: Vec<&str> = suite.tests.iter().map(|test| test.name.as_str()).collect();
    assert_eq!((suite.workflow(), suite.path(), names), ("flow", "tests/flow.yaml", vec!["b", "a"]));
}

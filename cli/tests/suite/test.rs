//! `ebb test`: exit codes that scripts can rely on, results that people and machines can read.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::project::{Project, printed};

const GREET: &str = "name: greet\ntasks: [{name: only, type: echo, config: {text: hi}}]\n";
const PASSES: &str =
    "workflow: greet\ntests: [{name: it says hi, expect: {tasks: {only: {output: {text: hi}}}}}]\n";
const FAILS: &str = "workflow: greet\ntests:\n  - {name: it says \"ho\" & <more>, expect: {tasks: {only: {output: \
     {text: ho}}}}}\n  - {name: it ends, expect: {took: 0s}}\n";
const UNUSABLE: &str = "workflow: greet\ntests: [{name: x, expect: {tasks: {onyl: succeeded}}}]\n";

fn greeting() -> Project {
    Project::new().with("greet", GREET)
}

#[test]
fn the_exit_code_says_whether_tests_passed_failed_or_could_not_be_used() {
    let broken = "name: greet\ntasks: [{name: only, type: eko}]\n";
    for (project, code, expected) in [
        (greeting().with_test("greet", PASSES), 0, "1 of 1 test passed"),
        (greeting().with_test("greet", FAILS), 1, "text: expected \"ho\", found \"hi\""),
        (
            greeting().with_test("greet", UNUSABLE),
            2,
            "greet.yaml:2:36: tests[0].expect.tasks.onyl: the workflow `greet` has no task `onyl` (did you mean `only`?)",
        ),
        (greeting().with_test("a", FAILS).with_test("b", UNUSABLE), 2, "1 of 2 tests passed"),
        (greeting().with("greet", broken).with_test("greet", PASSES), 1, "greet.yaml:2:"),
        (
            greeting().with("greet", broken).with_test("greet", PASSES),
            1,
            "not run, because the workflow `greet` has problems",
        ),
        (greeting(), 2, "no tests found"),
    ] {
        let output = project.run(&["test"]);
        assert!(printed(&output).contains(expected), "`{expected}` is missing in:\n{}", printed(&output));
        assert_eq!(output.status.code(), Some(code), "{}", printed(&output));
    }
}

#[test]
fn a_file_and_a_filter_choose_the_tests() {
    let project = greeting().with_test("good", PASSES).with_test("bad", FAILS);
    for (arguments, code, expected) in [
        (&["test", "workflows/tests/good.yaml"][..], 0, "1 of 1 test passed"),
        (&["test", "--filter", "it ends"], 0, "1 of 1 test passed"),
        (&["test", "workflows", "--filter", "greet"], 1, "2 of 3 tests passed"),
        (&["test", "--filter", "nothing like it"], 2, "no tests found"),
        (&["test", "workflows/graphs/greet.yaml"], 2, "is not in a folder `tests`"),
    ] {
        let output = project.run(arguments);
        assert!(printed(&output).contains(expected), "`{expected}` is missing in:\n{}", printed(&output));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn tests_are_not_taken_for_workflows() {
    assert_eq!(greeting().with_test("greet", FAILS).run(&["validate"]).status.code(), Some(0));
}

#[test]
fn results_are_written_as_junit_xml_with_everything_escaped() {
    let project = greeting().with_test("bad", FAILS).with_test("odd", UNUSABLE);
    let output = project.run(&["test", "--junit", "results.xml"]);
    assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
    let xml = fs::read_to_string(project.path().join("results.xml")).unwrap();
    for expected in [
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"3\" failures=\"1\" errors=\"1\">",
        "<testsuite name=\"workflows/tests/bad.yaml\" tests=\"2\" failures=\"1\" errors=\"0\" time=\"0.",
        "<testcase classname=\"greet\" name=\"it says &quot;ho&quot; &amp; &lt;more&gt;\"",
        "<failure message=\"expected &quot;ho&quot;, found &quot;hi&quot;\">workflows/tests/bad.yaml:3:",
        "<testcase classname=\"greet\" name=\"it ends\" file=\"workflows/tests/bad.yaml\" time=\"0.",
        "<error message=\"workflows/tests/odd.yaml:2:",
    ] {
        assert!(xml.contains(expected), "`{expected}` is missing in:\n{xml}");
    }
}

#[test]
fn results_are_given_as_json_on_demand() {
    let output = greeting().with_test("bad", FAILS).run(&["test", "--json"]);
    let results: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(results["passed"], false);
    assert_eq!(results["tests"][0]["problems"][0]["path"], "tests[0].expect.tasks.only.output.text");
    assert_eq!(results["tests"][1]["problems"], serde_json::json!([]));
}

#[test]
fn every_example_has_tests_and_passes_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let files = |folder: &str| {
        let entries = fs::read_dir(root.join("workflows").join(folder)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(files("graphs"), files("tests"));
    let output = Command::new(env!("CARGO_BIN_EXE_ebb")).arg("test").current_dir(root).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
}

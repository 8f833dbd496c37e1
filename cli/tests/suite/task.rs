//! One task on its own, and the files and reports of contained programs.

use serde_json::{Value, json};

use crate::project::{Project, printed};

const ETL: &str = r#"
name: etl
inputs: {day: {type: string}}
tasks:
  - {name: extract, type: bash, config: {command: 'exit 3'}}
  - name: report
    type: bash
    depends_on: [extract]
    config:
      script: scripts/report.sh
      args: ["{{ outputs.extract.rows }}"]
  - name: each
    type: fan_out
    for_each: "[1, 2]"
    task: {type: bash, config: {command: 'echo {{ item }} > "$EBB_OUTPUT"'}}
"#;

const REPORT: &str = r#"
echo '{"progress": 0.5, "message": "half", "metric": {"rows": 3}}' >> "$EBB_MESSAGES"
echo '{"checkpoint": {"phase": "sum", "state": 1}}' >> "$EBB_MESSAGES"
echo "ERROR: $1 rows"
day=$(sed 's/.*"day":"\([^"]*\)".*/\1/' "$EBB_INPUT")
printf '["%s", %s, "%s"]' "$day" "$1" "$EBB_TASK" > "$EBB_OUTPUT"
"#;

fn project() -> Project {
    let project = Project::new().with("etl", ETL);
    project.write("workflows/scripts/report.sh", REPORT);
    project.write("outputs.json", r#"{"extract": {"rows": 12}}"#);
    project
}

#[test]
fn one_task_runs_without_a_server_and_prints_its_output() {
    let project = project();
    let run = ["task", "run", "etl", "report", "--input", "day=2026-01-31", "--upstream", "outputs.json"];
    let done = project.run(&run);
    assert_eq!(done.status.code(), Some(0), "{}", printed(&done));
    let output: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(output, json!(["2026-01-31", 12, "report"]));
    let log = String::from_utf8(done.stderr).unwrap();
    for line in
        ["error   ERROR: 12 rows", "progress 50 % half, rows = 3", r#"checkpoint {"phase":"sum","state":1}"#]
    {
        assert!(log.contains(line), "{line} is missing in:\n{log}");
    }
    let item = project.run(&["task", "run", "etl", "each", "--input", "day=x", "--item", "7"]);
    assert_eq!(serde_json::from_slice::<Value>(&item.stdout).unwrap(), json!(7), "{}", printed(&item));
}

#[test]
fn one_task_resumes_from_a_checkpoint_that_is_given() {
    let command = r#"grep -o '"checkpoint":{[^}]*}' "$EBB_INPUT" | cut -d: -f2- > "$EBB_OUTPUT""#;
    let text =
        format!("name: resume\ntasks: [{{name: merge, type: bash, config: {{command: {command:?}}}}}]\n");
    let project = Project::new().with("resume", &text);
    let run = ["task", "run", "resume", "merge", "--checkpoint"];
    let given = r#"{"phase":"merge","tile":7}"#;
    let output: Value = serde_json::from_str(&project.ask(&[&run[..], &[given]].concat())).unwrap();
    assert_eq!(output, json!({"phase": "merge", "tile": 7}));
    project.assert_fails(&[&run[..], &["{"]].concat(), 2, "--checkpoint");
}

#[test]
fn one_task_gets_the_outputs_that_a_run_on_the_server_has() {
    let project = project();
    let extract = r#"printf "{\"rows\": 12}" > $EBB_OUTPUT"#;
    project.write("workflows/graphs/etl.yaml", &ETL.replace("exit 3", extract));
    let _dev = project.dev();
    let watched = project.run(&["trigger", "etl", "--watch", "--input", "day=2026-01-31"]);
    assert_eq!(watched.status.code(), Some(0), "{}", printed(&watched));
    let run = project.latest_run();
    let report = ["task", "run", "etl", "report", "--outputs-from"];
    let report_of = |run: &str| project.ask(&[&report[..], &[run]].concat());
    let output: Value = serde_json::from_str(&report_of(&run)).unwrap();
    assert_eq!(output, json!(["2026-01-31", 12, "report"]), "with the inputs of the run, too");
    let unknown = "018f0000-0000-7000-8000-000000000000";
    project.assert_fails(&[&report[..], &[unknown]].concat(), 3, unknown);
}

#[test]
fn what_cannot_be_run_is_refused_with_a_reason() {
    let project = project();
    let run = |task: &'static str| ["task", "run", "etl", task, "--input", "day=x"];
    project.assert_fails(&run("extract"), 1, "exited with code 3");
    project.assert_fails(
        &run("reports"),
        2,
        "there is no task `reports`; expected one of extract, report, each",
    );
    project.assert_fails(&run("each"), 2, "--item");
    project.assert_fails(&["task", "run", "etl", "report"], 2, "day");
    project.assert_fails(&["task", "run", "elt", "report"], 2, "there is no workflow `elt`");
}

#[test]
fn a_contained_program_reports_and_a_run_keeps_the_script_that_it_started_with() {
    let project = project();
    project.write(
        "workflows/graphs/etl.yaml",
        &ETL.replace("exit 3", r#"printf "{\"rows\": 12}" > $EBB_OUTPUT"#),
    );
    let _dev = project.dev();
    let watched = project.run(&["trigger", "etl", "--watch", "--input", "day=2026-01-31"]);
    assert_eq!(watched.status.code(), Some(0), "{}", printed(&watched));
    let shown = project.ask_json(&["run", "show", &project.latest_run()]);
    let report = shown["tasks"].as_array().unwrap().iter().find(|task| task["name"] == "report").unwrap();
    assert_eq!(report["output"], json!(["2026-01-31", 12, "report"]));
    let progress = &report["progress"];
    assert_eq!((&progress["fraction"], &progress["phase"]), (&json!(0.5), &json!("sum")), "{report}");
    let version = project.ask_json(&["versions", "etl"]);
    assert_eq!(version["items"].as_array().unwrap().len(), 1, "{version}");
}

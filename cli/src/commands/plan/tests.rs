use language::{FileKind, SourceFile};

use super::*;

const PLAIN: Palette = Palette { on: false };

const BEFORE: &str = "
name: etl
description: Loads.
inputs: {day: {type: date}}
tasks:
  - {name: load, type: bash, config: {command: 'load'}}
  - {name: check, type: noop, depends_on: [load]}
  - name: sum
    type: python
    depends_on: [check]
    config:
      code: |
        import json
        total = 1
        print(total)
";

fn definition(text: &str) -> Definition {
    let file = SourceFile { path: "etl.yaml".into(), kind: FileKind::Workflow, text: text.into() };
    let mut compiled = language::compile(&[file]);
    assert!(compiled.diagnostics.is_empty(), "{:?}", compiled.diagnostics);
    compiled.definitions.remove(0)
}

fn workflow(name: &str, change: Change, before: Option<i32>, after: i32) -> Planned {
    let (difference, unfinished) = (Difference::default(), Unfinished::default());
    Planned { name: name.into(), change, tasks: 3, before, after, difference, unfinished }
}

/// `etl`, changed from the first text to the second.
fn changed(after: &str) -> Planned {
    let difference = compare::compare(&definition(BEFORE).workflow, &definition(after).workflow);
    Planned { difference, ..workflow("etl", Change::Changed, Some(3), 4) }
}

fn told(workflows: Vec<Planned>, only_on_server: &[&str]) -> String {
    let only_on_server = only_on_server.iter().map(|name| name.to_string()).collect();
    words::plan(&Plan { workflows, only_on_server }, "ebb apply", PLAIN)
}

#[test]
fn every_kind_of_change_is_told_and_counted() {
    let plan = vec![
        workflow("daily", Change::New, None, 1),
        workflow("hello", Change::Unchanged, Some(2), 2),
        workflow("old", Change::Archived, Some(5), 5),
    ];
    assert_eq!(
        told(plan, &["diamond", "nightly"]),
        "+ daily v1: new, 3 tasks\n\
         + old v5: archived, comes back into use\n\
         = unchanged: hello\n\
         ? only on the server, left as they are: diamond, nightly\n\
         \n\
         1 new, 1 back in use, 1 unchanged, 2 only on the server: `ebb apply` does it"
    );
}

#[test]
fn where_nothing_changes_there_is_nothing_to_apply() {
    let text = told(vec![workflow("hello", Change::Unchanged, Some(2), 2)], &[]);
    assert_eq!(text, "= unchanged: hello\n\n1 unchanged: there is nothing to apply");
}

#[test]
fn a_change_is_told_by_field_input_task_and_edge() {
    let after = BEFORE
        .replace("Loads.", "Loads all.")
        .replace("day: {type: date}", "days: {type: list}")
        .replace("command: 'load'", "command: 'load --all', env: {A: '1'}")
        .replace("name: check", "name: clean")
        .replace("[check]", "[clean]");
    let text = told(vec![changed(&after)], &[]);
    assert_eq!(
        text,
        "~ etl v3 → v4
    ~ description: \"Loads.\" → \"Loads all.\"
    + input days
    - input day
    + task clean
    - task check
    ~ task load
        ~ config.command: \"load\" → \"load --all\"
        + config.env: {\"A\":\"1\"}
    + edge clean → sum
    + edge load → clean
    - edge check → sum
    - edge load → check

1 changed: `ebb apply` does it"
    );
}

#[test]
fn of_a_longer_text_the_lines_that_differ_are_told() {
    let text = told(vec![changed(&BEFORE.replace("total = 1", "total = 2\n        total += 1"))], &[]);
    let expected = "        ~ config.code:
            - total = 1
            + total = 2
            + total += 1
\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_long_value_is_cut_between_characters() {
    let text = told(vec![changed(&BEFORE.replace("Loads.", &"ä".repeat(500)))], &[]);
    assert!(text.contains(&format!("\"Loads.\" → \"{}…\n", "ä".repeat(59))), "{text}");
}

#[test]
fn going_back_to_an_older_version_is_told_as_such() {
    let text = told(vec![workflow("etl", Change::Changed, Some(4), 2)], &[]);
    assert!(text.starts_with("~ etl v4 → v2 again\n    ~ only the order of what is written\n"), "{text}");
}

#[test]
fn unfinished_runs_are_counted_with_the_version_they_keep() {
    let check = |versions: &[(i32, usize)], more, expected: &str| {
        let unfinished = Unfinished { versions: versions.iter().copied().collect(), more };
        let text = told(vec![Planned { unfinished, ..workflow("etl", Change::Changed, Some(3), 4) }], &[]);
        assert!(text.contains(&format!("    = {expected}\n")), "{text}");
    };
    check(&[(3, 1)], false, "1 unfinished run keeps v3");
    check(&[(3, 100)], true, "at least 100 unfinished runs keep v3");
    check(&[(2, 1), (3, 2)], false, "3 unfinished runs keep the version they have: 1 on v2, 2 on v3");
}

#[test]
fn programs_get_the_plan_with_names_for_everything() {
    let json = serde_json::to_value(changed(&BEFORE.replace("Loads.", "Loads all."))).unwrap();
    assert_eq!((&json["change"], &json["before"], &json["after"]), (&json!("changed"), &json!(3), &json!(4)));
    assert_eq!(json["difference"]["fields"][0]["field"], "description");
    assert_eq!(json["unfinished"], json!({"versions": {}, "more": false}));
}

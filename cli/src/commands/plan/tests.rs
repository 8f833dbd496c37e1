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
    Planned { name: name.into(), change, tasks: 3, before, after, difference, unfinished, next: Vec::new() }
}

/// `etl`, changed from the first text to the second.
fn changed(after: &str) -> Planned {
    let difference = compare::compare(&definition(BEFORE).workflow, &definition(after).workflow);
    Planned { difference, ..workflow("etl", Change::Changed, Some(3), 4) }
}

fn shown(workflows: Vec<Planned>, only_on_server: &[&str]) -> String {
    let only_on_server = only_on_server.iter().map(|name| name.to_string()).collect();
    text::plan(&Plan { workflows, archive: Vec::new(), only_on_server }, "ebb apply", PLAIN)
}

#[test]
fn every_kind_of_change_is_shown_and_counted() {
    let plan = vec![
        workflow("daily", Change::New, None, 1),
        workflow("hello", Change::Unchanged, Some(2), 2),
        workflow("old", Change::Archived, Some(5), 5),
    ];
    assert_eq!(
        shown(plan, &["diamond", "nightly"]),
        "+ daily v1: new, 3 tasks\n\
         + old v5: archived, would be active again\n\
         = unchanged: hello\n\
         ? only on the server, left alone: diamond, nightly\n\
         \n\
         1 new, 1 restored, 1 unchanged, 2 only on the server: apply with `ebb apply`"
    );
}

#[test]
fn where_nothing_changes_there_is_nothing_to_apply() {
    let text = shown(vec![workflow("hello", Change::Unchanged, Some(2), 2)], &[]);
    assert_eq!(text, "= unchanged: hello\n\n1 unchanged: nothing to apply");
}

#[test]
fn a_change_is_shown_by_field_input_task_and_edge() {
    let after = BEFORE
        .replace("Loads.", "Loads all.")
        .replace("day: {type: date}", "days: {type: list}")
        .replace("command: 'load'", "command: 'load --all', env: {A: '1'}")
        .replace("name: check", "name: clean")
        .replace("[check]", "[clean]");
    let text = shown(vec![changed(&after)], &[]);
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

1 changed: apply with `ebb apply`"
    );
}

#[test]
fn of_a_longer_text_the_lines_that_differ_are_shown() {
    let text = shown(vec![changed(&BEFORE.replace("total = 1", "total = 2\n        total += 1"))], &[]);
    let expected = "        ~ config.code:
            - total = 1
            + total = 2
            + total += 1
\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_long_value_is_cut_between_characters() {
    let text = shown(vec![changed(&BEFORE.replace("Loads.", &"ä".repeat(500)))], &[]);
    assert!(text.contains(&format!("\"Loads.\" → \"{}…\n", "ä".repeat(59))), "{text}");
}

#[test]
fn going_back_to_an_older_version_is_shown_as_such() {
    let text = shown(vec![workflow("etl", Change::Changed, Some(4), 2)], &[]);
    assert!(text.starts_with("~ etl v4 → v2 again\n    ~ only the order of fields\n"), "{text}");
}

#[test]
fn unfinished_runs_are_counted_with_the_version_they_keep() {
    let check = |versions: &[(i32, usize)], more, expected: &str| {
        let unfinished = Unfinished { versions: versions.iter().copied().collect(), more };
        let text = shown(vec![Planned { unfinished, ..workflow("etl", Change::Changed, Some(3), 4) }], &[]);
        assert!(text.contains(&format!("    = {expected}\n")), "{text}");
    };
    check(&[(3, 1)], false, "1 unfinished run keeps v3");
    check(&[(3, 100)], true, "at least 100 unfinished runs keep v3");
    check(&[(2, 1), (3, 2)], false, "3 unfinished runs keep their version: 1 on v2, 2 on v3");
}

#[test]
fn programs_get_the_plan_with_names_for_everything() {
    let json = serde_json::to_value(changed(&BEFORE.replace("Loads.", "Loads all."))).unwrap();
    assert_eq!((&json["change"], &json["before"], &json["after"]), (&json!("changed"), &json!(3), &json!(4)));
    assert_eq!(json["difference"]["fields"][0]["field"], "description");
    assert_eq!(json["unfinished"], json!({"versions": {}, "more": false}));
}

#[test]
fn what_would_be_archived_is_shown_and_is_something_to_do() {
    let workflows = vec![workflow("hello", Change::Unchanged, Some(2), 2)];
    let plan = Plan { workflows, archive: vec!["old".into()], only_on_server: Vec::new() };
    let text = text::plan(&plan, "ebb apply --prune", PLAIN);
    assert_eq!(
        text,
        "- archive old\n= unchanged: hello\n\n1 archived, 1 unchanged: apply with `ebb apply --prune`"
    );
}

/// The lines about what differs between two workflows that begin the same.
fn differences(before: &str, after: &str) -> String {
    let whole = |text: &str| definition(&format!("name: etl\n{text}")).workflow;
    let difference = compare::compare(&whole(before), &whole(after));
    let text = shown(vec![Planned { difference, ..workflow("etl", Change::Changed, Some(3), 4) }], &[]);
    text.lines().skip(1).take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

const ONE: &str = "tasks: [{name: a, type: noop}]";

#[test]
fn a_schedule_is_shown_in_words() {
    let with = |schedule: &str| format!("schedule: {schedule}\n{ONE}");
    let evening = "{cron: '0 18 * * 1-5', timezone: Europe/Berlin}";
    assert_eq!(
        differences(&with(evening), &with(&evening.replace("18", "19"))),
        "    ~ schedule: 0 18 * * 1-5 → 0 19 * * 1-5"
    );
    let zone = evening.replace("Europe/Berlin", "America/New_York");
    assert_eq!(
        differences(&with(evening), &with(&zone)),
        "    ~ schedule.timezone: Europe/Berlin → America/New_York"
    );
    let added = differences(ONE, &with(evening));
    assert!(added.starts_with("    + schedule: 0 18 * * 1-5 (Europe/Berlin), catchup "), "{added}");
    assert!(differences(&with(evening), ONE).starts_with("    - schedule: 0 18 * * 1-5"));
}

#[test]
fn limits_are_shown_in_words() {
    let limited =
        "concurrency: {key: '{{ inputs.r }}', limit: 1, policy: queue}\ninputs: {r: {type: string}}";
    let plain = format!("inputs: {{r: {{type: string}}}}\ntimeout_seconds: 60\n{ONE}");
    assert_eq!(
        differences(&plain, &format!("{limited}\ntimeout_seconds: 7200\ndeadline_seconds: 90\n{ONE}")),
        "    + concurrency: 1 run at a time for each {{ inputs.r }}, policy queue
    + deadline_seconds: 90
    ~ timeout_seconds: 60 (1 min) → 7200 (2 h)"
    );
    let more = limited.replace("limit: 1, policy: queue", "limit: 3, policy: skip");
    assert_eq!(
        differences(&format!("{limited}\n{ONE}"), &format!("{more}\n{ONE}")),
        "    ~ concurrency.limit: 1 → 3\n    ~ concurrency.policy: queue → skip"
    );
}

#[test]
fn callbacks_are_shown_one_by_one() {
    let before = format!("on_failure: [{{notify: {{webhook: 'https://a.example/x'}}}}]\n{ONE}");
    let after = format!(
        "on_failure: [{{notify: {{webhook: {{url: 'https://a.example/x', body: {{n: 1}}}}}}}}]\n\
         on_success: [{{notify: {{message: done}}}}]\n{ONE}"
    );
    assert_eq!(
        differences(&before, &after),
        "    + callback on success: message to done\n    ~ callback on failure: webhook https://a.example/x: content"
    );
    assert_eq!(differences(&before, ONE), "    - callback on failure: webhook https://a.example/x");
}

#[test]
fn a_fan_out_is_shown_by_what_changed_in_it() {
    let fan = |more: &str| {
        format!("tasks: [{{name: s, type: fan_out, for_each: '[1]'{more}, task: {{type: noop}}}}]")
    };
    assert_eq!(
        differences(&fan(", tolerated_failures: 2"), &fan(", tolerated_failures: 10%, max_parallel: 5")),
        "    ~ task s
        + fan_out.max_parallel: 5
        ~ fan_out.tolerated_failures: 2 → 10%"
    );
    assert_eq!(
        differences(&fan(", tolerated_failures: 2"), &fan(", tolerated_failures: 3")),
        "    ~ task s\n        ~ fan_out.tolerated_failures: 2 → 3"
    );
    let plain = "tasks: [{name: s, type: noop}]";
    let whole = differences(plain, &fan(", max_parallel: 5, tolerated_failures: 1"));
    assert!(whole.contains("+ fan_out: noop for each of [1], 5 at a time, 1 may fail"), "{whole}");
}

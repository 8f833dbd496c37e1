//! What the pictures look like.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::fs;
use std::path::{Path, PathBuf};

use ebbflow_drawing as drawing;
use engine::Graph;
use language::{FileKind, SourceFile};
use testkit::workflow;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workflows")
}

/// One of the workflows that come with Ebbflow.
fn example(name: &str) -> Graph {
    let read = |path: &str, kind| SourceFile {
        path: path.into(),
        kind,
        text: fs::read_to_string(folder().join(path)).unwrap(),
    };
    let files = [
        read(&format!("graphs/{name}.yaml"), FileKind::Workflow),
        read("tasks/checked-csv.yaml", FileKind::Task),
    ];
    let mut compiled = language::compile(&files);
    assert!(compiled.diagnostics.is_empty(), "{:?}", compiled.diagnostics);
    Graph::compile(compiled.definitions.remove(0).workflow).unwrap()
}

fn graph(notation: &str) -> Graph {
    Graph::compile(workflow(notation)).unwrap()
}

/// Twelve parts between a start and a join that also waits for a task of its own.
fn wide_join() -> Graph {
    let parts = (1..=12).map(|part| format!("split -> part-{part} -> join"));
    graph(&format!("{}, permit -> join -> report", parts.collect::<Vec<_>>().join(", ")))
}

/// Branches of different lengths, edges that pass several columns, and a part that stands alone.
fn tangle() -> Graph {
    graph(
        "fetch -> parse -> check -> clean -> load -> report, fetch -> archive, parse -> count -> report, \
         check -> reject -> alert, clean -> sample -> report, fetch -> report, limits -> check, limits -> alert, \
         warm-up -> cool-down",
    )
}

#[test]
fn a_terminal_shows_the_examples() {
    insta::assert_snapshot!("diamond_text", drawing::text(&example("diamond")));
    insta::assert_snapshot!("etl_text", drawing::text(&example("etl")));
}

#[test]
fn a_terminal_shows_wide_joins_narrow_and_tangles_in_order() {
    insta::assert_snapshot!("wide_join_text", drawing::text(&wide_join()));
    insta::assert_snapshot!("tangle_text", drawing::text(&tangle()));
}

#[test]
fn an_svg_shows_the_examples() {
    insta::assert_snapshot!("diamond_svg", drawing::svg(&example("diamond")));
    insta::assert_snapshot!("etl_svg", drawing::svg(&example("etl")));
}

#[test]
fn an_svg_shows_wide_joins_and_tangles() {
    insta::assert_snapshot!("wide_join_svg", drawing::svg(&wide_join()));
    insta::assert_snapshot!("tangle_svg", drawing::svg(&tangle()));
}

#[test]
fn a_rule_that_is_not_the_usual_one_is_written_on_its_task() {
    let mut definition = workflow("work -> tidy");
    definition.tasks[1].trigger_rule = model::TriggerRule::AllDone;
    let graph = Graph::compile(definition).unwrap();
    assert_eq!(drawing::text(&graph), "●  work  noop\n▼  tidy  noop · all_done  ← work\n");
    assert!(drawing::svg(&graph).contains(">noop · all_done</text>"));
}

#[test]
fn a_terminal_shows_a_short_cut_beside_the_long_way() {
    let drawn = drawing::text(&graph("a -> b -> c, a -> c"));
    assert_eq!(drawn, "●    a  noop\n├─▶  b  noop  ← a\n▼─╯  c  noop  ← a, b\n");
}

#[test]
fn a_task_is_shown_with_the_subject_of_its_type() {
    let text = "
name: mill
tasks:
  - {name: split, type: fan_out, for_each: '[1, 2]', task: {type: python, config: {code: 'print(1)'}}}
  - {name: runs, type: fan_out, for_each: '[1, 2]', task: {type: workflow, config: {workflow: etl}}}
  - {name: sum, type: fan_in, depends_on: [split], aggregation: sum}
  - {name: then, type: workflow, depends_on: [sum], trigger_rule: all_done, config: {workflow: report}}
";
    let file = SourceFile { path: "mill.yaml".into(), kind: FileKind::Workflow, text: text.into() };
    let mut compiled = language::compile(&[file]);
    assert!(compiled.diagnostics.is_empty(), "{:?}", compiled.diagnostics);
    let graph = Graph::compile(compiled.definitions.remove(0).workflow).unwrap();
    assert_eq!(
        drawing::text(&graph),
        "●    split  fan_out × python
▼    sum    fan_in sum                  ← split
▼    then   workflow report · all_done  ← sum
  ●  runs   fan_out × workflow etl
"
    );
    assert!(drawing::svg(&graph).contains(">fan_out × workflow etl</text>"));
}

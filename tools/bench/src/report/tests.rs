use super::*;

fn report() -> Report {
    let machine = Machine {
        cores: 2,
        postgres: "15.14".into(),
        database: "PostgreSQL 15.14 of /usr/lib/postgresql/15/bin".into(),
        connections: 16,
        load_before: Some(0.1),
        fdatasync_per_second: Some(9_000.0),
        commits_alone_per_second: 3_200.0,
        commits_per_second: 18_000.0,
        rows_in_hundreds_per_second: 108_000.0,
        rows_in_thousands_per_second: 220_000.0,
    };
    let figures = vec![
        Figure::new("tasks completed", 12_345.678, "/s").at_least(10_000.0),
        Figure::new("messages per step", 2.066, "").at_most(2.0),
        Figure::new("run, p50", 21.04, "ms"),
    ];
    let mut chain = Outcome::new("statements", "chains of 10 tasks", figures).with_note("it was a quiet day");
    let statement =
        Statement { query: "-- One.\nselect 1\n  from x".into(), calls: 500, rows: 1_000, total_ms: 25.0 };
    chain.statements = vec![StatementCost::of(&statement, 1_000.0)];
    Report { version: "0.0.0", build: "release", ..Report::new(false, machine, vec![chain]) }
}

#[test]
fn programs_read_one_object() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&report()).unwrap());
}

#[test]
fn people_read_a_table() {
    insta::assert_snapshot!(report());
}

#[test]
fn a_goal_is_met_by_what_lies_on_it() {
    assert_eq!(Figure::new("f", 2.0, "").at_most(2.0).met, Some(true));
    assert_eq!(Figure::new("f", 2.0, "").at_least(2.0).met, Some(true));
    assert_eq!(Figure::new("f", 2.01, "").at_most(2.0).met, Some(false));
}

#[test]
fn a_missed_goal_fails_but_not_at_smaller_sizes() {
    assert!(!report().is_met(), "messages per step are above their goal");
    assert!(Report { quick: true, ..report() }.is_met());
    let mut met = report();
    met.scenarios[0].figures.remove(1);
    assert!(met.is_met(), "what has no goal is not judged");
}

#[test]
fn what_is_not_measured_fails_but_not_at_smaller_sizes() {
    let mut missing = report();
    missing.scenarios = vec![Outcome::not_measured("python", "packages", "the index is out of reach".into())];
    let shown = missing.to_string();
    assert!(shown.ends_with("\npython: NOT MEASURED, the index is out of reach"), "{shown}");
    assert!(!missing.is_met());
    assert!(Report { quick: true, ..missing }.is_met());
}

#[test]
fn numbers_keep_the_digits_that_mean_something() {
    assert_eq!([0.123_456, 1.234_56, 12.345_6, 123.456].map(rounded), [0.1235, 1.23, 12.3, 123.0]);
    assert_eq!([999.0, 1_000.0, 1_234_567.0].map(shown), ["999", "1,000", "1,234,567"]);
}

#[test]
fn the_figures_of_a_crowd_are_a_table_for_a_document() {
    let figures = vec![
        Figure::new("run accepted, p99", 31.2, "ms").at_most(250.0),
        Figure::new("tokens rejected", 9_100.0, "/s").at_least(9_500.0),
        Figure::new("server errors", 0.0, ""),
    ];
    let mut report = report();
    report.scenarios = vec![Outcome::new("crowd", "a crowd", figures)];
    let text = report.to_string();
    let (_, table) = text.split_once("\n\n| scenario").unwrap();
    let rows: Vec<&str> = table.lines().skip(2).collect();
    assert_eq!(
        rows,
        [
            "| crowd | run accepted, p99 | 31.2 ms | ≤ 250 | yes |",
            "|  | tokens rejected | 9,100/s | ≥ 9,500 | NO |",
            "|  | server errors | 0 |  |  |",
        ]
    );
}

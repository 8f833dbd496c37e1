//! `cargo bench-ebb`, as people run it.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use serde_json::Value;

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebbflow-bench"));
    command.args(arguments).env_remove("DATABASE_URL").stdin(Stdio::null()).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = run(&[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// One report of all scenarios: they share a server, and each has the machine for itself.
fn report() -> &'static Value {
    static REPORT: LazyLock<Value> = LazyLock::new(|| json(&[&["--quick"], &SCENARIOS[..]].concat()));
    &REPORT
}

const SCENARIOS: [&str; 7] = ["chain", "leases", "containment", "python", "start", "pages", "crowd"];

/// What the report says about a scenario.
fn scenario(name: &str) -> &'static Value {
    let mut all = report()["scenarios"].as_array().unwrap().iter();
    all.find(|scenario| scenario["name"] == name).unwrap_or_else(|| panic!("{name}: {}", report()))
}

#[test]
fn a_quick_bench_measures_the_machine_and_the_scenarios() {
    let report = report();
    for limit in ["commits_per_second", "rows_in_thousands_per_second"] {
        assert!(report["machine"][limit].as_f64().unwrap() > 0.0, "{limit}: {report}");
    }
    assert_eq!(report["scenarios"].as_array().unwrap().len(), SCENARIOS.len(), "no others: {report}");
    let rate = &scenario("chain")["figures"][0];
    assert_eq!(rate["name"], "tasks completed");
    assert_eq!(rate["goal"]["at_least"], 10_000.0);
    assert!(rate["value"].as_f64().unwrap() > 0.0, "{rate}");
}

#[test]
fn leases_are_measured_against_their_goals_and_show_what_they_cost() {
    let (leases, report) = (scenario("leases"), report());
    let figures = leases["figures"].as_array().unwrap();
    let goal = |name: &str| {
        let figure = figures.iter().find(|figure| figure["name"] == name);
        let figure = figure.unwrap_or_else(|| panic!("{name}: {report}"));
        assert!(figure["value"].as_f64().unwrap() > 0.0, "{name}: {report}");
        figure["goal"].clone()
    };
    // On a busy machine a notification takes longer than the goal of 50 ms. A lease that none wakes, however, tries again only after
    // 15 seconds: half of them cannot return within a third of that unless they were woken. That a notification alone wakes a
    // lease, the API's tests show while the time stands still.
    let median = figures.iter().find(|figure| figure["name"] == "a waiting lease returns, p50").unwrap();
    assert!(median["value"].as_f64().unwrap() < 5_000.0, "{report}");
    assert_eq!(goal("a waiting lease returns, p99")["at_most"], 50.0);
    assert_eq!(goal("leased tasks completed")["at_least"], 2_000.0);
    for name in ["lease, p99", "report, p99", "tasks per lease", "transactions per task"] {
        assert!(goal(name).is_null(), "{name}");
    }
}

#[test]
fn containment_is_measured_against_programs_without_it() {
    let (ratio, report) = (&scenario("containment")["figures"][0], report());
    assert_eq!(ratio["goal"]["at_most"], 1.3, "{report}");
    assert!(ratio["value"].as_f64().unwrap() > 0.0, "{report}");
}

#[test]
fn packages_are_measured_or_the_reason_is_stated() {
    let (python, report) = (scenario("python"), report());
    match python["figures"].as_array().unwrap().first() {
        Some(added) => assert_eq!(added["goal"]["at_most"], 30.0, "{report}"),
        None => assert!(python["notes"][0].as_str().unwrap().starts_with("not measured: "), "{report}"),
    }
}

#[test]
fn processes_of_the_functions_start_and_are_measured() {
    let (figures, report) = (scenario("start")["figures"].as_array().unwrap(), report());
    assert!(figures.iter().all(|figure| figure["value"].as_f64().unwrap() > 0.0), "{report}");
}

#[test]
fn every_page_of_the_console_is_measured_against_its_goal() {
    let (figures, report) = (scenario("pages")["figures"].as_array().unwrap(), report());
    assert!(figures.len() > 30, "{report}");
    let (size, pages) = figures.split_last().unwrap();
    assert_eq!((&size["unit"], &size["met"]), (&"KB".into(), &true.into()), "{size}");
    for page in pages {
        assert_eq!((&page["unit"], &page["goal"]["at_most"]), (&"ms".into(), &100.0.into()), "{page}");
        assert!(page["value"].as_f64().unwrap() > 0.0, "{page}");
    }
}

#[test]
fn shares_of_tenants_are_simulated_without_a_server() {
    let shares = json(&["simulate", "--tenant", "a:weight=3,tasks=300", "--tenant", "b:tasks=300"]);
    let percent = |name: &str| shares["tenants"][0][name].as_f64().unwrap();
    assert_eq!(percent("entitled"), 75.0);
    assert!((percent("received") - 75.0).abs() < 1.0, "{shares}");
}

#[test]
fn a_misspelt_scenario_is_explained() {
    let output = run(&["chian"]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("'chain'"), "{message}");
}

#[test]
fn a_short_soak_loses_nothing_and_draws_its_curves() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let soaked = json(&["soak", "--minutes", "0.1", "--runs", "10", "--kill-every", "1", "--out", out]);
    let count = |path: &str| soaked.pointer(path).and_then(Value::as_i64).unwrap();
    assert!(count("/mix/started") >= 10 && count("/mix/kills") >= 1, "{soaked}");
    assert_eq!((count("/ended/failed"), count("/ended/unfinished")), (0, 0), "{soaked}");
    assert_eq!(count("/ended/runs") - count("/ended/scheduled"), count("/mix/started"), "{soaked}");
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(read("soak.csv").lines().count() > 2, "{}", read("soak.csv"));
    assert!(read("soak.svg").contains("<polyline") && read("soak.md").contains("| memory of all processes"));
}

#[test]
fn a_crowd_of_strangers_costs_no_run_and_no_server_error() {
    let (figures, report) = (scenario("crowd")["figures"].as_array().unwrap(), report());
    let value = |name: &str| {
        let figure = figures.iter().find(|figure| figure["name"] == name);
        figure.and_then(|figure| figure["value"].as_f64()).unwrap_or_else(|| panic!("{name}: {report}"))
    };
    for name in
        ["server errors", "tokens accepted", "requests without a response", "gaps in what listeners received"]
    {
        assert_eq!(value(name), 0.0, "{name}: {report}");
    }
    for name in ["listeners that received events", "listeners that were connected until the end"] {
        assert_eq!(value(name), 20.0, "{name}: {report}");
    }
    for name in [
        "runs accepted, all succeeded",
        "tokens rejected",
        "lists read with forged cursors",
        "event streams resumed with forged cursors",
        "connections of slow clients",
    ] {
        assert!(value(name) > 0.0, "{name}: {report}");
    }
    for name in ["peak memory of the API", "peak memory of another function"] {
        assert!(value(name) <= 200.0, "{name}: {report}");
    }
    // How long requests take depends on the machine, so it is judged only at full size.
    let goals = figures.iter().filter(|figure| !figure["goal"].is_null()).map(|figure| &figure["name"]);
    let goals: Vec<&Value> = goals.collect();
    for name in [
        "run accepted, p99",
        "tokens rejected",
        "requests without a response",
        "lists read with forged cursors",
        "event streams resumed with forged cursors",
        "listeners that were connected until the end",
        "gaps in what listeners received",
        "peak memory of the API",
        "peak memory of another function",
    ] {
        assert!(goals.contains(&&Value::from(name)), "{name} has no goal: {goals:?}");
    }
}

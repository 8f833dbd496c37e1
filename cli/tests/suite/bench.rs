//! `ebb bench` and `ebb fairness simulate`, as anyone runs them.

use serde_json::Value;

use crate::ebb::{Place, said};

#[test]
fn a_quick_bench_measures_the_machine_and_what_was_asked_for() {
    let output = Place::new().run(&["bench", "--quick", "chain", "--json"]);
    assert!(output.status.success(), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for limit in ["commits_per_second", "rows_in_thousands_per_second"] {
        assert!(report["machine"][limit].as_f64().unwrap() > 0.0, "{limit}: {report}");
    }
    let [chain] = report["scenarios"].as_array().unwrap().as_slice() else { panic!("{report}") };
    let rate = &chain["figures"][0];
    assert_eq!((&chain["name"], &rate["name"]), (&"chain".into(), &"tasks ended".into()));
    assert_eq!(rate["goal"]["at_least"], 10_000.0);
    assert!(rate["value"].as_f64().unwrap() > 0.0, "{rate}");
}

#[test]
fn every_page_of_the_console_is_measured_against_its_goal() {
    let output = Place::new().run(&["bench", "--quick", "pages", "--json"]);
    assert!(output.status.success(), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let figures = report["scenarios"][0]["figures"].as_array().unwrap();
    assert!(figures.len() > 30, "{report}");
    let (size, pages) = figures.split_last().unwrap();
    assert_eq!((&size["unit"], &size["met"]), (&"KB".into(), &true.into()), "{size}");
    for page in pages {
        assert_eq!((&page["unit"], &page["goal"]["at_most"]), (&"ms".into(), &100.0.into()), "{page}");
        assert!(page["value"].as_f64().unwrap() > 0.0, "{page}");
    }
}

#[test]
fn shares_of_tenants_are_played_through_without_a_server() {
    let tenants = ["--group", "a:weight=3,tasks=300", "--group", "b:tasks=300"];
    let output = Place::new().run(&[&["fairness", "simulate", "--json"], tenants.as_slice()].concat());
    assert!(output.status.success(), "{}", said(&output));
    let shares: Value = serde_json::from_slice(&output.stdout).unwrap();
    let percent = |name: &str| shares["tenants"][0][name].as_f64().unwrap();
    assert_eq!(percent("entitled"), 75.0);
    assert!((percent("received") - 75.0).abs() < 1.0, "{shares}");
    let twice = Place::new().run(&["fairness", "simulate", "--group", "a", "--group", "a"]);
    assert_eq!(twice.status.code(), Some(2), "{}", said(&twice));
}

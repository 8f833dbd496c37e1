//! `ebb log-level`, `ebb doctor --cloud` and `ebb restore`.

use bus::SystemClock;
use chrono::{SecondsFormat, TimeDelta};
use model::Clock;
use serde_json::{Value, json};
use testkit::CloudSqlServer;

use crate::project::{Project, printed};

#[test]
fn a_log_filter_is_listed_set_for_a_while_and_reset() {
    let project = Project::new();
    let _dev = project.dev();
    let configured = project.ask(&["log-level"]);
    assert!(configured.starts_with("FUNCTION"), "{configured}");
    let rows = |table: &str| table.lines().filter(|line| line.contains("as configured")).count();
    assert_eq!(rows(&configured), 5, "{configured}");

    let set = ["log-level", "sweep", "info,ebbflow_runtime=debug", "--minutes", "30"];
    let set = project.ask_json(&set)["items"][0].take();
    assert_eq!((&set["function"], &set["filter"]), (&json!("sweep"), &json!("info,ebbflow_runtime=debug")));
    let until = set["until"].as_str().unwrap().parse::<model::Instant>().unwrap();
    assert!(until > SystemClock.now() && until <= SystemClock.now() + TimeDelta::minutes(30), "{until}");
    let table = project.ask(&["log-level"]);
    assert!(rows(&table) == 4 && table.contains("info,ebbflow_runtime=debug"), "{table}");

    project.assert_fails(&["log-level", "sweep"], 2, "give a filter for sweep, or --reset");
    project.assert_fails(&["log-level", "sweep", "ebbflow=loud"], 3, "levels by target");
    project.assert_fails(&["log-level", "sleep", "debug"], 3, "unknown function `sleep`");
    project.assert_fails(&["log-level", "sweep", "debug", "--minutes", "0"], 2, "--minutes");
    let reset = project.ask(&["log-level", "sweep", "--reset"]);
    assert_eq!(rows(&reset), 1, "{reset}");
    assert_eq!(rows(&project.ask(&["log-level"])), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_checks_the_database_instance_too() {
    let server = CloudSqlServer::start("ebbflow", SystemClock.now()).await;
    let project = Project::new();
    let _dev = project.dev();
    let doctor = ["doctor", "--cloud", "--sql-endpoint", server.url()];
    project.assert_fails(&doctor, 2, "set --project or EBB_PROJECT");
    let doctor = [&doctor[..], &["--project", "p"]].concat();
    let healthy = project.ask(&doctor);
    assert!(healthy.lines().all(|line| line.starts_with('✓')), "{healthy}");
    let names = |report: &Value| -> Vec<String> {
        let checks = report["checks"].as_array().unwrap();
        checks.iter().map(|check| check["name"].as_str().unwrap().to_owned()).collect()
    };
    let (with, without) = (names(&project.ask_json(&doctor)), names(&project.ask_json(&["doctor"])));
    assert_eq!(with.len(), without.len() + 5, "{with:?}");

    server.change(|state| state.instances[0]["state"] = json!("SUSPENDED"));
    project.assert_fails(&doctor, 1, "SUSPENDED");
    let other = [&doctor[..], &["--instance", "other"]].concat();
    project.assert_fails(&other, 2, "cannot read the instance `other` of project `p`");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_database_can_be_checked_as_the_restore_says() {
    let server = CloudSqlServer::start("ebbflow", SystemClock.now()).await;
    let project = Project::new();
    let _dev = project.dev();
    let to = (SystemClock.now() - TimeDelta::hours(1)).to_rfc3339_opts(SecondsFormat::Secs, true);
    let endpoint = ["--sql-endpoint", server.url()];
    let restore = [&["restore", "--to", &to, "--as", "ebbflow-restored"], &endpoint[..]].concat();
    project.assert_fails(&restore, 2, "set --project or EBB_PROJECT");
    let restored = project.run(&[&restore[..], &["--project", "p"]].concat());
    let text = printed(&restored);
    assert!(restored.status.success() && text.contains("It is at p:r:ebbflow-restored"), "{text}");
    assert_eq!(server.change(|state| state.instances.len()), 2);

    // What it prints is complete: nothing but the server of this test is added.
    let checks = text.lines().find_map(|line| line.trim().strip_prefix("ebb doctor ")).unwrap();
    let checks: Vec<&str> = ["doctor"].into_iter().chain(checks.split_whitespace()).chain(endpoint).collect();
    let checked = project.ask(&checks);
    assert!(checked.contains("RUNNABLE"), "{checked}");

    let again = project.run(&[&restore[..], &["--project", "p", "--json"]].concat());
    assert!(!again.status.success() && printed(&again).contains("already exists"), "{}", printed(&again));
}

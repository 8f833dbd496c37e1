//! `kill -9` at random moments: after a restart every run continues, and no task succeeds twice. The same for its Postgres,
//! which `ebb dev` restarts.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use bus::SystemClock;
use chrono::TimeDelta;
use model::Clock;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::eventually;

use crate::project::{Dev, Project, printed};

const RUNS: usize = 50;
const KILLS: usize = 10;

const WORKFLOW: &str = "
name: chores
tasks:
  - {name: first, type: noop}
  - {name: left, type: bash, depends_on: [first], retry_policy: {max_retries: 10}, config: {command: 'echo left'}}
  - {name: right, type: echo, depends_on: [first], config: {text: right}}
  - {name: nap, type: sleep, depends_on: [right], config: {duration: 1s}}
  - {name: join, type: noop, depends_on: [left, nap]}
";

/// Requests the runs that are not known to exist. A request that dies with its server is repeated by the next call.
async fn request(dev: &Dev, runs: &mut BTreeMap<usize, String>, upto: usize) {
    for number in 0..upto {
        if runs.contains_key(&number) {
            continue;
        }
        let request = dev.request(Method::POST, "/workflows/chores/runs").json(&json!({}));
        let answer = request.header("Idempotency-Key", format!("run-{number}")).send().await;
        let Ok(answer) = answer else { return };
        assert!(
            answer.status().is_success() || answer.status().is_server_error(),
            "{:?}",
            answer.text().await
        );
        let run: Value = answer.json().await.unwrap_or_default();
        if let Some(id) = run["id"].as_str() {
            runs.insert(number, id.to_owned());
        }
    }
}

async fn kill_at_a_random_moment(dev: Dev, dice: &mut StdRng) {
    let moment = SystemClock.now() + TimeDelta::milliseconds(dice.random_range(1..400));
    SystemClock.wait_until(moment).await;
    drop(dev);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_runs_survive_kill_dash_nine_at_random_moments() {
    let seed = std::env::var("EBB_SEED").map_or(1, |seed| seed.parse().unwrap());
    println!("seed {seed}");
    let mut dice = StdRng::seed_from_u64(seed);
    let project = Project::new().with("chores", WORKFLOW);
    let mut runs = BTreeMap::new();
    for kill in 1..=KILLS {
        let dev = project.dev();
        let asking = request(&dev, &mut runs, RUNS * kill / KILLS);
        let _ = tokio::time::timeout(Duration::from_millis(dice.random_range(50..1_500)), asking).await;
        kill_at_a_random_moment(dev, &mut dice).await;
    }
    let dev = project.dev();
    eventually("every run is requested", async || {
        request(&dev, &mut runs, RUNS).await;
        (runs.len() == RUNS).then_some(())
    })
    .await;
    for run in runs.values() {
        let watched = project.run(&["run", "watch", run]);
        assert!(watched.status.success(), "run {run}: {}", printed(&watched));
        let events = dev.get(&format!("/runs/{run}/events?limit=100")).await;
        let mut successes: BTreeMap<&str, u32> = BTreeMap::new();
        for event in events["items"].as_array().unwrap() {
            if event["type"] == "task.succeeded" {
                *successes.entry(event["task"].as_str().unwrap()).or_default() += 1;
            }
        }
        let once = ["first", "join", "left", "nap", "right"].map(|task| (task, 1));
        assert_eq!(successes, BTreeMap::from(once), "run {run}");
    }
}

/// The process id of the Postgres that an `ebb dev` has started.
fn postgres_of(dev: &Dev) -> String {
    let processes = Command::new("ps").args(["-axo", "pid=,ppid=,comm="]).output().unwrap();
    let processes = String::from_utf8(processes.stdout).unwrap();
    let parent = dev.pid().to_string();
    let mut columns = processes.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let postgres = columns.find(|line| line[1] == parent && line[2].ends_with("postgres"));
    postgres.unwrap_or_else(|| panic!("{parent} has no Postgres:\n{processes}"))[0].to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_postgres_is_restarted_and_runs_continue() {
    let project = Project::new().with("chores", WORKFLOW);
    let dev = project.dev();
    let before = project.trigger("chores");
    let killed = postgres_of(&dev);
    assert!(Command::new("kill").args(["-9", &killed]).status().unwrap().success());
    let mut runs = BTreeMap::new();
    eventually("a run is accepted", async || {
        request(&dev, &mut runs, 1).await;
        runs.contains_key(&0).then_some(())
    })
    .await;
    for run in [&before, &runs[&0]] {
        let watched = project.run(&["run", "watch", run]);
        assert!(watched.status.success(), "run {run}: {}", printed(&watched));
    }
    assert_ne!(postgres_of(&dev), killed);
}

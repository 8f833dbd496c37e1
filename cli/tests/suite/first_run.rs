//! What a new user does first: start, trigger, watch, look.

use std::process::Stdio;

use crate::ebb::{Place, said};

const GREET: &str = "
name: greet
inputs:
  who: {type: string, default: world}
tasks:
  - {name: say, type: bash, config: {env: {WHO: '{{ inputs.who }}'}, command: 'echo hello $WHO'}}
  - {name: end, type: noop, depends_on: [say]}
";

const FAILS: &str = "
name: fails
tasks:
  - {name: good, type: noop}
  - {name: bad, type: bash, depends_on: [good], config: {command: 'echo about to fail; exit 3'}}
  - {name: after, type: noop, depends_on: [bad]}
";

#[test]
fn one_command_starts_everything_and_shows_a_run_to_its_end() {
    let place = Place::new().with("greet", GREET);
    let output = place.run(&["dev", "--port", "0", "--run", "greet", "--once"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("succeeded"), "{}", said(&output));
}

#[test]
fn a_triggered_run_is_watched_to_its_end_and_its_log_can_be_read() {
    let place = Place::new().with("greet", GREET).with("fails", FAILS);
    let _dev = place.dev();
    let watched = place.run(&["trigger", "greet", "--input", "who=you", "--watch"]);
    assert_eq!(watched.status.code(), Some(0), "{}", said(&watched));
    let run = latest_run(&place);
    assert!(said(&place.run(&["logs", &run, "say"])).contains("hello you"));

    let failed = place.run(&["trigger", "fails", "--watch"]);
    assert_eq!(failed.status.code(), Some(1));
    let told = said(&failed);
    let run = latest_run(&place);
    for part in ["bad", "exited with code 3", &format!("ebb logs {run} bad")] {
        assert!(told.contains(part), "`{part}` is missing in:\n{told}");
    }
}

#[test]
fn a_changed_file_is_registered_and_a_bad_one_changes_nothing() {
    let place = Place::new().with("greet", GREET);
    let _dev = place.dev();
    let place = place.with("greet", "name: greet\ntasks: [{name: say, type: noop, depends_on: [nobody]}]\n");
    let place = place.with("second", "name: second\ntasks: [{name: only, type: noop}]\n");
    // The new workflow is there as soon as its file has been seen; the bad one was seen with it.
    while !place.run(&["trigger", "second", "--watch"]).status.success() {}
    assert!(place.run(&["trigger", "greet", "--watch"]).status.success(), "the sound version stays active");
}

#[tokio::test]
async fn once_it_is_ready_the_token_and_the_workflows_are_there() {
    let place = (0..60).fold(Place::new(), |place, number| {
        place.with(&format!("w{number}"), &format!("name: w{number}\ntasks: [{{name: a, type: noop}}]\n"))
    });
    let port = testkit::Port::reserve();
    let mut dev = place.command(&["dev", "--port", &port.number().to_string()]);
    let mut dev = dev.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    testkit::eventually("it is ready", async || {
        assert!(dev.try_wait().unwrap().is_none(), "it has ended");
        let answer = reqwest::get(format!("{}/readyz", port.url())).await.ok()?;
        answer.status().is_success().then_some(())
    })
    .await;
    let plan = place.run(&["plan", "workflows"]);
    dev.kill().unwrap();
    dev.wait().unwrap();
    assert!(plan.status.success() && said(&plan).contains("nothing to apply"), "{}", said(&plan));
}

pub(crate) fn latest_run(place: &Place) -> String {
    let listed = place.run(&["runs", "--limit", "1", "--json"]);
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let runs = listed.get("items").unwrap_or(&listed);
    runs[0]["id"].as_str().unwrap().to_owned()
}

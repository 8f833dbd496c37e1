//! What a new user does first: start, trigger, watch, read.

use std::process::Stdio;

use embedded::Emulator;
use testkit::{eventually, eventually_blocking};

use crate::project::{Process, Project, printed};

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
    let project = Project::new().with("greet", GREET);
    let output = project.run(&["dev", "--port", "0", "--run", "greet", "--once"]);
    assert!(output.status.success(), "{}", printed(&output));
    assert!(printed(&output).contains("succeeded"), "{}", printed(&output));
}

#[test]
fn a_triggered_run_is_watched_to_its_end_and_its_log_can_be_read() {
    let project = Project::new().with("greet", GREET).with("fails", FAILS);
    let _dev = project.dev();
    let watched = project.run(&["trigger", "greet", "--input", "who=you", "--watch"]);
    assert_eq!(watched.status.code(), Some(0), "{}", printed(&watched));
    let run = project.latest_run();
    assert!(printed(&project.run(&["logs", &run, "say"])).contains("hello you"));

    let failed = project.run(&["trigger", "fails", "--watch"]);
    assert_eq!(failed.status.code(), Some(1));
    let error = printed(&failed);
    let run = project.latest_run();
    for part in ["bad", "exited with code 3", &format!("ebb logs {run} bad")] {
        assert!(error.contains(part), "`{part}` is missing in:\n{error}");
    }
}

#[test]
fn a_changed_file_is_registered_and_a_bad_one_changes_nothing() {
    let project = Project::new().with("greet", GREET);
    let _dev = project.dev();
    let project =
        project.with("greet", "name: greet\ntasks: [{name: say, type: noop, depends_on: [nobody]}]\n");
    let project = project.with("second", "name: second\ntasks: [{name: only, type: noop}]\n");
    // The bad file is written first, so it has been read once the new workflow is registered.
    eventually_blocking("the new workflow is registered", || {
        project.run(&["trigger", "second", "--watch"]).status.success().then_some(())
    });
    assert!(
        project.run(&["trigger", "greet", "--watch"]).status.success(),
        "the previous version stays active"
    );
}

/// Starts `ebb dev` with these arguments, waits for `/readyz`, and uses the token and the workflows.
async fn use_once_ready(arguments: &[&str]) {
    let project = (0..60).fold(Project::new(), |project, number| {
        project.with(&format!("w{number}"), &format!("name: w{number}\ntasks: [{{name: a, type: noop}}]\n"))
    });
    let port = testkit::Port::reserve();
    let number = port.number().to_string();
    let mut command = project.command(&[&["dev", "--port", number.as_str()][..], arguments].concat());
    let mut dev = Process::spawn(command.stdout(Stdio::null()).stderr(Stdio::null()));
    eventually("it is ready", async || {
        assert!(dev.is_alive(), "it has ended");
        let answer = reqwest::get(format!("{}/readyz", port.url())).await.ok()?;
        answer.status().is_success().then_some(())
    })
    .await;
    let plan = project.run(&["plan", "workflows"]);
    assert!(plan.status.success() && printed(&plan).contains("nothing to apply"), "{}", printed(&plan));
    assert!(dev.stops_on_request());
}

#[tokio::test]
async fn once_it_is_ready_the_token_and_the_workflows_exist() {
    use_once_ready(&[]).await;
}

#[tokio::test]
async fn once_the_console_beside_an_emulator_is_ready_the_token_and_the_workflows_exist() {
    match Emulator::is_installed() {
        true => use_once_ready(&["--bus", "pubsub-emulator"]).await,
        false => eprintln!("skipped: Google's Pub/Sub emulator is not installed"),
    }
}

//! What is said about a run: a table of small runs, and how the endpoint refuses.

use axum::http::StatusCode;
use engine::Command;
use model::message::TaskResult;
use model::{Failure, RunId, TaskIndex, WorkerId};
use runtime::Settled;
use serde_json::{Value, json};

use crate::world::{World, now};

/// Registers a workflow of these tasks, starts it with these inputs and settles the commands, one after the other.
async fn play(tasks: &str, commands: impl IntoIterator<Item = Command>) -> (World, RunId) {
    let text = format!("name: small\ninputs: {{n: {{type: integer, default: 1}}}}\ntasks:\n{tasks}");
    play_text(&text, commands).await
}

/// The same with a whole workflow.
pub(crate) async fn play_text(text: &str, commands: impl IntoIterator<Item = Command>) -> (World, RunId) {
    let world = World::new().await;
    let run = world.play(text, json!({})).await;
    for command in commands {
        let settled = world.runtime.settle(run, command.clone()).await.unwrap();
        assert_eq!(settled, Settled::Applied, "{command:?}");
    }
    (world, run)
}

/// What is said about a run, with `RUN` for its id.
pub(crate) async fn said(world: &World, run: RunId, query: &str) -> Value {
    let answer = world.get(&format!("/runs/{run}/explain{query}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    serde_json::from_str(&answer.body.to_string().replace(&run.to_string(), "RUN")).unwrap()
}

/// The summary and then each task with why it is where it is, a line each.
pub(crate) fn lines(explanation: &Value) -> String {
    let reasons = explanation["tasks"].as_array().unwrap().iter().map(|task| {
        let text = |field: &str| task[field].as_str().unwrap().to_owned();
        format!("{} {}: {}", text("task"), text("state"), text("because"))
    });
    std::iter::once(explanation["summary"].as_str().unwrap().to_owned())
        .chain(reasons)
        .collect::<Vec<_>>()
        .join("\n")
}

pub(crate) fn done(task: u32) -> Command {
    report(task, 1, TaskResult::Succeeded(json!(null)))
}

pub(crate) fn failed(task: u32, attempt: u32, failure: Failure) -> Command {
    report(task, attempt, TaskResult::Failed(failure))
}

fn report(task: u32, attempt: u32, result: TaskResult) -> Command {
    Command::Report { task: TaskIndex(task), attempt, worker: None, started_at: now(), result }
}

fn claimed(task: u32) -> Command {
    Command::Claim { task: TaskIndex(task), attempt: 1, worker: WorkerId(uuid::Uuid::nil()) }
}

fn cancelled(reason: Option<&str>) -> Command {
    Command::Cancel { actor: "ada@example.com".into(), reason: reason.map(str::to_owned) }
}

fn retried(task: u32, attempt: u32) -> Command {
    Command::Wake { task: Some(TaskIndex(task)), attempt, kind: model::TimerKind::Retry }
}

/// `expected` is the end of the summary and the lines of the tasks.
async fn check(tasks: &str, commands: impl IntoIterator<Item = Command>, expected: &[&str]) {
    let (world, run) = play(tasks, commands).await;
    let said = lines(&said(&world, run, "").await);
    assert_eq!(said, format!("Run RUN of `small` {}", expected.join("\n")));
}

#[tokio::test]
async fn a_run_that_succeeded_takes_one_sentence() {
    let tasks = "  - {name: a, type: noop}\n  - {name: b, type: noop}";
    let ended = "succeeded at 2027-01-15 08:00:00Z (now), after 0 ms: of its 2 tasks, 2 succeeded.";
    check(tasks, [done(0), done(1)], &[ended]).await;
}

#[tokio::test]
async fn a_task_that_waits_says_for_whom_and_how_these_stand() {
    let tasks = "
  - {name: a, type: noop}
  - {name: b, type: noop, timeout_seconds: 60}
  - {name: c, type: noop, depends_on: [a, b]}
  - {name: d, type: noop, depends_on: [a, c], trigger_rule: all_done}";
    let worker = "00000000-0000-0000-0000-000000000000";
    let running = format!(
        "b running: Worker {worker} has held attempt 1 of 1 since 2027-01-15 08:00:00Z (now). \
         The attempt times out at 2027-01-15 08:01:00Z (in 1 min)."
    );
    let expected = [
        "has been running since 2027-01-15 08:00:00Z (now). It waits for `a` (dispatched) and `b` (running); \
         2 tasks have not started.",
        &running,
        "a dispatched: It has waited for a worker of the queue `light` since 2027-01-15 08:00:00Z (now): attempt 1 of 1.",
        "c pending: It waits for `a` (dispatched) and `b` (running).",
        "d pending: It waits for `a` (dispatched) and `c` (pending). \
         Its rule for the tasks it depends on is `all_done`: all of them must end, however they do.",
    ];
    check(tasks, [claimed(1)], &expected).await;
}

#[tokio::test]
async fn a_task_that_no_worker_can_run_names_what_none_has() {
    let world = World::new().await;
    let text = "
name: small
tasks: [{name: far, type: echo, queue: remote, requires: {gpu: true}, config: {value: 1}}]";
    let run = world.play(text, json!({})).await;
    let far = async || said(&world, run, "").await["tasks"][0].clone();
    let fails = "If none takes it until 2027-01-15 08:10:00Z (in 10 min), it fails as `not_taken`.";
    let waits = "It has waited for a worker of the queue `remote` since 2027-01-15 08:00:00Z (now)";
    let register = async |name: &str, about: Value| {
        let mut body = json!({"worker": name, "queue": "remote", "limit": 1});
        body.as_object_mut().unwrap().extend(about.as_object().unwrap().clone());
        let answer = world.post("/execution/lease", body.to_string()).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    };
    for (worker, about, why, lacks) in [
        (None, json!({}), ", but none is at work", json!("workers")),
        (
            Some("plain"),
            json!({"labels": {"gpu": false}}),
            ", but none has the label `gpu: true`",
            json!({"labels": {"gpu": true}}),
        ),
        (
            Some("strict"),
            json!({"labels": {"gpu": true}, "types": ["bash"]}),
            ", but none has the label `gpu: true`",
            json!({"labels": {"gpu": true}}),
        ),
    ] {
        if let Some(name) = worker {
            register(name, about).await;
        }
        let explained = far().await;
        assert_eq!(explained["because"], format!("{waits}{why}: attempt 1 of 1. {fails}"));
        assert_eq!(explained["details"]["lacks"], lacks);
    }
    let left = world.post("/execution/goodbye", json!({"worker": "plain"}).to_string()).await;
    assert!(left.status.is_success(), "{}", left.body);
    let explained = far().await;
    assert_eq!(
        explained["because"],
        format!("{waits}, but none runs the type `echo`: attempt 1 of 1. {fails}")
    );
    assert_eq!(explained["details"]["lacks"], json!({"type": "echo"}));
}

#[tokio::test]
async fn a_task_that_sleeps_or_asks_says_until_when_and_how_to_answer() {
    let tasks = "
  - {name: nap, type: sleep, config: {duration: 1h}}
  - {name: paid, type: wait_for_signal, config: {signal: payment, timeout: 2h}}
  - {name: sign, type: approval, config: {approvers: [ada@example.com, bob@example.com]}}";
    let expected = [
        "has been running since 2027-01-15 08:00:00Z (now). \
         It waits for `nap` (sleeping), `paid` (sleeping) and `sign` (sleeping).",
        "nap sleeping: It sleeps until 2027-01-15 09:00:00Z (in 1 h).",
        "paid sleeping: It has waited for the signal `payment` since 2027-01-15 08:00:00Z (now) and times out at \
         2027-01-15 10:00:00Z (in 2 h). Send it with `ebb signal RUN payment`.",
        "sign sleeping: It has waited for approval by one of ada@example.com and bob@example.com \
         since 2027-01-15 08:00:00Z (now). Approve it with `ebb approve RUN sign`.",
    ];
    check(tasks, [], &expected).await;
}

const FLAKY: &str = "
  - {name: a, type: noop, retry_policy: {max_retries: 1, initial_delay_seconds: 10, jitter: 0}}
  - {name: b, type: noop, depends_on: [a]}
  - {name: c, type: noop, depends_on: [b]}";

#[tokio::test]
async fn a_task_that_is_tried_again_says_what_went_wrong_and_when_it_is() {
    let expected = [
        "has been running since 2027-01-15 08:00:00Z (now). It waits for `a` (up for retry); 2 tasks have not started.",
        "a up_for_retry: Attempt 1 of 2 failed: no luck (a transient error). \
         The next one starts at 2027-01-15 08:00:10Z (in 10 s).",
        "b pending: It waits for `a` (up for retry).",
        "c pending: It waits for `b` (pending).",
    ];
    check(FLAKY, [failed(0, 1, Failure::transient("no luck"))], &expected).await;
}

#[tokio::test]
async fn a_failed_attempt_is_explained_once() {
    let (world, run) = play(FLAKY, two_failures().into_iter().take(2)).await;
    let second = said(&world, run, "?task=a").await;
    let because = second["tasks"][0]["because"].as_str().unwrap();
    assert!(
        because.ends_with("Attempt 1 failed at 2027-01-15 08:00:00Z (now): no luck, 1 (a transient error).")
    );
    let (world, run) = play(FLAKY, two_failures().into_iter().take(1)).await;
    let waiting = said(&world, run, "?task=a").await;
    assert_eq!(waiting["tasks"][0]["because"].as_str().unwrap().matches("no luck").count(), 1);
}

fn two_failures() -> [Command; 3] {
    let attempt = |number| failed(0, number, Failure::transient(format!("no luck, {number}")));
    [attempt(1), retried(0, 1), attempt(2)]
}

#[tokio::test]
async fn a_run_that_failed_says_which_task_did_why_and_what_followed() {
    let expected = [
        "failed at 2027-01-15 08:00:00Z (now), after 0 ms, since `a` failed: no luck, 2 (a transient error). \
         It was tried twice: the one retry is used up. `b` and `c` could not run because of it.",
        "a failed: It failed: no luck, 2 (a transient error). It was tried twice: \
         the one retry is used up. `b` and `c` could not run because of it.",
        "b upstream_failed: It could not run, since `a` failed at 2027-01-15 08:00:00Z (now): \
         no luck, 2 (a transient error).",
        "c upstream_failed: It could not run, since `a` failed at 2027-01-15 08:00:00Z (now): \
         no luck, 2 (a transient error).",
    ];
    check(FLAKY, two_failures(), &expected).await;
}

#[tokio::test]
async fn an_allowed_failure_is_explained_and_fails_no_run() {
    let tasks = "
  - {name: a, type: noop, allow_failure: true}
  - {name: b, type: noop, depends_on: [a], trigger_rule: all_done}";
    let expected = [
        "succeeded at 2027-01-15 08:00:00Z (now), after 0 ms: of its 2 tasks, 1 succeeded and 1 failed.",
        "a failed: It failed: no (a permanent error). It was tried once: \
         a permanent error is not retried. The run may succeed all the same: `allow_failure` is set.",
    ];
    check(tasks, [failed(0, 1, Failure::permanent("no")), done(1)], &expected).await;
}

#[tokio::test]
async fn a_skipped_task_says_which_condition_did_not_hold_and_what_it_saw() {
    let tasks = "
  - {name: a, type: noop, when: inputs.n > 3}
  - {name: b, type: noop, depends_on: [a]}
  - {name: c, type: noop, depends_on: [b]}";
    let reason = "The condition of `a` did not hold: `inputs.n > 3` (`inputs.n` was 1).";
    let expected = [
        "succeeded at 2027-01-15 08:00:00Z (now), after 0 ms: of its 3 tasks, 3 skipped.",
        &format!("a skipped: {reason}"),
        &format!("b skipped: `a`, which it depends on, was skipped. The first was `a`. {reason}"),
        &format!("c skipped: `b`, which it depends on, was skipped. The first was `a`. {reason}"),
    ];
    check(tasks, [], &expected).await;
}

#[tokio::test]
async fn a_branch_not_taken_says_which_one_was_and_why() {
    let tasks = "
  - name: size
    type: switch
    cases:
      - {when: inputs.n > 3, next: [big]}
      - {when: inputs.n == 1, next: [one]}
      - {default: true, next: [small]}
  - {name: big, type: noop}
  - {name: one, type: noop}
  - {name: small, type: noop}
  - {name: repair, type: noop, depends_on: [one], trigger_rule: one_failed}";
    let choice = "it took `one`, since `inputs.n == 1` (`inputs.n` was 1) held.";
    let expected = [
        "succeeded at 2027-01-15 08:00:00Z (now), after 0 ms: of its 5 tasks, 2 succeeded and 3 skipped.",
        &format!("big skipped: The switch `size` did not choose `big`: {choice}"),
        &format!("small skipped: The switch `size` did not choose `small`: {choice}"),
        "repair skipped: Its rule for the tasks it depends on is `one_failed`: one of them must fail, \
         the others are not waited for. But `one` (succeeded) did not fail.",
    ];
    check(tasks, [done(2)], &expected).await;
}

#[tokio::test]
async fn a_default_branch_is_explained_by_the_conditions_that_did_not_hold() {
    let tasks = "
  - name: size
    type: switch
    cases:
      - {when: inputs.n > 3, next: [big]}
      - {default: true, next: [small]}
  - {name: big, type: noop}
  - {name: small, type: noop}";
    let (world, run) = play(tasks, []).await;
    let explained = said(&world, run, "?task=big").await;
    let because = "The switch `size` did not choose `big`: it took its default, `small`, \
                   since no condition held: `inputs.n > 3` (`inputs.n` was 1).";
    assert_eq!(explained["tasks"][0]["because"], because);
    assert_eq!(explained["tasks"][0]["details"]["took"], json!(["small"]));
    let switch = said(&world, run, "?task=size").await;
    assert_eq!(
        switch["tasks"][0]["because"],
        "It succeeded at 2027-01-15 08:00:00Z (now), on attempt 1. It took 0 ms. As a switch, it took its default, \
         `small`, since no condition held: `inputs.n > 3` (`inputs.n` was 1)."
    );
}

#[tokio::test]
async fn what_was_cancelled_says_by_whom_and_why() {
    let tasks = "  - {name: a, type: noop}";
    let expected = [
        "was cancelled by ada@example.com at 2027-01-15 08:00:00Z (now), after 0 ms: wrong day. \
         Of its 1 task, 1 cancelled.",
        "a cancelled: ada@example.com cancelled it at 2027-01-15 08:00:00Z (now): wrong day.",
    ];
    check(tasks, [cancelled(Some("wrong day"))], &expected).await;
}

#[tokio::test]
async fn one_task_is_explained_in_more_detail() {
    let (world, run) = play(FLAKY, two_failures()).await;
    let explained = said(&world, run, "?task=a").await;
    insta::assert_json_snapshot!(explained);
    let below = said(&world, run, "?task=c").await;
    assert_eq!(below["tasks"][0]["details"]["failed"], "a");
    assert_eq!(
        below["tasks"][0]["details"]["depends_on"],
        json!([{"task": "b", "state": "upstream_failed"}])
    );
}

#[tokio::test]
async fn of_a_large_run_fifty_tasks_are_explained_and_the_rest_is_counted() {
    let many: String = (0..120).map(|number| format!("  - {{name: t{number}, type: noop}}\n")).collect();
    let all: Vec<String> = (0..120).map(|number| format!("t{number}")).collect();
    let tasks = format!("{many}  - {{name: join, type: noop, depends_on: [{}]}}", all.join(", "));
    let (world, run) = play(&tasks, [done(0), failed(119, 1, Failure::permanent("no"))]).await;
    let explained = said(&world, run, "").await;
    assert_eq!((explained["tasks"].as_array().unwrap().len(), &explained["more"]), (50, &json!(70)));
    assert_eq!(explained["tasks"][0]["task"], "t119", "what failed comes first");
    assert!(explained["summary"].as_str().unwrap().ends_with("It will end as failed, since `t119` failed."));
    let (world, run) = play(&tasks, []).await;
    let join = said(&world, run, "?task=join").await;
    assert!(join["tasks"][0]["because"].as_str().unwrap().ends_with("`t4` (dispatched) and 115 more."));
    assert_eq!(join["tasks"][0]["details"]["more"], 70);
}

#[tokio::test]
async fn a_run_or_task_that_does_not_exist_is_refused_in_words() {
    let (world, run) = play(FLAKY, []).await;
    let unknown = RunId(uuid::Uuid::nil());
    let answer = world.get(&format!("/runs/{unknown}/explain")).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(answer.body["message"], format!("there is no run {unknown}"));
    let answer = world.get(&format!("/runs/{run}/explain?task=aa")).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(answer.body["message"], format!("run {run} has no task `aa`"));
    let misspelt = world.get(&format!("/runs/{run}/explain?tsk=a")).await;
    assert_eq!(misspelt.status, StatusCode::BAD_REQUEST);
}

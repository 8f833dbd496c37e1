//! Each kind of expectation fails where it should, and says where and why.

use crate::{fails, passes};

const FLOW: &str = "  - {name: one, type: bash, config: {command: 'true'}}
  - {name: two, type: echo, depends_on: [one], when: inputs.n > 0, config: {n: '{{ inputs.n }}'}}
";

#[tokio::test]
async fn the_state_of_the_run() {
    fails(
        FLOW,
        "    expect:\n      state: failed\n",
        &["5:14 tests[0].expect.state: expected run state failed, found succeeded"],
    )
    .await;
}

#[tokio::test]
async fn a_run_of_which_nothing_is_said_must_succeed() {
    let test = "    tasks: {one: {fail: boom}}\n    expect: {tasks: {two: upstream_failed}}\n";
    let message =
        "5:13 tests[0].expect: expected run state succeeded, found failed (task `one` failed: boom)";
    fails(FLOW, test, &[message]).await;
}

#[tokio::test]
async fn the_error_of_the_run() {
    let test = "    tasks: {one: {fail: boom}}\n    expect: {state: failed, error: bang}\n";
    let message =
        "5:36 tests[0].expect.error: expected an error with `bang` in it, found `task `one` failed: boom`";
    fails(FLOW, test, &[message]).await;
    let message = "4:21 tests[0].expect.error: expected an error with `bang` in it, found none";
    fails(FLOW, "    expect: {error: bang}\n", &[message]).await;
}

#[tokio::test]
async fn how_long_the_run_took() {
    let stub = "    tasks: {one: {takes: 90s}}\n";
    for (range, message) in [
        ("1m", "expected 1m, found 1m30s"),
        ("{at_least: 2m}", "expected at least 2m, found 1m30s"),
        ("{at_most: 1m29.5s}", "expected at most 1m29.5s, found 1m30s"),
        ("{at_least: 10s, at_most: 1m}", "expected 10s to 1m, found 1m30s"),
    ] {
        let message = format!("5:20 tests[0].expect.took: {message}");
        fails(FLOW, &format!("{stub}    expect: {{took: {range}}}\n"), &[&message]).await;
    }
    passes(FLOW, &format!("{stub}    expect: {{took: {{at_least: 1m, at_most: 2m}}}}\n")).await;
}

#[tokio::test]
async fn the_state_of_a_task() {
    let test = "    inputs: {n: 0}\n    expect: {tasks: {one: {state: failed}, two: succeeded}}\n";
    let message = [
        "5:35 tests[0].expect.tasks.one.state: expected failed, found succeeded",
        "5:49 tests[0].expect.tasks.two: expected succeeded, found skipped",
    ];
    fails(FLOW, test, &message).await;
}

#[tokio::test]
async fn the_output_of_a_task_each_difference_where_it_is_written() {
    let test = "    tasks: {one: {output: {a: {b: [1, 2, 4]}, c: x, d: 1.0, f: 7}}}
    expect:
      tasks:
        one:
          output:
            a: {b: [1, 3]}
            c: y
            d: 1
            e: 5
";
    let at = "tests[0].expect.tasks.one.output";
    let message = [
        &format!("9:13 {at}: found an unexpected field `f`: 7"),
        &format!("9:20 {at}.a.b: expected a list of 2, found one of 3 (the next is 4)"),
        &format!("9:24 {at}.a.b[1]: expected 3, found 2"),
        &format!("10:16 {at}.c: expected \"y\", found \"x\""),
        &format!("12:13 {at}.e: expected 5, found no such field"),
    ];
    fails(FLOW, test, &message.map(String::as_str)).await;
}

#[tokio::test]
async fn an_output_that_should_not_be_there() {
    let test = "    tasks: {one: {output: 3}}\n    expect: {tasks: {one: {output: null}}}\n";
    fails(FLOW, test, &["5:36 tests[0].expect.tasks.one.output: expected null, found 3"]).await;
}

#[tokio::test]
async fn the_rendered_config_of_a_task_of_which_only_what_is_named_counts() {
    let message = "4:40 tests[0].expect.tasks.two.config.n: expected 2, found 1";
    fails(FLOW, "    expect: {tasks: {two: {config: {n: 2}}}}\n", &[message]).await;
    passes(FLOW, "    expect: {tasks: {one: {config: {}}, two: {config: {n: 1}}}}\n").await;
    let message = "5:36 tests[0].expect.tasks.two.config: no attempt received a config";
    fails(FLOW, "    inputs: {n: 0}\n    expect: {tasks: {two: {config: {n: 0}}}}\n", &[message]).await;
}

#[tokio::test]
async fn the_number_of_attempts() {
    let test = "    expect: {tasks: {one: {attempts: 2}}}\n";
    fails(FLOW, test, &["4:38 tests[0].expect.tasks.one.attempts: expected 2 attempts, found 1"]).await;
}

#[tokio::test]
async fn when_a_task_started_and_finished() {
    let test =
        "    tasks: {one: {takes: 5s}}\n    expect: {tasks: {one: {finished: 4s}, two: {started: 4s}}}\n";
    let message = [
        "5:38 tests[0].expect.tasks.one.finished: expected 4s, found 5s",
        "5:58 tests[0].expect.tasks.two.started: expected 4s, found 5s",
    ];
    fails(FLOW, test, &message).await;
    let test = "    inputs: {n: 0}\n    expect: {tasks: {two: {started: 0s}}}\n";
    fails(FLOW, test, &["5:37 tests[0].expect.tasks.two.started: the task never started"]).await;
}

#[tokio::test]
async fn what_a_task_started_after() {
    let test = "    tasks: {one: {takes: 5s}}\n    expect: {tasks: {one: {started_after: two}}}\n";
    let message = "5:43 tests[0].expect.tasks.one.started_after: it started at 0s, before `two` ended at 5s";
    fails(FLOW, test, &[message]).await;
    passes(FLOW, &test.replace("one: {started_after: two", "two: {started_after: one")).await;
}

#[tokio::test]
async fn the_error_of_a_task() {
    let message = "4:35 tests[0].expect.tasks.one.error: expected an error with `x` in it, found none";
    fails(FLOW, "    expect: {tasks: {one: {error: x}}}\n", &[message]).await;
}

#[tokio::test]
async fn the_order_in_which_tasks_began() {
    let message = "4:27 tests[0].expect.order[1]: `one` started before `two` (they started as one, two)";
    fails(FLOW, "    expect: {order: [two, one]}\n", &[message]).await;
    let message = "5:27 tests[0].expect.order[1]: `two` never started";
    fails(FLOW, "    inputs: {n: 0}\n    expect: {order: [one, two]}\n", &[message]).await;
}

#[tokio::test]
async fn a_stub_for_a_task_that_never_began() {
    let test = "    inputs: {n: 0}\n    tasks:\n      two: {output: 1}\n    expect: {state: succeeded}\n";
    fails(FLOW, test, &["6:7 tests[0].tasks.two: `two` has a stub, but never started (it is skipped)"]).await;
}

#[tokio::test]
async fn a_stub_for_an_attempt_that_never_was() {
    let test = "    tasks:\n      one: [{output: 1}, {output: 2}]\n    expect: {state: succeeded}\n";
    fails(FLOW, test, &["5:26 tests[0].tasks.one[1]: there was no attempt 2 of `one`"]).await;
}

#[tokio::test]
async fn an_answer_that_nobody_waits_for_and_one_that_comes_after_the_end() {
    let tasks = "  - {name: nap, type: sleep, config: {duration: 1h}}
  - {name: ask, type: approval, depends_on: [nap]}
";
    let test = "    meanwhile:
      - {at: 1m, approve: ask}
      - {at: 2h, approve: ask}
      - {at: 3h, cancel: true}
    expect: {took: 2h}
";
    let message = [
        "5:9 tests[0].meanwhile[0]: nothing waited for the approval of `ask` at 1m",
        "7:9 tests[0].meanwhile[2]: the cancellation was never sent: the run ended at 2h",
    ];
    fails(tasks, test, &message).await;
}

#[tokio::test]
async fn inputs_that_do_not_fit() {
    let message = crate::run_test(FLOW, "    inputs: {n: many}\n    expect: {state: succeeded}\n").await;
    assert_eq!(message.len(), 1, "{message:?}");
    assert!(message[0].starts_with("3:5 tests[0]: the inputs are invalid: input `n`:"), "{message:?}");
}

//! Tasks of custom types: stubs that fit their type, and what happens without one.

use crate::{fails, passes, refused};

const CHECK: &str = "  - {name: check, type: raster.check, config: {source: '{{ inputs.n }}'}, queue: gpu}\n";

#[tokio::test]
async fn a_stub_that_fits_stands_for_the_work() {
    let test = "    tasks: {check: {output: {width: 5}, takes: 2s}}\n    expect: {took: 2s, tasks: {check: {output: {width: 5}}}}\n";
    passes(CHECK, test).await;
    let retried = "    tasks: {check: [{fail: busy}, {output: {width: 5}}]}\n    expect: {tasks: {check: {attempts: 2}}}\n";
    passes(&CHECK.replace("queue: gpu", "queue: gpu, retry_policy: {max_retries: 1}"), retried).await;
}

#[test]
fn an_output_that_a_worker_could_not_return_is_refused_where_it_is() {
    let hint = "(a worker's output like this one would fail the attempt)";
    let of = |stub: &str| format!("  - name: it\n    tasks: {{check: {stub}}}\n    expect: {{}}\n");
    refused(
        CHECK,
        &of("{output: {width: wide}}"),
        &format!(
            "tests/flow.yaml:4:29: tests[0].tasks.check.output: the output does not fit the task type `raster.check`: width: the value is not of type \"integer\" {hint}"
        ),
    );
    refused(
        CHECK,
        &of("{takes: 1s}"),
        &format!(
            "tests/flow.yaml:4:20: tests[0].tasks.check: the output does not fit the task type `raster.check`: the value is not of type \"object\" {hint}"
        ),
    );
}

#[tokio::test]
async fn without_a_stub_there_is_no_output_to_go_on_with() {
    let test =
        "    expect: {state: failed, tasks: {check: {state: failed, error: give `check` a stub with one}}}\n";
    passes(CHECK, test).await;
}

#[tokio::test]
async fn settings_that_do_not_fit_fail_whatever_the_stub_says() {
    let test = "    inputs: {n: 0}\n    expect: {state: failed, tasks: {check: {error: does not fit the task type}}}\n";
    passes(CHECK, test).await;
    let wrong = "    inputs: {n: 0}\n    expect: {}\n";
    fails(
        CHECK,
        wrong,
        &["5:13 tests[0].expect: expected run state succeeded, found failed (task `check` failed: the config does not fit the task type `raster.check`: source: expected a number of at least 1, found 0)"],
    )
    .await;
}

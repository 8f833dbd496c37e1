//! What stubs, attempts, signals and times do to a run.

use crate::passes;

const BASH: &str = "  - {name: work, type: bash, config: {command: 'true'}}\n";
const RETRIED: &str = "  - name: work
    type: bash
    config: {command: 'true', env: {TRY: '{{ task.attempt }}'}}
    timeout_seconds: 300
    retry_policy: {max_retries: 2, initial_delay_seconds: 10, backoff: constant, jitter: 0}
";
const WAIT: &str = "  - {name: wait, type: wait_for_signal, config: {signal: go, timeout: 1h}}\n";
const ASK: &str = "  - {name: ask, type: approval, config: {approvers: [ana], timeout: 1h}}\n";
const NAPS: &str = "  - {name: one, type: sleep, config: {duration: 10s}}
  - {name: two, type: sleep, config: {duration: 20s}}
  - {name: last, type: noop, depends_on: [one, two]}
";

#[tokio::test]
async fn work_that_nobody_stubbed_succeeds_without_an_output() {
    passes(BASH, "    expect: {took: 0s, tasks: {work: {state: succeeded, output: null, attempts: 1}}}\n")
        .await;
}

#[tokio::test]
async fn types_without_effects_do_what_they_do() {
    let tasks = "  - {name: say, type: echo, config: {n: '{{ inputs.n + 1 }}'}}
  - {name: break, type: fail, config: {message: 'no {{ inputs.n }}', class: permanent}}
";
    let test = "    inputs: {n: 2}
    expect: {state: failed, error: no 2, tasks: {say: {output: {n: 3}}, break: {error: no 2, attempts: 1}}}\n";
    passes(tasks, test).await;
}

#[tokio::test]
async fn a_stub_stands_in_for_any_attempt() {
    let tasks = "  - {name: say, type: echo, config: {n: 1}}\n";
    passes(tasks, "    tasks: {say: {output: [2]}}\n    expect: {tasks: {say: {output: [2]}}}\n").await;
}

#[tokio::test]
async fn a_list_of_stubs_is_one_attempt_after_the_other() {
    let test = "    tasks: {work: [{fail: x}, {fail: y, takes: 5s}, {output: 1}]}
    expect: {took: 25s, tasks: {work: {state: succeeded, attempts: 3, output: 1, config: {env: {TRY: 3}}}}}\n";
    passes(RETRIED, test).await;
}

#[tokio::test]
async fn the_last_stub_holds_for_all_further_attempts() {
    let test = "    tasks: {work: {fail: x}}
    expect: {state: failed, took: 20s, tasks: {work: {state: failed, attempts: 3, error: x}}}\n";
    passes(RETRIED, test).await;
}

#[tokio::test]
async fn the_class_of_a_failure_decides_whether_there_is_another_attempt() {
    let test = "    tasks: {work: {fail: {message: x, class: permanent}}}
    expect: {state: failed, took: 0s, tasks: {work: {attempts: 1}}}\n";
    passes(RETRIED, test).await;
}

#[tokio::test]
async fn an_attempt_that_takes_too_long_times_out_in_virtual_time() {
    let test = "    tasks: {work: [{takes: 5m1s}, {takes: 5m}]}
    expect: {took: 10m10s, tasks: {work: {state: succeeded, attempts: 2}}}\n";
    passes(RETRIED, test).await;
    let test = "    tasks: {work: {takes: 1h}}
    expect: {state: failed, took: 15m20s, error: timeout_seconds of 300}\n";
    passes(RETRIED, test).await;
}

#[tokio::test]
async fn a_config_that_no_worker_would_take_fails_whatever_the_stub_says() {
    let tasks = "  - {name: get, type: http, config: {url: '{{ inputs.n }}'}}\n";
    let test = "    tasks: {get: {output: 1}}
    expect: {state: failed, tasks: {get: {state: failed, error: url}}}\n";
    passes(tasks, test).await;
}

#[tokio::test]
async fn a_template_that_cannot_be_rendered_fails_its_task() {
    let tasks = "  - {name: one, type: bash, config: {command: 'true'}}
  - {name: two, type: echo, depends_on: [one], config: {x: '{{ outputs.one.rows.first }}'}}
";
    let test = "    tasks: {one: {output: {}}}
    expect: {state: failed, tasks: {one: succeeded, two: {state: failed, error: rows}}}\n";
    passes(tasks, test).await;
}

#[tokio::test]
async fn time_jumps_from_one_timer_to_the_next_and_what_is_parallel_stays_so() {
    passes(NAPS, "    expect: {took: 20s, tasks: {one: {finished: 10s}, last: {started: 20s}}}\n").await;
}

#[tokio::test]
async fn time_begins_when_the_test_says() {
    let tasks = "  - {name: night, type: sleep, config: {until: '2026-03-01T06:00:00Z'}}
  - {name: day, type: echo, depends_on: [night], config: {day: '{{ run.logical_date }}'}}
";
    let test = "    now: 2026-03-01T05:00:00Z
    logical_date: 2026-02-28T00:00:00Z
    expect: {took: 1h, tasks: {day: {output: {day: '2026-02-28T00:00:00Z'}}}}\n";
    passes(tasks, test).await;
    let test = "    logical_date: 2026-02-28T00:00:00Z\n    expect: {took: 1d6h}\n";
    passes(tasks, test).await;
}

#[tokio::test]
async fn a_signal_ends_a_wait_and_its_payload_is_the_output() {
    let test = "    meanwhile: [{at: 10m, signal: go, payload: {x: 1}}]
    expect: {took: 10m, tasks: {wait: {output: {x: 1}, started: 0s, finished: 10m, config: {signal: go}}}}\n";
    passes(WAIT, test).await;
}

#[tokio::test]
async fn what_comes_at_the_very_last_moment_is_in_time() {
    passes(WAIT, "    meanwhile: [{at: 1h, signal: go}]\n    expect: {took: 1h, tasks: {wait: succeeded}}\n")
        .await;
}

#[tokio::test]
async fn a_signal_that_comes_early_is_kept() {
    let tasks = "  - {name: nap, type: sleep, config: {duration: 1h}}
  - {name: wait, type: wait_for_signal, depends_on: [nap], config: {signal: go}}
";
    let test = "    meanwhile: [{at: 1m, signal: go, payload: early}]
    expect: {took: 1h, tasks: {wait: {output: early, config: {signal: go}}}}\n";
    passes(tasks, test).await;
}

#[tokio::test]
async fn people_approve_reject_and_cancel() {
    let approve = "    meanwhile: [{at: 1m, approve: ask, by: ana}]
    expect: {took: 1m, tasks: {ask: {output: {approved: true, approved_by: ana}}}}\n";
    let reject = "    meanwhile: [{at: 1m, reject: ask, by: ana, reason: too dear}]
    expect: {state: failed, error: 'ana did not approve: too dear'}\n";
    let cancel = "    meanwhile: [{at: 1m, cancel: true, by: bob, reason: changed my mind}]
    expect: {state: cancelled, took: 1m, tasks: {ask: cancelled}}\n";
    let nobody = "    expect: {state: failed, took: 1h, error: timed out while waiting}\n";
    for test in [approve, reject, cancel, nobody] {
        passes(ASK, test).await;
    }
}

#[tokio::test]
async fn what_is_done_meanwhile_may_be_written_in_any_order() {
    let tasks = "  - {name: a, type: wait_for_signal, config: {signal: a}}
  - {name: b, type: wait_for_signal, depends_on: [a], config: {signal: b}}
";
    let test = "    meanwhile: [{at: 2h, signal: b}, {at: 1h, signal: a}]
    expect: {took: 2h, order: [a, b], tasks: {b: {started: 1h, started_after: a}}}\n";
    passes(tasks, test).await;
}

#[tokio::test]
async fn playing_a_test_again_gives_the_same_to_the_microsecond() {
    let jittery = RETRIED.replace("jitter: 0", "jitter: 0.5");
    let test = "    tasks: {work: {fail: x}}\n    expect: {state: failed, took: 1s}\n";
    let first = crate::run_test(&jittery, test).await;
    assert_eq!(first, crate::run_test(&jittery, test).await);
}

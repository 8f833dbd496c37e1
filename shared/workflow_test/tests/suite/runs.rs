//! Runs that tasks start, the time a run has, whom it tells, and what it shares.

use crate::{fails, passes, refused};

const PARENT: &str = "  - name: call
    type: workflow
    config: {workflow: child, inputs: {n: '{{ inputs.n + 1 }}'}}
    retry_policy: {max_retries: 1, initial_delay_seconds: 10, jitter: 0}
  - {name: after, type: transform, depends_on: [call], config: {expression: outputs.call.outputs.work}}
";

#[tokio::test]
async fn a_stub_stands_for_the_run_that_a_task_starts() {
    let test = "    tasks: {call: {outputs: {work: 7}, takes: 5m}}
    expect: {took: 5m, tasks: {call: {config: {workflow: child, inputs: {n: 2}}}, after: {output: 7}}}\n";
    passes(PARENT, test).await;
    let test = "    tasks: {call: [{run: failed, error: boom}, {run: cancelled}]}
    expect: {state: failed, took: 10s, error: was cancelled, tasks: {call: {state: failed, attempts: 2}}}\n";
    passes(PARENT, test).await;
    let test =
        "    tasks: {call: {run: failed, error: boom}}\n    expect: {state: failed, error: 'failed: boom'}\n";
    passes(PARENT, test).await;
}

#[tokio::test]
async fn without_a_stub_the_run_is_executed_and_its_tasks_have_names_of_their_own() {
    let test = "    tasks: {call/work: [{fail: boom, takes: 1s}, {output: 9, takes: 1m}]}
    expect:
      took: {at_least: 1m1s, at_most: 2m}
      order: [call, call/work, after]
      tasks:
        call/work: {state: succeeded, attempts: 2, output: 9, config: {env: {N: 2}}, started_after: call/nap}
        after: {output: 9, started_after: call/work}
";
    passes(PARENT, test).await;
}

#[tokio::test]
async fn a_run_that_fails_is_started_again_as_the_task_says() {
    let test = "    tasks: {call/work: {fail: {message: boom, class: permanent}}}
    expect:
      state: failed
      took: 12s
      error: 'failed: task `work` failed: boom'
      tasks: {call: {attempts: 2}, call/work: {state: failed, attempts: 1}}
";
    passes(PARENT, test).await;
}

#[tokio::test]
async fn a_cancellation_passes_down() {
    let test = "    tasks: {call/work: {takes: 10m}}
    meanwhile: [{at: 1m, cancel: true}]
    expect: {state: cancelled, took: 1m, tasks: {call: cancelled, call/work: cancelled, after: cancelled}}\n";
    passes(PARENT, test).await;
    let stubbed = test.replace("call/work: {takes", "call: {takes").replace("call/work: cancelled, ", "");
    passes(PARENT, &stubbed).await;
}

#[tokio::test]
async fn a_run_that_nobody_waits_for_holds_nobody_up() {
    let tasks = "  - {name: call, type: workflow, config: {workflow: child, inputs: {n: 1}, wait: false}}\n";
    passes(tasks, "    expect: {took: 0s, tasks: {call/nap: sleeping, call/work: pending}}\n").await;
    let tasks = tasks.replace("workflow: child", "workflow: elsewhere");
    passes(&tasks, "    expect: {took: 0s, tasks: {call: succeeded}}\n").await;
}

#[tokio::test]
async fn every_child_of_a_fan_out_may_be_a_run() {
    let tasks = "  - {name: each, type: fan_out, for_each: '[4, 5]', task: {type: workflow, config: {workflow: child, inputs: {n: '{{ item }}'}}}}
  - {name: all, type: transform, depends_on: [each], config: {expression: outputs.each.count}}
";
    let test = "    tasks: {each/work: {output: 1}, each__1/work: {output: 2}}
    expect: {tasks: {each__0/work: {output: 1, config: {env: {N: 4}}}, each__1/work: {output: 2}, all: {output: 2}}}\n";
    passes(tasks, test).await;
    let test = "    tasks: {each: {outputs: {work: 1}}, each__1: {run: failed, error: boom}}
    expect: {state: failed, error: 'failed: boom', tasks: {each__0: succeeded, each__1: failed}}\n";
    passes(tasks, test).await;
}

#[tokio::test]
async fn a_workflow_that_is_not_here_cannot_be_started_and_may_be_stubbed() {
    let tasks = PARENT.replace("workflow: child", "workflow: elsewhere");
    let message = "there is no workflow `elsewhere`";
    passes(&tasks, &format!("    expect: {{state: failed, error: '{message}'}}\n")).await;
    passes(&tasks, "    tasks: {call: {outputs: {work: 1}}}\n    expect: {tasks: {after: {output: 1}}}\n")
        .await;
}

#[tokio::test]
async fn what_a_started_run_waits_for_is_reported() {
    let tasks = "  - {name: call, type: workflow, config: {workflow: asking}}\n";
    let message = "4:13 tests[0].expect: the run does not end: nothing happens after 0s; `call` waits for its run, \
        `call/ask` waits for approval (provide what it waits for under `meanwhile`, or expect `state: running`)";
    fails(tasks, "    expect: {}\n", &[message]).await;
}

#[test]
fn names_of_tasks_of_started_runs_are_checked() {
    let test = |stubs: &str| format!("  - {{name: it, tasks: {{{stubs}}}, expect: {{}}}}\n");
    for (stubs, message) in [
        ("call/wrok: {}", "[\"call/wrok\"]: the workflow `child` has no task `wrok` (did you mean `work`?)"),
        ("after/work: {}", "[\"after/work\"]: `after` does not start a run, so `after/work` is not a task"),
    ] {
        refused(PARENT, &test(stubs), &format!("tests/flow.yaml:3:24: tests[0].tasks{message}"));
    }
    let message = "tests/flow.yaml:3:39: tests[0].tasks.call.output: this task starts a run, so its stub has no such field (use \
         `run`, `outputs` and `error`)";
    refused(PARENT, &test("call: {output: 1}"), message);
    let message = "tests/flow.yaml:3:51: tests[0].tasks.call.error: only a run that failed has this field";
    refused(PARENT, &test("call: {outputs: {}, error: x}"), message);
    let tasks = PARENT.replace("workflow: child", "workflow: elsewhere");
    let message = "tests/flow.yaml:3:24: tests[0].tasks[\"call/work\"]: `call` starts the workflow `elsewhere`, which is not in this folder \
        (give `call` a stub)";
    refused(&tasks, &test("call/work: {}"), message);
}

const LIMITED: &str = "  - {name: work, type: bash, config: {command: 'true'}, timeout_seconds: 7200}
timeout_seconds: 3600
deadline_seconds: 600
on_success: {notify: {message: done}}
on_failure: {notify: {webhook: {url: 'https://hooks.example/{{ inputs.n }}', headers: {Key: '{{ secrets.KEY }}'}}}}
on_missed_deadline: {notify: {workflow: {name: mend, inputs: {n: '{{ inputs.n }}'}}}}
";

#[tokio::test]
async fn a_run_misses_its_deadline_times_out_and_tells() {
    let test = "    tasks: {work: {takes: 2h}}
    expect:
      state: failed
      took: 1h
      error: the run took longer than its timeout_seconds of 3600
      callbacks:
        - {on: missed_deadline, workflow: mend, inputs: {n: 1}}
        - {on: failure, webhook: 'https://hooks.example/1', headers: {Key: secrets.KEY}, body: {state: failed}}
";
    passes(LIMITED, test).await;
    passes(LIMITED, "    expect: {callbacks: [{on: success, message: done, body: {workflow: flow}}]}\n")
        .await;
}

#[tokio::test]
async fn callbacks_that_are_not_as_expected_are_reported() {
    let message = "4:25 tests[0].expect.callbacks: expected a list of 0, found one of 1 (the next is {\"body\":{\"error\":\
        null,\"id\":\"";
    let problems = crate::run_test(LIMITED, "    expect: {callbacks: []}\n").await;
    assert!(problems[0].starts_with(message), "{problems:?}");
    let test = "    expect: {callbacks: [{on: success, message: finished}]}\n";
    let message = "4:49 tests[0].expect.callbacks[0].message: expected \"finished\", found \"done\"";
    fails(LIMITED, test, &[message]).await;
}

#[tokio::test]
async fn attempts_end_when_the_time_for_all_of_them_is_up() {
    let tasks = "  - name: work
    type: bash
    config: {command: 'true'}
    retry_timeout_seconds: 100
    retry_policy: {max_retries: 9, initial_delay_seconds: 30, backoff: constant, jitter: 0}
    on_retry: {notify: {workflow: mend}}
";
    let test = "    tasks: {work: {fail: x, takes: 20s}}
    expect: {state: failed, took: 70s, tasks: {work: {attempts: 2}}, callbacks: [{on: retry, task: work}]}\n";
    passes(tasks, test).await;
    let test = "    tasks: {work: [{fail: x, takes: 20s}, {takes: 1h}]}
    expect: {state: failed, took: 100s, tasks: {work: {attempts: 2, error: timeout_seconds of 50}}}\n";
    passes(tasks, test).await;
}

#[tokio::test]
async fn a_task_that_runs_share_is_simply_executed() {
    let test = "    tasks: {once: {output: 1}}\n    expect: {tasks: {once: {state: succeeded, output: 1}}}\n";
    passes("  - {task: once}\n", test).await;
}

#[tokio::test]
async fn a_run_is_alone_whatever_its_concurrency() {
    let tasks = "  - {name: work, type: noop}\nconcurrency: {key: '{{ inputs.n }}', policy: skip}\n";
    passes(tasks, "    expect: {tasks: {work: succeeded}}\n").await;
}

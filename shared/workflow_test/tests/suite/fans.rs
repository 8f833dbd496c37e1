//! Fan-outs: children are stubbed and expected one by one or all alike, and what they deliver is gathered.

use crate::{fails, passes, refused};

const SPLIT: &str = "  - name: split
    type: fan_out
    for_each: range(inputs.n)
    max_parallel: 2
    tolerated_failures: 1
    task: {type: bash, config: {command: 'true', env: {ITEM: '{{ item }} at {{ index }}'}}}
  - {name: gather, type: fan_in, depends_on: [split], aggregation: sum}
";

#[tokio::test]
async fn children_have_the_stub_of_all_or_their_own_and_what_they_deliver_is_gathered() {
    let test = "    inputs: {n: 3}
    tasks: {split: {output: 1, takes: 10s}, split__2: {output: 5, takes: 1m}}
    expect:
      took: 1m10s
      order: [split, split__0, split__1, split__2, gather]
      tasks:
        split: {state: succeeded, output: {count: 3, succeeded: 3, failed: 0}}
        split__0: {output: 1, finished: 10s}
        split__2: {output: 5, started: 10s, attempts: 1, config: {env: {ITEM: 2 at 2}}}
        gather: {output: {count: 3, total: 7}, started_after: split__2}
";
    passes(SPLIT, test).await;
}

#[tokio::test]
async fn as_many_children_fail_as_are_tolerated() {
    let test = "    inputs: {n: 3}
    tasks: {split: {output: 2}, split__1: {fail: boom}}
    expect: {tasks: {split__1: {state: failed, error: boom}, gather: {output: {count: 2, total: 4}}}}\n";
    passes(SPLIT, test).await;
    let test = "    inputs: {n: 5}
    tasks: {split: {fail: boom, takes: 1s}}
    expect:
      state: failed
      error: '3 of 5 children failed, 1 tolerated; split__0: boom'
      tasks: {split__2: failed, split__3: skipped, split__4: skipped, gather: upstream_failed}
";
    passes(SPLIT, test).await;
}

#[tokio::test]
async fn over_nothing_there_are_no_children() {
    let message = "5:22 tests[0].expect.tasks.split__0: the run has no such task";
    fails(SPLIT, "    inputs: {n: 0}\n    expect: {tasks: {split__0: skipped}}\n", &[message]).await;
    let test =
        "    inputs: {n: 0}\n    expect: {took: 0s, tasks: {gather: {output: {count: 0, total: 0}}}}\n";
    passes(SPLIT, test).await;
}

#[tokio::test]
async fn a_stub_of_a_child_that_never_was_is_reported() {
    let test =
        "    inputs: {n: 1}\n    tasks: {split__0: {output: 1}, split__1: {output: 1}}\n    expect: {}\n";
    fails(SPLIT, test, &["5:36 tests[0].tasks.split__1: `split__1` has a stub, but never started"]).await;
}

#[tokio::test]
async fn children_that_have_not_had_their_turn_are_reported() {
    let tasks = "  - {name: split, type: fan_out, for_each: '[1, 2]', max_parallel: 1, task: {type: sleep, config: {until: '2999-01-01T00:00:00Z'}}}\n";
    let message = "4:13 tests[0].expect: the run does not end within 7320d; `split` waits for its children, `split__0` is \
        sleeping, `split__1` waits for its turn";
    fails(tasks, "    expect: {}\n", &[message]).await;
}

#[test]
fn only_a_fan_out_has_children_and_only_work_a_stub() {
    let test = |stub: &str| format!("  - {{name: it, tasks: {{{stub}: {{}}}}, expect: {{}}}}\n");
    for (name, hint) in [("split__x", "choose from `split`, `gather`"), ("split_0", "did you mean `split`?")]
    {
        let message = format!("the workflow `flow` has no task `{name}` ({hint})");
        refused(SPLIT, &test(name), &format!("tests/flow.yaml:3:24: tests[0].tasks.{name}: {message}"));
    }
    let tasks = "  - {name: split, type: fan_out, for_each: '[1]', task: {type: transform, config: {expression: '1'}}}\n";
    let message = "tests/flow.yaml:3:24: tests[0].tasks.split: `split` takes no stub: the engine executes `transform` itself (stub the tasks it depends on instead)";
    refused(tasks, &test("split"), message);
}

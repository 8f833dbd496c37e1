//! Runs that do not end: they are message as such, with what they wait for, and nothing hangs.

use crate::{fails, passes};

const WAITS: &str = "  - {name: ask, type: approval}
  - {name: sign, type: wait_for_signal, config: {signal: signed}}
  - {name: last, type: noop, depends_on: [ask, sign]}
";

#[tokio::test]
async fn a_run_that_waits_forever_is_reported_with_what_it_waits_for() {
    let message = "4:21 tests[0].expect.state: the run does not end: nothing happens after 0s; `ask` waits for approval, `sign` waits for the signal \"signed\", `last` waits for `ask` and `sign` (provide what it waits for under `meanwhile`, or expect `state: running`)";
    fails(WAITS, "    expect: {state: succeeded}\n", &[message]).await;
    let answered = "    meanwhile: [{at: 1h, approve: ask}]\n    expect: {state: succeeded}\n";
    let message = message.replace("4:21", "5:21").replace("after 0s", "after 1h").replace("`ask` and ", "");
    fails(WAITS, answered, &[&message.replace("`ask` waits for approval, ", "")]).await;
}

#[tokio::test]
async fn a_run_that_waits_may_be_what_is_expected() {
    passes(WAITS, "    expect: {state: running, tasks: {ask: sleeping, last: pending}}\n").await;
}

#[tokio::test]
async fn how_long_an_unending_run_took_cannot_be_said() {
    let test = "    expect: {state: running, took: 1h, tasks: {ask: {finished: 1h}}}\n";
    let message = [
        "4:36 tests[0].expect.took: the run has not ended",
        "4:64 tests[0].expect.tasks.ask.finished: the task has not ended",
    ];
    fails(WAITS, test, &message).await;
}

#[tokio::test]
async fn nobody_waits_for_a_run_of_centuries() {
    let tasks = "  - {name: nap, type: sleep, config: {until: '2999-01-01T00:00:00Z'}}\n";
    let message = "4:21 tests[0].expect.state: the run does not end within 7320d; `nap` is sleeping";
    fails(tasks, "    expect: {state: succeeded}\n", &[message]).await;
}

//! What is said about fan-outs, about runs that wait for each other, and about limits of time.

use engine::Command;
use model::{Failure, RunId, TimerKind};
use serde_json::json;

use crate::explain::{done, failed, lines, play_text, said};
use crate::other_runs::{LIMITED, parent, sharing, start_child};
use crate::world::World;

const SPLIT: &str = "
name: small
tasks:
  - {name: split, type: fan_out, for_each: range(5), max_parallel: 2, tolerated_failures: 1, task: {type: noop}}
  - {name: join, type: fan_in, depends_on: [split], aggregation: sum, field: rows}
";

const NOW: &str = "2027-01-15 08:00:00Z (now)";

/// Why a task is where it is.
async fn because(world: &World, run: RunId, task: &str) -> String {
    let explained = said(world, run, &format!("?task={task}")).await;
    explained["tasks"][0]["because"].as_str().unwrap().to_owned()
}

async fn summary(world: &World, run: RunId) -> String {
    said(world, run, "").await["summary"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_fan_out_that_waits_says_how_far_its_children_have_come() {
    let commands = [done(2), failed(3, 1, Failure::permanent("no"))];
    let (world, run) = play_text(SPLIT, commands).await;
    let explained = lines(&said(&world, run, "").await);
    let expected = [
        &format!(
            "Run RUN of `small` has been running since {NOW}. It waits for `split` (2 of 5 children ended); \
             1 task has not started."
        ),
        &format!(
            "split sleeping: Since {NOW} it has 5 children: 2 have ended (1 succeeded and 1 failed), 2 are active \
             and 1 waits. At most 2 run at once (`max_parallel`). It may still succeed, \
             since at most 1 may (`tolerated_failures`). The first to fail was split__1: no (a permanent error)."
        ),
        "join pending: It waits for `split` (2 of 5 children ended). \
         It combines the outputs of the children of `split`: `sum` of `rows`.",
    ];
    assert_eq!(explained, expected.join("\n"));
}

#[tokio::test]
async fn a_child_says_whose_turn_it_is_before_its_own() {
    let (world, run) = play_text(SPLIT, []).await;
    let turn = "Its turn has not come: at most 2 children of `split` run at once (`max_parallel`). \
                2 are active, and";
    assert_eq!(because(&world, run, "split__2").await, format!("{turn} 0 more come before it."));
    assert_eq!(because(&world, run, "split__4").await, format!("{turn} 2 more come before it."));
    let under_way = because(&world, run, "split__0").await;
    assert!(under_way.starts_with("It has waited for a worker of the queue `light`"), "{under_way}");
    let explained = said(&world, run, "?task=split__4").await;
    assert_eq!(explained["tasks"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&explained["tasks"][0]["task"], &explained["tasks"][0]["details"]["fan_out"]),
        (&json!("split__4"), &json!("split"))
    );
    assert!(!explained["summary"].as_str().unwrap().contains("split__"), "{explained}");
}

#[tokio::test]
async fn a_child_that_is_not_needed_says_how_many_others_failed() {
    let commands = [failed(2, 1, Failure::permanent("no")), failed(3, 1, Failure::permanent("no"))];
    let (world, run) = play_text(SPLIT, commands).await;
    assert_eq!(
        because(&world, run, "split__4").await,
        "It was no longer needed: 2 of 5 children of `split` failed, and at most 1 may (`tolerated_failures`)."
    );
    let failed = because(&world, run, "split__1").await;
    assert!(failed.starts_with("It failed: no (a permanent error)."), "{failed}");
    let split = because(&world, run, "split").await;
    assert!(split.contains("It fails once all have ended, since at most 1 may"), "{split}");
}

#[tokio::test]
async fn a_run_with_children_counts_them_apart() {
    let (world, run) = play_text(&SPLIT.replace("sum, field: rows", "collect"), (2..7).map(done)).await;
    assert!(
        summary(&world, run).await.ends_with("of its 2 tasks and 5 children of fan-outs, 7 succeeded."),
        "{}",
        summary(&world, run).await
    );
}

#[tokio::test]
async fn a_task_that_waits_for_a_run_says_which_and_how_that_stands() {
    let (world, run) = parent().await;
    let explained = because(&world, run, "call").await;
    assert!(explained.contains("and waits for it, which does not exist yet."), "{explained}");
    let child = start_child(&world, run, 0, true).await;
    assert_eq!(
        because(&world, run, "call").await,
        format!(
            "It started run {child} of `child` at {NOW} and waits for it, which is running. See `ebb explain {child}`."
        )
    );
    let of_child = summary(&world, child).await;
    assert!(
        of_child.ends_with(&format!(" A task of run {run} started it, which waits for it.")),
        "{of_child}"
    );
}

#[tokio::test]
async fn a_task_that_is_shared_says_who_carries_it_out() {
    let (world, first, second) = sharing().await;
    assert_eq!(
        because(&world, second, "rates").await,
        format!(
            "Since {NOW} it has waited for `fetch-rates` of run {first}, which executes the same work as `rates` \
             for both. See `ebb explain {first} fetch-rates`."
        )
    );
}

#[tokio::test]
async fn a_held_run_says_which_run_has_to_end() {
    let world = World::new().await;
    let first = world.play(&LIMITED.replace("POLICY", "queue"), json!({})).await;
    let second = world.start_of("limited", json!({})).await;
    let explained = lines(&said(&world, second, "").await);
    let expected = [
        &format!(
            "Run RUN of `limited` has waited for its concurrency group since {NOW}: its workflow \
             allows 1 run with the concurrency key `eu` at once. It waits for run {first} to end."
        ),
        "only pending: It could start, but the run waits for its concurrency group.",
    ];
    assert_eq!(explained, expected.join("\n"));
}

fn due(kind: TimerKind) -> Command {
    Command::Wake { task: None, attempt: 0, kind }
}

const HURRIED: &str = "
name: small
timeout_seconds: 60
deadline_seconds: 30
tasks:
  - {name: a, type: noop}
  - {name: b, type: noop, depends_on: [a]}
";

#[tokio::test]
async fn a_run_that_took_too_long_says_so_of_itself_and_of_its_tasks() {
    let (world, run) = play_text(HURRIED, [due(TimerKind::Timeout)]).await;
    let explained = lines(&said(&world, run, "").await);
    let limit = "timeout_seconds of 60";
    let expected = [
        format!(
            "Run RUN of `small` failed at {NOW}, after 0 ms, since it exceeded its {limit}: \
             of its 2 tasks, 1 failed and 1 upstream failed."
        ),
        format!("a failed: It failed: the run took longer than its {limit} (a time-out). It was tried once."),
        format!("b upstream_failed: It had not started when the run exceeded its {limit}, at {NOW}."),
    ];
    assert_eq!(explained, expected.join("\n"));
}

#[tokio::test]
async fn a_run_that_may_not_take_for_ever_says_until_when_and_which_deadline_it_missed() {
    let (world, run) = play_text(HURRIED, [due(TimerKind::Deadline)]).await;
    let explained = summary(&world, run).await;
    assert!(
        explained.ends_with(&format!(
            " It times out at 2027-01-15 08:01:00Z (in 1 min) (`timeout_seconds`). \
             It missed its deadline at {NOW}: deadline_seconds is 30."
        )),
        "{explained}"
    );
}

#[tokio::test]
async fn undelivered_callbacks_are_reported_even_for_a_run_that_succeeded() {
    let text = "{name: small, on_success: [{notify: {webhook: 'https://example.com/hook'}}], tasks: [{name: a, type: noop}]}";
    let called_back = |error: Option<&str>| Command::CalledBack {
        what: "webhook to example.com".into(),
        error: error.map(str::to_owned),
    };
    let (world, run) = play_text(text, [done(0), called_back(None)]).await;
    assert!(summary(&world, run).await.ends_with("1 succeeded."));
    let (world, run) = play_text(text, [done(0), called_back(Some("it answered 404"))]).await;
    let explained = summary(&world, run).await;
    assert!(
        explained.ends_with(&format!(
            "1 succeeded. A callback could not be delivered at {NOW}: webhook to example.com: it answered 404."
        )),
        "{explained}"
    );
}

#[tokio::test]
async fn a_task_whose_attempts_may_take_no_longer_says_so() {
    let text = "
name: small
tasks:
  - name: a
    type: noop
    retry_timeout_seconds: 5
    retry_policy: {max_retries: 3, initial_delay_seconds: 10, jitter: 0}
";
    let (world, run) = play_text(text, [failed(0, 1, Failure::transient("no luck"))]).await;
    assert_eq!(
        because(&world, run, "a").await,
        "It failed: no luck (a transient error). It was tried once: \
         its retry_timeout_seconds of 5 would be over."
    );
}

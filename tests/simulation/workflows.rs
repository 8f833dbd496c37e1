//! Random workflows of tasks that need nothing outside: they succeed, fail, waver, sleep, fan out, are shared, or start
//! other runs.

use model::{Backoff, Case, FanOut, Global, RetryPolicy, TaskSpec, Tolerance, TriggerRule, Workflow};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt, SeedableRng};
use serde_json::{Value, json};

const RULES: [TriggerRule; 6] = [
    TriggerRule::AllSuccess,
    TriggerRule::AllSuccess,
    TriggerRule::AllDone,
    TriggerRule::OneSuccess,
    TriggerRule::OneFailed,
    TriggerRule::NoneFailed,
];

/// The workflow of a seed: up to nine tasks, edges from earlier to later ones.
pub(crate) fn random(seed: u64) -> Workflow {
    let mut dice = StdRng::seed_from_u64(seed);
    let size = dice.random_range(1..10);
    let mut tasks: Vec<TaskSpec> = (0..size).map(|index| task(&mut dice, index)).collect();
    branch(&mut dice, &mut tasks);
    Workflow { name: "random".into(), tasks, ..Workflow::default() }
}

fn task(dice: &mut StdRng, index: usize) -> TaskSpec {
    let depends_on =
        (0..index).filter(|_| dice.random_bool(0.35)).map(|parent| format!("t{parent}")).collect();
    let (kind, config) = work(dice);
    let fan_out = (kind == "fan_out").then(|| fan_out(dice));
    let shared = dice.random_bool(0.3) && matches!(kind, "noop" | "flaky" | "fail");
    TaskSpec {
        name: format!("t{index}"),
        kind: kind.into(),
        depends_on,
        trigger_rule: *RULES.choose(dice).unwrap(),
        when: dice.random_bool(0.15).then(|| condition(dice).to_owned()),
        config,
        retry: RetryPolicy {
            max_retries: dice.random_range(0..4),
            backoff: Backoff::Exponential,
            initial_delay_seconds: 2.0,
            max_delay_seconds: 90.0,
            jitter: 0.1,
        },
        timeout_seconds: 60,
        queue: "light".into(),
        allow_failure: dice.random_bool(0.1),
        fan_out,
        global: shared.then(|| Global { name: kind.into(), reuse_for_seconds: 0 }),
        ..TaskSpec::default()
    }
}

/// The workflow that tasks of others start.
pub(crate) fn small() -> Workflow {
    let step = |name: &str, after: &[&str], config: Value| TaskSpec {
        name: name.into(),
        kind: "flaky".into(),
        depends_on: after.iter().map(|name| (*name).to_owned()).collect(),
        config,
        retry: RetryPolicy { max_retries: 2, initial_delay_seconds: 1.0, ..RetryPolicy::default() },
        timeout_seconds: 60,
        queue: "light".into(),
        ..TaskSpec::default()
    };
    let first = step("first", &[], json!({"probability": 0.3, "seed": 7}));
    let second = step("second", &["first"], json!({"probability": 0.0, "seed": 7}));
    Workflow { name: "small".into(), tasks: vec![first, second], ..Workflow::default() }
}

fn fan_out(dice: &mut StdRng) -> FanOut {
    let (kind, config) = match dice.random_range(0..4) {
        0 => ("noop", json!({})),
        1 => ("workflow", json!({"workflow": "small"})),
        _ => ("flaky", json!({"probability": 0.3, "seed": dice.random_range(0..1_000_000)})),
    };
    FanOut {
        for_each: format!("range({}) | list", dice.random_range(0..7)),
        max_parallel: dice.random_bool(0.5).then(|| dice.random_range(1..4)),
        tolerated_failures: Tolerance::Percent(if dice.random_bool(0.5) { 0 } else { 100 }),
        task: Box::new(TaskSpec {
            kind: kind.into(),
            config,
            retry: RetryPolicy { max_retries: 1, initial_delay_seconds: 2.0, ..RetryPolicy::default() },
            timeout_seconds: 60,
            queue: "light".into(),
            ..TaskSpec::default()
        }),
    }
}

/// Gives every switch its branches: later tasks, shared out between a condition and the default.
fn branch(dice: &mut StdRng, tasks: &mut [TaskSpec]) {
    for index in 0..tasks.len() {
        if tasks[index].kind == "switch" {
            let later: Vec<String> = tasks[index + 1..].iter().map(|task| task.name.clone()).collect();
            let (left, right) = later.into_iter().partition(|_| dice.random_bool(0.5));
            let when = Some(condition(dice).to_owned());
            tasks[index].cases = vec![Case { when, next: left }, Case { when: None, next: right }];
        }
    }
}

fn condition(dice: &mut impl Rng) -> &'static str {
    if dice.random_bool(0.7) { "task.attempt == 1" } else { "run.trigger == 'nobody'" }
}

fn work(dice: &mut impl Rng) -> (&'static str, Value) {
    match dice.random_range(0..17) {
        13..15 => ("fan_out", json!({})),
        15 => ("workflow", json!({"workflow": "small"})),
        16 => ("workflow", json!({"workflow": "small", "wait": false})),
        0..4 => ("noop", json!({})),
        4 => ("echo", json!({"by": "{{ task.name }}"})),
        5 => ("fail", json!({"message": "no", "class": "permanent"})),
        6 => ("fail", json!({"message": "not yet", "class": "transient"})),
        7 => ("sleep", json!({"duration": dice.random_range(1..300)})),
        8 => ("switch", json!({})),
        9 => ("transform", json!({"expression": "[1, 2] | length"})),
        10 => ("wait_for_signal", json!({"signal": "go", "timeout": dice.random_range(60..600)})),
        _ => ("flaky", json!({"probability": 0.5, "seed": dice.random_range(0..1_000_000)})),
    }
}

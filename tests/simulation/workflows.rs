//! Random workflows of tasks that need nothing outside: they succeed, fail, waver or sleep.

use model::{Backoff, RetryPolicy, TaskSpec, TriggerRule, Workflow};
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
    let tasks = (0..size).map(|index| task(&mut dice, index)).collect();
    Workflow { name: "random".into(), description: None, tags: vec![], inputs: vec![], tasks }
}

fn task(dice: &mut StdRng, index: usize) -> TaskSpec {
    let depends_on =
        (0..index).filter(|_| dice.random_bool(0.35)).map(|parent| format!("t{parent}")).collect();
    let (kind, config) = work(dice);
    TaskSpec {
        name: format!("t{index}"),
        kind: kind.into(),
        description: None,
        depends_on,
        trigger_rule: *RULES.choose(dice).unwrap(),
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
    }
}

fn work(dice: &mut impl Rng) -> (&'static str, Value) {
    match dice.random_range(0..10) {
        0..4 => ("noop", json!({})),
        4 => ("echo", json!({"by": "{{ task.name }}"})),
        5 => ("fail", json!({"message": "no", "class": "permanent"})),
        6 => ("fail", json!({"message": "not yet", "class": "transient"})),
        7 => ("sleep", json!({"duration": dice.random_range(1..300)})),
        _ => ("flaky", json!({"probability": 0.5, "seed": dice.random_range(0..1_000_000)})),
    }
}

//! Random workflows that use the whole language, of tasks that need nothing outside.

use chrono::TimeDelta;
use model::{
    Aggregation, Backoff, BreakerSpec, Call, Callback, Case, Concurrency, FanIn, FanOut, Global, Occasion,
    Overlap, Pacing, RetryPolicy, TaskKind, TaskSpec, Tolerance, TriggerRule, Workflow,
};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Map, Value, json};

use crate::script;

const RULES: [TriggerRule; 13] = [
    TriggerRule::AllSuccess,
    TriggerRule::AllSuccess,
    TriggerRule::AllSuccess,
    TriggerRule::AllDone,
    TriggerRule::AllFailed,
    TriggerRule::OneSuccess,
    TriggerRule::OneFailed,
    TriggerRule::NoneFailed,
    TriggerRule::NoneFailedMinOneSuccess,
    TriggerRule::NoneSkipped,
    TriggerRule::Always,
    TriggerRule::AnyOf,
    TriggerRule::AllDone,
];

/// The signals that runs wait for and people send.
pub(crate) const SIGNALS: [&str; 2] = ["go", "stop"];

/// The queues that tasks are sent to.
pub(crate) const QUEUES: [&str; 4] = ["light", "light", "light", "heavy"];

/// The queue whose tasks workers outside lease.
pub(crate) const LEASED_QUEUE: &str = "leased";

/// The aggregations of a fan-in; some fail for some outputs.
const AGGREGATIONS: [(Aggregation, Option<&str>); 6] = [
    (Aggregation::Collect, None),
    (Aggregation::Concat, None),
    (Aggregation::Sum, Some("took")),
    (Aggregation::Sum, None),
    (Aggregation::First, None),
    (Aggregation::Last, Some("took")),
];

/// The pool that some tasks need a slot of.
pub(crate) const POOL: &str = "few";

/// The workflow of a seed: up to eight tasks, edges from earlier to later ones.
pub(crate) fn random(seed: u64) -> Workflow {
    let mut rng = StdRng::seed_from_u64(seed);
    let rng = &mut rng;
    let size = rng.random_range(1..9);
    let laborious = rng.random_bool(0.3);
    let mut tasks: Vec<TaskSpec> = (0..size).map(|index| task(rng, index, laborious)).collect();
    gather(&mut tasks);
    branch(rng, &mut tasks);
    promise(seed, &mut tasks);
    lease_out(seed, &mut tasks);
    let mut workflow = Workflow {
        name: "random".into(),
        tasks,
        concurrency: rng.random_bool(0.3).then(|| concurrency(rng)),
        timeout_seconds: rng.random_bool(0.1).then(|| rng.random_range(30..600)),
        deadline_seconds: rng.random_bool(0.1).then(|| rng.random_range(1..600)),
        callbacks: if rng.random_bool(0.3) { vec![callback(rng)] } else { Vec::new() },
        ..Workflow::default()
    };
    if rng.random_bool(0.2) {
        workflow.max_active_tasks = rng.random_bool(0.5).then(|| rng.random_range(1..4));
        let pooled = workflow.tasks.iter_mut().filter(|_| rng.random_bool(0.5));
        pooled.for_each(|task| task.pool = Some(POOL.into()));
    }
    // Children that wait for their turn when their run's time is up.
    let fans = workflow.tasks.iter().any(|task| task.kind == TaskKind::FanOut);
    if fans && rng.random_bool(0.2) {
        workflow.timeout_seconds = Some(rng.random_range(10..60));
    }
    if seed % 5 == 2 {
        fuse(&mut workflow.tasks);
    }
    workflow
}

/// Gives each task that workers perform a breaker that opens soon, and not for long.
fn fuse(tasks: &mut [TaskSpec]) {
    let breaker = Some(BreakerSpec { failures: 2, window_seconds: 60, pause_seconds: 20 });
    for task in tasks {
        let task = match &mut task.fan_out {
            Some(fan_out) => &mut *fan_out.task,
            None => task,
        };
        task.breaker = breaker.filter(|_| !task.kind.is_engine_task());
    }
}

/// Behaves the same, but is another version.
pub(crate) fn again(seed: u64, number: u32) -> Workflow {
    Workflow { description: Some(format!("version {number}")), ..random(seed) }
}

/// Whether the end follows from the definition alone, whatever takes how long.
pub(crate) fn is_determined(workflow: &Workflow) -> bool {
    let patient = |task: &TaskSpec| {
        task.retry_timeout_seconds.is_none()
            && task.config.get("timeout").is_none()
            && task.pacing.is_none_or(|pacing| pacing.timeout_seconds.is_none())
    };
    let fans = workflow.tasks.iter().filter(|task| task.kind == TaskKind::FanOut).count();
    workflow.timeout_seconds.is_none()
        && workflow.tasks.iter().all(patient)
        // Children are numbered in the order in which their fan-outs begin, and wavering goes by number.
        && fans < 2
        && workflow.concurrency.as_ref().is_none_or(|limits| limits.policy == Overlap::Queue)
}

/// A workflow that tasks of others start, and that fails.
pub(crate) fn poor() -> Workflow {
    let config = json!({"message": "no", "class": "permanent"});
    let only = TaskSpec { name: "only".into(), kind: TaskKind::Fail, config, ..usual() };
    Workflow { name: "poor".into(), tasks: vec![only], ..Workflow::default() }
}

/// A workflow that tasks of others start, and that ends well.
pub(crate) fn small() -> Workflow {
    let step = |name: &str, after: &[&str], kind: TaskKind, config: Value| TaskSpec {
        name: name.into(),
        kind,
        depends_on: after.iter().map(|name| (*name).to_owned()).collect(),
        config,
        retry: RetryPolicy { max_retries: 2, initial_delay_seconds: 1.0, ..RetryPolicy::default() },
        ..usual()
    };
    let first = step("first", &[], TaskKind::Flaky, json!({"probability": 0.3, "seed": 7}));
    let second = step("second", &["first"], TaskKind::Noop, json!({}));
    Workflow { name: "small".into(), tasks: vec![first, second], ..Workflow::default() }
}

/// One task that takes this long on a worker outside.
pub(crate) fn long(takes: TimeDelta) -> Workflow {
    let kind = TaskKind::Bash;
    let mut task = TaskSpec { name: "long".into(), kind, config: script::lasting(takes), ..usual() };
    lease(&mut task);
    Workflow { name: "long".into(), tasks: vec![task], ..Workflow::default() }
}

fn usual() -> TaskSpec {
    TaskSpec { timeout_seconds: 120, queue: "light".into(), ..TaskSpec::default() }
}

fn task(rng: &mut StdRng, index: usize, laborious: bool) -> TaskSpec {
    let depends_on =
        (0..index).filter(|_| rng.random_bool(0.35)).map(|parent| format!("t{parent}")).collect();
    let (kind, config) = if laborious && rng.random_bool(0.7) { labour(rng) } else { work(rng) };
    let fan_out = (kind == TaskKind::FanOut).then(|| fan_out(rng));
    let pacing = (kind == TaskKind::Sensor).then(|| pacing(rng));
    let shared = rng.random_bool(0.3) && matches!(kind, TaskKind::Noop | TaskKind::Fail | TaskKind::Bash);
    TaskSpec {
        name: format!("t{index}"),
        kind: kind.clone(),
        depends_on,
        trigger_rule: *RULES.choose(rng).unwrap(),
        when: rng.random_bool(0.15).then(|| condition(rng).to_owned()),
        config,
        retry: RetryPolicy {
            max_retries: rng.random_range(0..4),
            backoff: *[Backoff::Exponential, Backoff::Linear, Backoff::Constant].choose(rng).unwrap(),
            initial_delay_seconds: *[2.0, 2.0, 40.0].choose(rng).unwrap(),
            max_delay_seconds: 90.0,
            jitter: 0.1,
            ..RetryPolicy::default()
        },
        timeout_seconds: rng.random_range(40..120),
        retry_timeout_seconds: rng.random_bool(0.05).then(|| rng.random_range(10..300)),
        allow_failure: rng.random_bool(0.1),
        fan_out,
        queue: QUEUES.choose(rng).copied().unwrap().into(),
        priority: rng.random_range(-2..3),
        pacing,
        global: shared.then(|| {
            let reuse_for_seconds = *[0, 0, 30, 600].choose(rng).unwrap();
            Global { name: kind.to_string(), reuse_for_seconds }
        }),
        callbacks: if rng.random_bool(0.1) { vec![callback(rng)] } else { Vec::new() },
        ..usual()
    }
}

fn work(rng: &mut StdRng) -> (TaskKind, Value) {
    let timeout = rng.random_bool(0.4).then(|| rng.random_range(30..600));
    match rng.random_range(0..21) {
        0..3 => (TaskKind::Noop, json!({})),
        3 => (TaskKind::Echo, json!({"by": "{{ task.name }}"})),
        4 => (TaskKind::Fail, json!({"message": "no", "class": "permanent"})),
        5 => (TaskKind::Fail, json!({"message": "not yet", "class": "transient"})),
        6 => (TaskKind::Sleep, json!({"duration": rng.random_range(1..200)})),
        7 => (TaskKind::Switch, json!({})),
        8 => (TaskKind::Transform, json!({"expression": "[1, 2] | length"})),
        9 => (TaskKind::Transform, json!({"expression": "1 + nothing.at_all"})),
        10 => {
            (TaskKind::WaitForSignal, with_timeout(json!({"signal": SIGNALS.choose(rng).unwrap()}), timeout))
        }
        11 => (TaskKind::Approval, with_timeout(json!({"message": "well?"}), timeout)),
        12..14 => (TaskKind::FanOut, json!({})),
        14 => (TaskKind::FanIn, json!({})),
        15 => (TaskKind::Workflow, json!({"workflow": "small"})),
        16 => (TaskKind::Workflow, json!({"workflow": "small", "wait": false})),
        17 => (TaskKind::Flaky, json!({"probability": 0.5, "seed": rng.random_range(0..1_000_000)})),
        18 => (TaskKind::Workflow, json!({"workflow": "poor"})),
        19 => {
            let at = format!("2026-01-01T00:{:02}:30Z", rng.random_range(0..8));
            (TaskKind::Sensor, json!({"time": {"at": at}}))
        }
        _ => labour(rng),
    }
}

/// Work that a worker must claim.
fn labour(rng: &mut StdRng) -> (TaskKind, Value) {
    let failures = if rng.random_bool(0.4) { 0.0 } else { 0.6 };
    (TaskKind::Bash, script::config(rng.random_range(0..1_000_000), failures))
}

/// How often a sensor polls. Some give up before they can find anything.
fn pacing(rng: &mut StdRng) -> Pacing {
    Pacing {
        interval_seconds: rng.random_range(20..60),
        factor: *[1.0, 1.5].choose(rng).unwrap(),
        max_interval_seconds: 60,
        timeout_seconds: rng.random_bool(0.5).then(|| rng.random_range(20..600)),
        soft_fail: rng.random_bool(0.7),
        max_failures: 5,
        max_events_per_hour: 100,
    }
}

fn with_timeout(mut config: Value, timeout: Option<u32>) -> Value {
    if let Some(timeout) = timeout {
        config["timeout"] = json!(timeout);
    }
    config
}

fn fan_out(rng: &mut StdRng) -> FanOut {
    let (kind, config) = match rng.random_range(0..5) {
        0 => (TaskKind::Noop, json!({})),
        1 => (TaskKind::Workflow, json!({"workflow": "small"})),
        2 => (TaskKind::Bash, script::config(rng.random_range(0..1_000_000), 0.3)),
        _ => (TaskKind::Flaky, json!({"probability": 0.3, "seed": rng.random_range(0..1_000_000)})),
    };
    let tolerance =
        [Tolerance::Percent(0), Tolerance::Percent(100), Tolerance::Count(1)].choose(rng).copied();
    FanOut {
        for_each: format!("range({}) | list", rng.random_range(0..6)),
        max_parallel: rng.random_bool(0.5).then(|| rng.random_range(1..4)),
        tolerated_failures: tolerance.unwrap(),
        task: Box::new(TaskSpec {
            kind,
            config,
            retry: RetryPolicy { max_retries: 1, initial_delay_seconds: 20.0, ..RetryPolicy::default() },
            ..usual()
        }),
    }
}

/// Says of tasks, and of what fan-outs run, whether they may be repeated after a loss. Drawn apart, so that a seed's workflow is
/// otherwise what it was.
fn promise(seed: u64, tasks: &mut [TaskSpec]) {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x1de_a907);
    for task in tasks {
        let idempotent = *[None, Some(true), Some(false)].choose(&mut rng).unwrap();
        match &mut task.fan_out {
            Some(fan_out) => fan_out.task.idempotent = idempotent,
            None => task.idempotent = idempotent,
        }
    }
}

/// In one world of three, lets workers outside lease some of the work. Drawn apart, like promises.
fn lease_out(seed: u64, tasks: &mut [TaskSpec]) {
    if !seed.is_multiple_of(3) {
        return;
    }
    let mut rng = StdRng::seed_from_u64(seed ^ 0x1ea_5ed);
    for task in tasks {
        match &mut task.fan_out {
            Some(fan_out) => lease_perhaps(&mut rng, &mut fan_out.task),
            None => lease_perhaps(&mut rng, task),
        }
    }
}

fn lease_perhaps(rng: &mut StdRng, task: &mut TaskSpec) {
    let likely = match task.kind {
        TaskKind::Bash => 0.8,
        TaskKind::Noop => 0.4,
        _ => 0.0,
    };
    if rng.random_bool(likely) {
        lease(task);
    }
}

/// Lets workers outside lease a task. They enforce its timeout; the server waits far longer than a world lasts.
fn lease(task: &mut TaskSpec) {
    (task.queue, task.leased) = (LEASED_QUEUE.into(), true);
    task.timeout_seconds = 7 * 24 * 60 * 60;
}

/// Whether workers outside lease tasks of the seed's workflow.
pub(crate) fn has_leases(seed: u64) -> bool {
    random(seed)
        .tasks
        .iter()
        .any(|task| task.leased || task.fan_out.as_ref().is_some_and(|fan_out| fan_out.task.leased))
}

/// A fan-in needs a fan-out that it depends on.
fn gather(tasks: &mut [TaskSpec]) {
    for index in 0..tasks.len() {
        if tasks[index].kind != TaskKind::FanIn {
            continue;
        }
        match tasks[..index].iter().rfind(|task| task.kind == TaskKind::FanOut).map(|task| task.name.clone())
        {
            Some(fan_out) => {
                tasks[index].depends_on.retain(|name| *name != fan_out);
                tasks[index].depends_on.push(fan_out);
                let (aggregation, field) = AGGREGATIONS[index % AGGREGATIONS.len()];
                tasks[index].fan_in = Some(FanIn { aggregation, field: field.map(str::to_owned) });
            }
            None => tasks[index].kind = TaskKind::Noop,
        }
    }
}

/// Gives every switch its branches: later tasks, shared out between a condition and the default.
fn branch(rng: &mut StdRng, tasks: &mut [TaskSpec]) {
    for index in 0..tasks.len() {
        if tasks[index].kind == TaskKind::Switch {
            let later: Vec<String> = tasks[index + 1..].iter().map(|task| task.name.clone()).collect();
            let (left, right) = later.into_iter().partition(|_| rng.random_bool(0.5));
            let when = Some(condition(rng).to_owned());
            tasks[index].cases = vec![Case { when, next: left }, Case { when: None, next: right }];
        }
    }
}

fn condition(rng: &mut StdRng) -> &'static str {
    if rng.random_bool(0.7) { "task.attempt == 1" } else { "run.trigger == 'nobody'" }
}

fn concurrency(rng: &mut StdRng) -> Concurrency {
    let policy = [Overlap::Queue, Overlap::Queue, Overlap::CancelPrevious, Overlap::Skip];
    Concurrency {
        key: rng.random_bool(0.5).then(|| "group".into()),
        limit: rng.random_range(1..3),
        policy: *policy.choose(rng).unwrap(),
    }
}

fn callback(rng: &mut StdRng) -> Callback {
    let on = [Occasion::Success, Occasion::Failure, Occasion::Retry, Occasion::MissedDeadline];
    let call = if rng.random_bool(0.5) {
        Call::Message { topic: "updates".into(), body: None }
    } else {
        Call::Workflow { workflow: "small".into(), inputs: Map::new() }
    };
    Callback { on: *on.choose(rng).unwrap(), call }
}

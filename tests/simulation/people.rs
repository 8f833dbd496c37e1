//! What people do meanwhile: they send signals, early and twice, answer what they are asked, change definitions, and
//! steer runs and workers.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use engine::{By, Command, Mark, Operation};
use host::App;
use model::{
    Instant, RunId, Task, TaskIndex, TaskKind, TaskState, TenantId, WorkerCommand, WorkerCommandKind,
    WorkerId,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use store::NewVersion;

use crate::plans::{self, Step};
use crate::replay::Replay;
use crate::workflows::{self, SIGNALS};

/// An action of a person at some instant.
#[derive(Clone, Debug)]
pub(crate) struct ScheduledAction {
    pub(crate) at: Instant,
    pub(crate) action: Action,
}

/// The kinds of actions.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Signal(RunId, &'static str),
    Answer(RunId, TaskIndex),
    Register(Box<NewVersion>),
    /// Steers one of the runs that exist by then.
    Steer,
    Operate(RunId, Operation),
    Cancel(RunId),
    WorkerCommand(WorkerId, WorkerCommandKind),
    Plan(Step),
}

/// What people do to a run from its request on.
pub(crate) fn actions(seed: u64, run: RunId, from: Instant) -> Vec<ScheduledAction> {
    let mut rng = StdRng::seed_from_u64(seed ^ run.0.as_u64_pair().1);
    let mut actions = Vec::new();
    for signal in SIGNALS {
        for _ in 0..rng.random_range(0..3) {
            let at = from + TimeDelta::seconds(rng.random_range(0..1_200));
            let times = if rng.random_bool(0.3) { 2 } else { 1 };
            actions.extend(std::iter::repeat_n(
                ScheduledAction { at, action: Action::Signal(run, signal) },
                times,
            ));
        }
    }
    let tasks = workflows::random(seed).tasks;
    for (_, index) in tasks.iter().zip(0..).filter(|(task, _)| task.kind == TaskKind::Approval) {
        let at = from + TimeDelta::seconds(rng.random_range(0..1_200));
        actions.push(ScheduledAction { at, action: Action::Answer(run, TaskIndex(index)) });
    }
    actions
}

/// A version that differs only in its description.
pub(crate) fn version(seed: u64, number: u32, at: Instant) -> NewVersion {
    let (hash, source, by) = (format!("h{number}"), String::new(), String::from("simulation"));
    NewVersion { tenant: TenantId::DEFAULT, workflow: workflows::again(seed, number), source, hash, by, at }
}

/// What a person does to a run in this state.
pub(crate) fn steer(replay: &Replay, draw: impl Fn(usize) -> usize) -> Action {
    let any = |wanted: fn(&Task) -> bool| {
        let found: Vec<TaskIndex> =
            replay.tasks.values().filter(|task| wanted(task)).map(|task| task.index).collect();
        (!found.is_empty()).then(|| found[draw(found.len())])
    };
    fn there(task: &Task) -> bool {
        task.state != TaskState::Removed
    }
    // Each state with the same probability, since some are short.
    let of_any_state = || {
        let found = replay.tasks.values().filter(|task| there(task));
        let found: BTreeMap<&str, TaskIndex> = found.map(|task| (task.state.name(), task.index)).collect();
        let found = Vec::from_iter(found.into_values());
        (!found.is_empty()).then(|| found[draw(found.len())])
    };
    // Waiting for another attempt is short, so these come first.
    let waits = || {
        let sleeps = |task: &Task| task.state == TaskState::Sleeping;
        any(|task| task.state == TaskState::UpForRetry).or_else(|| any(sleeps))
    };
    let fans = |task: &Task| task.fan.is_some();
    // A fan-out that gave up on some of its children.
    let torn = || {
        let skipped = replay.tasks.values().filter(|task| task.state == TaskState::Skipped);
        skipped.filter_map(|task| task.child).map(|child| child.of).next()
    };
    let children = |task: &Task| there(task) && task.child.is_some();
    let chosen = || Mark::Succeeded(json!({"next": ["t1", "t3", "t5"]}));
    let wanted = match draw(27) {
        0 => return Action::Cancel(replay.run.id),
        1..4 => Some(Operation::Pause),
        4..8 => Some(Operation::Retry),
        8..11 => any(there).map(Operation::Clear),
        11..15 => any(children).map(Operation::Clear),
        15 => of_any_state().map(|task| Operation::Mark(task, Mark::Succeeded(Value::Null))),
        16 => waits().or_else(|| any(there)).map(|task| Operation::Mark(task, chosen())),
        17 => of_any_state().map(|task| Operation::Mark(task, Mark::Failed)),
        18 => waits().map(|task| Operation::Mark(task, Mark::Failed)),
        19 => waits().map(Operation::Wake),
        20 => any(|task| task.state == TaskState::Queued).map(|task| Operation::Mark(task, Mark::Failed)),
        _ => torn().or_else(|| any(fans)).or_else(|| any(there)).map(Operation::Clear),
    };
    Action::Operate(replay.run.id, wanted.unwrap_or(Operation::Evaluate))
}

/// Does it. Doing it twice does no harm.
pub(crate) async fn run(action: Action, app: App) -> bool {
    let (run, command) = match action {
        Action::Signal(run, name) => {
            let (name, payload, actor) = (name.to_owned(), json!({"sent": true}), "ana".to_owned());
            (run, Command::Signal { name, payload, actor })
        }
        Action::Answer(run, task) => {
            let approved = !(run.0.as_u64_pair().1 + u64::from(task.0)).is_multiple_of(4);
            (run, Command::Answer { task, approved, payload: Value::Null, actor: "ana".into() })
        }
        Action::Cancel(run) => (run, Command::Cancel { actor: "ana".into(), reason: None }),
        Action::Operate(run, operation) => {
            let by = By { actor: "ana".into(), reason: None };
            (run, Command::Operate { operation, by })
        }
        Action::Register(new) => return app.runtime.store().register(&new).await.is_ok(),
        Action::WorkerCommand(worker, kind) => {
            let at = app.runtime.clock().now();
            let order = WorkerCommand { kind, actor: "ana".into(), reason: None, at };
            return app.runtime.store().command_worker(worker, &order).await.is_ok();
        }
        Action::Plan(step) => return plans::run(step, app).await,
        Action::Steer => return true,
    };
    app.runtime.settle(run, command).await.is_ok()
}

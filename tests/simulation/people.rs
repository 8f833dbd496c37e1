//! What people do meanwhile: they send signals, early and twice, answer what they are asked, and change definitions.

use chrono::TimeDelta;
use engine::Command;
use model::{Instant, RunId, TaskIndex, TenantId};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use service::App;
use store::NewVersion;

use crate::workflows::{self, SIGNALS};

/// Something that a person sets out to do at some instant.
#[derive(Clone, Debug)]
pub(crate) struct Errand {
    pub(crate) at: Instant,
    pub(crate) what: What,
}

/// What it is.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Signal(RunId, &'static str),
    Answer(RunId, TaskIndex),
    Register(Box<NewVersion>),
}

/// What people set out to do about a run from its request on.
pub(crate) fn errands(seed: u64, run: RunId, from: Instant) -> Vec<Errand> {
    let mut dice = StdRng::seed_from_u64(seed ^ run.0.as_u64_pair().1);
    let mut errands = Vec::new();
    for signal in SIGNALS {
        for _ in 0..dice.random_range(0..3) {
            let at = from + TimeDelta::seconds(dice.random_range(0..1_200));
            let times = if dice.random_bool(0.3) { 2 } else { 1 };
            errands.extend(std::iter::repeat_n(Errand { at, what: What::Signal(run, signal) }, times));
        }
    }
    let tasks = workflows::random(seed).tasks;
    for (_, index) in tasks.iter().zip(0..).filter(|(task, _)| task.kind == "approval") {
        let at = from + TimeDelta::seconds(dice.random_range(0..1_200));
        errands.push(Errand { at, what: What::Answer(run, TaskIndex(index)) });
    }
    errands
}

/// A version that differs in nothing that matters.
pub(crate) fn version(seed: u64, number: u32, at: Instant) -> NewVersion {
    let (hash, source, by) = (format!("h{number}"), String::new(), String::from("simulation"));
    NewVersion { tenant: TenantId::DEFAULT, workflow: workflows::again(seed, number), source, hash, by, at }
}

/// Does it. Doing it twice does no harm.
pub(crate) async fn run(errand: What, app: App) -> bool {
    let (run, command) = match errand {
        What::Signal(run, name) => {
            let (name, payload, actor) = (name.to_owned(), json!({"sent": true}), "ana".to_owned());
            (run, Command::Signal { name, payload, actor })
        }
        What::Answer(run, task) => {
            let approved = !(run.0.as_u64_pair().1 + u64::from(task.0)).is_multiple_of(4);
            (run, Command::Answer { task, approved, payload: Value::Null, actor: "ana".into() })
        }
        What::Register(new) => return app.runtime.store().register(&new).await.is_ok(),
    };
    app.runtime.settle(run, command).await.is_ok()
}
